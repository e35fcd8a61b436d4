"""Attaching models to a scene: actors of one model share its assets, and what names a body keeps naming it."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import mujoco

from urlab.compile.blueprint import Blueprint

_REFERENCES = (
    ("geoms", "material"), ("geoms", "meshname"), ("geoms", "hfieldname"), ("sites", "material"),
    ("tendons", "material"), ("skins", "material"), ("flexes", "material"), ("lights", "texture"),
)  # fmt: skip
_ASSETS = ("materials", "textures", "meshes", "hfields")

_BODY_TYPES = (int(mujoco.mjtObj.mjOBJ_BODY), int(mujoco.mjtObj.mjOBJ_XBODY))
_WELD = int(mujoco.mjtEq.mjEQ_WELD)
_WORLD = "world"


@dataclass(frozen=True)
class _Bare:
    """A model without its assets. ``references`` are (kind, position, field, asset): what its elements refer to."""

    owner: str
    spec: Any
    references: tuple[tuple[str, int, str, str], ...]


class SharedAssets:
    """Hands out the models of one scene, one per actor; the first actor of a model brings the assets."""

    def __init__(self) -> None:
        self._bare: dict[int, _Bare | None] = {}
        self._owners: dict[int, str] = {}

    def child(self, blueprint: Blueprint, name: str) -> tuple[Any, Callable[[], None]]:
        """A spec to attach as the actor ``name``, and what is to be called once it is attached."""
        key = id(blueprint)
        if key not in self._owners:
            self._owners[key] = name
            return blueprint.spec.copy(), _nothing
        if key not in self._bare:
            self._bare[key] = _without_assets(blueprint.spec, self._owners[key])
        bare = self._bare[key]
        if bare is None:
            return blueprint.spec.copy(), _nothing
        child = bare.spec.copy()
        return child, _restorer(child, bare)


def _nothing() -> None:
    pass


def _without_assets(spec: Any, owner: str) -> _Bare | None:
    """None when there is nothing to share, or when something may refer to assets that we do not know of."""
    if not any(getattr(spec, kind) for kind in _ASSETS) or spec.tuples or spec.plugins:
        return None
    bare = spec.copy()
    references = []
    for kind, field in _REFERENCES:
        for position, element in enumerate(getattr(bare, kind)):
            asset = getattr(element, field)
            if asset:
                references.append((kind, position, field, asset))
                setattr(element, field, "")
    for kind in _ASSETS:
        for asset in list(getattr(bare, kind)):
            bare.delete(asset)
    return _Bare(owner, bare, tuple(references))


def _restorer(child: Any, bare: _Bare) -> Callable[[], None]:
    """The elements are looked up before they are attached, and are the same ones afterwards."""
    elements = {kind: list(getattr(child, kind)) for kind in {kind for kind, *_ in bare.references}}

    def restore() -> None:
        for kind, position, field, asset in bare.references:
            setattr(elements[kind][position], field, f"{bare.owner}_{asset}")

    return restore


class BodyReferences:
    """All that names a body in a model which is about to be attached.

    The elements are looked up before that, and are the same ones afterwards. Attaching puts the model's prefix before
    every name, also before ``world``, and leaves out what then names nothing. So that no reference is lost, those to
    the world name a body of their own meanwhile, the anchor, which stands where the model's origin is.
    """

    def __init__(self, child: Any) -> None:
        self._followers = [(follow, list(getattr(child, plural))) for plural, follow in _FOLLOWERS.items()]
        self._placed = [(follow, list(getattr(child, plural))) for plural, follow in _PLACED.items()]
        taken = {body.name for body in child.bodies}
        self._anchor_name = next(name for name in (f"anchor-{number}" for number in count(1)) if name not in taken)
        self._anchor: Any = None
        _let_welds_name_the_world(child)
        if self._rename(_WORLD, self._anchor_name):
            self._anchor = child.worldbody.add_body(name=self._anchor_name)

    def rename(self, old: str, new: str) -> None:
        """Let what names the body ``old`` name ``new``; both with their prefixes."""
        self._rename(old, new)

    def settle_world(self, root: Any, prefix: str, *, origin: str) -> None:
        """Once attached, let what names the world name ``origin``, the body that has the model's world in it."""
        if self._anchor is not None:
            self._rename(prefix + self._anchor_name, origin)
            root.delete(self._anchor)

    def settle_moved_world(self, root: Any, prefix: str) -> None:
        """The same for a model that was moved: where something has a place in the model's world, the anchor stays.

        Pins of flexes, bones of skins, welds, connections and targets do. It is called ``<prefix>world``. Sensors,
        excluded contacts and tuples mean the world itself.
        """
        if self._anchor is None:
            return
        held, kept = prefix + self._anchor_name, prefix + _WORLD
        if sum(follow(element, held, kept) for follow, elements in self._placed for element in elements):
            self._anchor.name = kept
            self._rename(held, _WORLD)
        else:
            self.settle_world(root, prefix, origin=_WORLD)

    def _rename(self, old: str, new: str) -> bool:
        """Whether there was anything to rename."""
        return sum(follow(element, old, new) for follow, elements in self._followers for element in elements) > 0


_Follow = Callable[[Any, str, str], bool]
"""Lets one element name a body otherwise; whether it did name it."""


def _let_welds_name_the_world(child: Any) -> None:
    """A weld without a second body is one to the world: its pose is one in the model's world."""
    for equality in child.equalities:
        if int(equality.objtype) in _BODY_TYPES and int(equality.type) == _WELD and not equality.name2:
            equality.name2 = _WORLD


def _follow_word(*fields: str) -> _Follow:
    def follow(element: Any, old: str, new: str) -> bool:
        found = [field for field in fields if getattr(element, field) == old]
        for field in found:
            setattr(element, field, new)
        return bool(found)

    return follow


def _follow_list(*fields: str) -> _Follow:
    def follow(element: Any, old: str, new: str) -> bool:
        found = [field for field in fields if old in list(getattr(element, field))]
        for field in found:
            setattr(element, field, [new if word == old else word for word in getattr(element, field)])
        return bool(found)

    return follow


def _sensor(sensor: Any, old: str, new: str) -> bool:
    watches = int(sensor.objtype) in _BODY_TYPES and sensor.objname == old
    refers = int(sensor.reftype) in _BODY_TYPES and sensor.refname == old
    if watches:
        sensor.objname = new
    if refers:
        sensor.refname = new
    return watches or refers


def _equality(equality: Any, old: str, new: str) -> bool:
    return int(equality.objtype) in _BODY_TYPES and _follow_word("name1", "name2")(equality, old, new)


def _tuple(group: Any, old: str, new: str) -> bool:
    kinds = [int(kind) for kind in group.objtype]
    words = list(group.objname)
    renamed = [new if kind in _BODY_TYPES and word == old else word for kind, word in zip(kinds, words, strict=True)]
    if renamed != words:
        group.objname = renamed
    return renamed != words


_PLACED: dict[str, _Follow] = {
    "cameras": _follow_word("targetbody"),
    "lights": _follow_word("targetbody"),
    "equalities": _equality,
    "skins": _follow_list("bodyname"),
    "flexes": _follow_list("nodebody", "vertbody"),
}
"""Elements for which it matters where a body is."""

_FOLLOWERS: dict[str, _Follow] = {
    **_PLACED,
    "sensors": _sensor,
    "excludes": _follow_word("bodyname1", "bodyname2"),
    "tuples": _tuple,
}
