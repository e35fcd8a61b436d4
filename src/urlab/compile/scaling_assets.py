"""Scaling what the shapes of a model refer to: meshes, heightfields, flexes and skins."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import mujoco
import numpy as np

from urlab.compile.scaling_stretch import Array, Space, Stretch
from urlab.errors import EditError


@dataclass(frozen=True)
class _Kind:
    """A kind of asset: where a spec keeps it, who uses it, and what a copy has to copy.

    ``size`` is the field that scales; its numbers follow the factors along ``axes``.
    """

    plural: str
    adder: str
    user_types: tuple[int, ...]
    reference: str
    size: str
    axes: tuple[int, ...]
    fields: tuple[str, ...]


_MESHES = _Kind(
    "meshes", "add_mesh", (int(mujoco.mjtGeom.mjGEOM_MESH), int(mujoco.mjtGeom.mjGEOM_SDF)), "meshname",
    "scale", (0, 1, 2),
    (
        "file", "content_type", "refpos", "refquat", "inertia", "smoothnormal", "needsdf", "maxhullvert", "uservert",
        "usernormal", "usertexcoord", "userface", "userfacenormal", "userfacetexcoord", "usernode", "usertet",
        "material", "octree_maxdepth",
    ),
)  # fmt: skip
_HFIELDS = _Kind(
    "hfields", "add_hfield", (int(mujoco.mjtGeom.mjGEOM_HFIELD),), "hfieldname",
    "size", (0, 1, 2, 2), ("file", "content_type", "nrow", "ncol", "userdata"),
)  # fmt: skip


def scale_assets(spec: Any, space: Space) -> None:
    """Scale meshes and heightfields; EditError when a plugin makes one of them."""
    for mesh in spec.meshes:
        if mesh.plugin.active:
            raise EditError(
                f"mesh {mesh.name!r} is shaped by a plugin, whose parameters nobody but the plugin can scale"
            )
    for kind in (_MESHES, _HFIELDS):
        if space.whole.is_uniform:
            for asset in getattr(spec, kind.plural):
                setattr(asset, kind.size, getattr(asset, kind.size) * space.whole.mean)
        else:
            _stretch(spec, space, kind)


def _stretch(spec: Any, space: Space, kind: _Kind) -> None:
    """Stretch assets as their users need them; users that are turned differently get an asset each."""
    assets = {asset.name: asset for asset in getattr(spec, kind.plural)}
    authored = {name: np.array(getattr(asset, kind.size)) for name, asset in assets.items()}
    made: dict[str, dict[tuple[str, ...], str]] = {name: {} for name in assets}
    for user in (*spec.geoms, *spec.sites):
        name = getattr(user, kind.reference, "") if int(user.type) in kind.user_types else ""
        if name not in assets:
            continue
        factors, variants = space.inside(user).factors, made[name]
        key = tuple(f"{factor:.6g}" for factor in factors)
        if key not in variants:
            variant = _copy(spec, assets[name], kind) if variants else assets[name]
            setattr(variant, kind.size, authored[name] * factors[list(kind.axes)])
            variants[key] = variant.name
        setattr(user, kind.reference, variants[key])


def _copy(spec: Any, asset: Any, kind: _Kind) -> Any:
    """Another asset like this one, under a name that nobody has."""
    taken = {one.name for one in getattr(spec, kind.plural)}
    name = next(name for number in count(2) if (name := f"{asset.name}_{number}") not in taken)
    copy = getattr(spec, kind.adder)(name=name)
    for field in kind.fields:
        setattr(copy, field, getattr(asset, field))
    return copy


def scale_flexes(spec: Any, whole: Stretch) -> None:
    """Scale flexes by one factor; what they are made of stays, so that thicker ones are stiffer."""
    for flex in spec.flexes:
        flex.vert, flex.node = _scaled(flex.vert, whole), _scaled(flex.node, whole)
        for lengths in (flex.size, flex.sectionsize, flex.friction[1:], flex.solimp[2:3]):
            lengths *= whole.mean
        flex.radius *= whole.mean
        flex.margin *= whole.mean
        flex.gap *= whole.mean
        if flex.thickness > 0:  # -1 is unset
            flex.thickness *= whole.mean


def scale_skins(spec: Any, whole: Stretch) -> None:
    """Scale skins by one factor; EditError when the vertices are in a file."""
    for skin in spec.skins:
        if skin.file:
            raise EditError(f"skin {skin.name!r} cannot be scaled, because its vertices are in a file ({skin.file})")
        skin.vert, skin.bindpos = _scaled(skin.vert, whole), _scaled(skin.bindpos, whole)
        skin.inflate *= whole.mean


def _scaled(values: Any, whole: Stretch) -> Array:
    return np.array(list(values)) * whole.mean
