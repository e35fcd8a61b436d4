"""Scaling what has a place and a shape: the tree of bodies, and the meshes, heightfields, flexes and skins in it."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import mujoco
import numpy as np

from urlab.compile.scaling.stretch import Array, Space, Stretch, grow, rotation, spelled
from urlab.errors import EditError
from urlab.mujoco_versions import present

_SLIDE = int(mujoco.mjtJoint.mjJNT_SLIDE)
_QUAT = mujoco.mjtOrientation.mjORIENTATION_QUAT

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
_SPHERE = int(mujoco.mjtGeom.mjGEOM_SPHERE)
_CAPSULE = int(mujoco.mjtGeom.mjGEOM_CAPSULE)
_CYLINDER = int(mujoco.mjtGeom.mjGEOM_CYLINDER)
_SQUARE = (int(mujoco.mjtGeom.mjGEOM_BOX), int(mujoco.mjtGeom.mjGEOM_ELLIPSOID))
_OWN_MESH = (int(mujoco.mjtGeom.mjGEOM_MESH), int(mujoco.mjtGeom.mjGEOM_SDF))


def scale_tree(spec: Any, space: Space) -> None:
    """Scale every element that has a place in the tree; EditError names the one that cannot be scaled."""
    for geom in spec.geoms:
        _geom(geom, space)
    for site in spec.sites:
        _site(site, space)
    for joint in spec.joints:
        _joint(joint, space.around(joint))
    for camera in spec.cameras:
        _camera(camera, space.around(camera))
    for light in spec.lights:
        _light(light, space.around(light))
    for body in spec.bodies[1:]:
        _body(body, space)
    for frame in spec.frames:
        _frame(frame, space)


def _geom(geom: Any, space: Space) -> None:
    _settle_fromto(geom, space)
    inside = space.inside(geom)
    _check_shape(geom, inside)
    geom.pos = space.around(geom).point(geom.pos)
    geom.fromto *= inside.mean
    geom.size *= _size_factors(geom, inside)
    grow(geom, inside.mean, "margin", "gap")
    geom.friction[1:] *= inside.mean
    geom.solimp[2] *= inside.mean
    if present(geom, "surfacevel"):
        geom.surfacevel[:3] = inside.point(geom.surfacevel[:3])


def _site(site: Any, space: Space) -> None:
    _settle_fromto(site, space)
    site.pos = space.around(site).point(site.pos)
    site.fromto *= space.whole.mean
    site.size *= _size_factors(site, space.inside(site))


def _joint(joint: Any, stretch: Stretch) -> None:
    joint.pos = stretch.point(joint.pos)
    if int(joint.type) != _SLIDE:
        return
    grow(joint, stretch.mean, "range", "ref", "springref", "springyield", "margin")
    joint.solimp_limit[2] *= stretch.mean
    joint.solimp_friction[2] *= stretch.mean


def _camera(camera: Any, stretch: Stretch) -> None:
    """Intrinsics in metres scale together, which leaves the picture as it is; so does an orthographic view's height."""
    camera.pos = stretch.point(camera.pos)
    camera.ipd *= stretch.mean
    for lengths in (camera.intrinsic, camera.sensor_size, camera.focal_length, camera.principal_length):
        lengths *= stretch.mean
    if int(camera.proj) == int(mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC):
        camera.fovy *= stretch.mean


def _light(light: Any, stretch: Stretch) -> None:
    """As bright at the scaled distance as it was before."""
    light.pos = stretch.point(light.pos)
    grow(light, stretch.mean, "range", "bulbradius")
    light.attenuation[1:] /= stretch.mean, stretch.mean**2


def _body(body: Any, space: Space) -> None:
    if body.plugin.active:
        raise EditError(f"body {body.name!r} has a plugin, whose parameters only the plugin can scale")
    if body.explicitinertial:
        _inertial(body, space.inside(body))
    body.pos = space.around(body).point(body.pos)


def _frame(frame: Any, space: Space) -> None:
    """A scale that the author has given it acts on the scaled contents, which comes to the same if both line up."""
    if not np.all(frame.scale == frame.scale[0]) and not space.inside(frame).is_aligned:
        raise EditError(
            f"frame {frame.name!r} has a scale of its own, {spelled(frame.scale)}, and is turned against the axes "
            f"of the scale {spelled(space.whole.factors)}; one factor for all axes would do"
        )
    frame.pos = space.around(frame).point(frame.pos)


def _inertial(body: Any, stretch: Stretch) -> None:
    """The stated mass stays and is spread as far as the body is."""
    body.ipos = stretch.point(body.ipos)
    if stretch.is_uniform:
        grow(body, stretch.mean**2, "inertia", "fullinertia")
        return
    inertia = _inertia_in_body(body)
    moments = np.trace(inertia) / 2 * np.eye(3) - inertia
    spread = stretch.matrix @ moments @ stretch.matrix
    inertia = np.trace(spread) * np.eye(3) - spread
    body.fullinertia = [*np.diag(inertia), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
    body.inertia, body.iquat, body.ialt.type = np.zeros(3), (1, 0, 0, 0), _QUAT


def _inertia_in_body(body: Any) -> Array:
    """The stated inertia as a matrix, in the body's axes."""
    if not np.isnan(body.fullinertia[0]):
        xx, yy, zz, xy, xz, yz = body.fullinertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    turn = rotation(body.iquat, body.ialt, body.compiler)
    return turn @ np.diag(body.inertia) @ turn.T


def _size_factors(element: Any, inside: Stretch) -> Array:
    """What the three sizes of a geom or site are multiplied by; ``inside`` is the stretch in its own frame.

    Round shapes that are stretched unevenly, which only sites may be, take the mean of the factors across. Sizes that
    the shape does not use stay.
    """
    x, y, z = inside.factors
    if int(element.type) == _SPHERE:
        return np.array([inside.mean, 1, 1])
    if int(element.type) in (_CAPSULE, _CYLINDER):
        return np.array([x if inside.is_uniform else np.sqrt(x * y), z, 1])
    return np.array([x, y, inside.mean if int(element.type) == _PLANE else z])  # a plane's third is its grid's spacing


def _settle_fromto(element: Any, space: Space) -> None:
    """Before an uneven stretch, write a geom or site that goes from one point to another as pose and size.

    The sizes across may have to differ afterwards, which ``fromto`` cannot say.
    """
    if space.whole.is_uniform or np.isnan(element.fromto[0]):
        return
    begin, end = np.array(element.fromto[:3]), np.array(element.fromto[3:])
    half_length, quat_wxyz = np.linalg.norm(begin - end) / 2, np.zeros(4)
    mujoco.mju_quatZ2Vec(quat_wxyz, begin - end)
    element.pos, element.quat = (begin + end) / 2, quat_wxyz
    element.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    across = element.size[0]
    if int(element.type) in _SQUARE:
        element.size = across, across, half_length
    else:
        element.size[1] = half_length
    element.fromto = np.full(6, np.nan)


def _check_shape(geom: Any, inside: Stretch) -> None:
    """EditError when the geom would be of another kind after the stretch, which ``inside`` gives in its own frame."""
    if geom.plugin.active:
        raise EditError(f"geom {geom.name!r} is shaped by a plugin, whose parameters only the plugin can scale")
    if not inside.is_uniform:
        _check_stretch(geom, inside)


def _check_stretch(geom: Any, inside: Stretch) -> None:
    kind = int(geom.type)
    called = f"geom {geom.name!r} ({mujoco.mjtGeom(kind).name.removeprefix('mjGEOM_').lower()})"
    one_factor = f"takes one factor for all axes, not {spelled(inside.factors)}"
    if geom.meshname and kind not in _OWN_MESH:
        raise EditError(f"{called}, which is fitted to mesh {geom.meshname!r}, {one_factor}")
    if kind in (_SPHERE, _CAPSULE) and not inside.agrees_along(0, 1, 2):
        hint = "; an ellipsoid can be stretched" if kind == _SPHERE else ""
        raise EditError(f"{called} {one_factor}{hint}")
    if not inside.is_aligned:
        raise EditError(
            f"{called} is turned against the axes of the scale; "
            "under different factors it may only be turned by multiples of 90 degrees"
        )
    if kind == _CYLINDER and not inside.agrees_along(0, 1):
        raise EditError(f"{called} takes one factor across its axis, not {spelled(inside.factors[:2])}")


@dataclass(frozen=True)
class _AssetKind:
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


_MESHES = _AssetKind(
    "meshes", "add_mesh", (int(mujoco.mjtGeom.mjGEOM_MESH), int(mujoco.mjtGeom.mjGEOM_SDF)), "meshname",
    "scale", (0, 1, 2),
    (
        "file", "content_type", "refpos", "refquat", "inertia", "smoothnormal", "needsdf", "maxhullvert", "uservert",
        "usernormal", "usertexcoord", "userface", "userfacenormal", "userfacetexcoord", "usernode", "usertet",
        "material", "octree_maxdepth",
    ),
)  # fmt: skip
_HFIELDS = _AssetKind(
    "hfields", "add_hfield", (int(mujoco.mjtGeom.mjGEOM_HFIELD),), "hfieldname",
    "size", (0, 1, 2, 2), ("file", "content_type", "nrow", "ncol", "userdata"),
)  # fmt: skip


def scale_assets(spec: Any, space: Space) -> None:
    """Scale meshes and heightfields; EditError when a plugin makes one of them."""
    for mesh in spec.meshes:
        if mesh.plugin.active:
            raise EditError(f"mesh {mesh.name!r} is shaped by a plugin, whose parameters only the plugin can scale")
    for kind in (_MESHES, _HFIELDS):
        if space.whole.is_uniform:
            for asset in getattr(spec, kind.plural):
                setattr(asset, kind.size, getattr(asset, kind.size) * space.whole.mean)
        else:
            _stretch(spec, space, kind)


def _stretch(spec: Any, space: Space, kind: _AssetKind) -> None:
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


def _copy(spec: Any, asset: Any, kind: _AssetKind) -> Any:
    """Another asset like this one, under a name that is free."""
    taken = {one.name for one in getattr(spec, kind.plural)}
    name = next(name for number in count(2) if (name := f"{asset.name}_{number}") not in taken)
    copy = getattr(spec, kind.adder)(name=name)
    for field in present(asset, *kind.fields):
        setattr(copy, field, getattr(asset, field))
    return copy


def scale_flexes(spec: Any, whole: Stretch) -> None:
    """Scale flexes by one factor; what they are made of stays, so that thicker ones are stiffer."""
    for flex in spec.flexes:
        flex.vert, flex.node = _scaled(flex.vert, whole), _scaled(flex.node, whole)
        grow(flex, whole.mean, "size", "sectionsize")
        for lengths in (flex.friction[1:], flex.solimp[2:3]):
            lengths *= whole.mean
        grow(flex, whole.mean, "radius", "margin", "gap")
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
