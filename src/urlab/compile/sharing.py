"""Actors of one model share its materials, textures, meshes and heightfields: a scene of a thousand needs them once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from urlab.compile.blueprint import Blueprint

_REFERENCES = (
    ("geoms", "material"), ("geoms", "meshname"), ("geoms", "hfieldname"), ("sites", "material"),
    ("tendons", "material"), ("skins", "material"), ("flexes", "material"), ("lights", "texture"),
)  # fmt: skip
_ASSETS = ("materials", "textures", "meshes", "hfields")


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
