"""Attaching models to a scene: actors of one model share its assets, a renamed body keeps its references."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco

from urlab.compile.blueprint import Blueprint

_REFERENCES = (
    ("geoms", "material"), ("geoms", "meshname"), ("geoms", "hfieldname"), ("sites", "material"),
    ("tendons", "material"), ("skins", "material"), ("flexes", "material"), ("lights", "texture"),
)  # fmt: skip
_ASSETS = ("materials", "textures", "meshes", "hfields")

_BODY_TYPES = (int(mujoco.mjtObj.mjOBJ_BODY), int(mujoco.mjtObj.mjOBJ_XBODY))
_SINGULAR = {
    "cameras": "camera", "lights": "light", "sensors": "sensor", "equalities": "equality", "excludes": "exclude",
    "skins": "skin", "flexes": "flex", "tuples": "tuple",
}  # fmt: skip


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


def rename_body(root: Any, spec: Any, prefix: str, old: str, new: str) -> None:
    """Call the body ``new`` that ``spec``, attached to ``root`` under ``prefix``, brought in as ``prefix + old``."""
    root.body(prefix + old).name = new
    for plural, follow in _FOLLOWERS.items():
        for element in getattr(spec, plural):
            follow(getattr(root, _SINGULAR[plural])(prefix + element.name), prefix + old, new)


def _follow_word(*fields: str) -> Callable[[Any, str, str], None]:
    def follow(element: Any, old: str, new: str) -> None:
        for field in fields:
            if getattr(element, field) == old:
                setattr(element, field, new)

    return follow


def _follow_list(*fields: str) -> Callable[[Any, str, str], None]:
    def follow(element: Any, old: str, new: str) -> None:
        for field in fields:
            words = list(getattr(element, field))
            if old in words:
                setattr(element, field, [new if word == old else word for word in words])

    return follow


def _sensor(sensor: Any, old: str, new: str) -> None:
    if int(sensor.objtype) in _BODY_TYPES and sensor.objname == old:
        sensor.objname = new
    if int(sensor.reftype) in _BODY_TYPES and sensor.refname == old:
        sensor.refname = new


def _equality(equality: Any, old: str, new: str) -> None:
    if int(equality.objtype) in _BODY_TYPES:
        _follow_word("name1", "name2")(equality, old, new)


def _tuple(group: Any, old: str, new: str) -> None:
    kinds = [int(kind) for kind in group.objtype]
    pairs = zip(kinds, list(group.objname), strict=True)
    group.objname = [new if kind in _BODY_TYPES and word == old else word for kind, word in pairs]


_FOLLOWERS: dict[str, Callable[[Any, str, str], None]] = {
    "cameras": _follow_word("targetbody"),
    "lights": _follow_word("targetbody"),
    "sensors": _sensor,
    "equalities": _equality,
    "excludes": _follow_word("bodyname1", "bodyname2"),
    "skins": _follow_list("bodyname"),
    "flexes": _follow_list("nodebody", "vertbody"),
    "tuples": _tuple,
}
