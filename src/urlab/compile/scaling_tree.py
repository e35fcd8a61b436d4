"""Scaling what sits in the tree of bodies: frames, bodies, joints, geoms, sites, cameras and lights."""

from typing import Any

import mujoco
import numpy as np

from urlab.compile.scaling_shapes import check_shape, settle_fromto, size_factors
from urlab.compile.scaling_stretch import Array, Space, Stretch, rotation, spelled
from urlab.errors import EditError

_SLIDE = int(mujoco.mjtJoint.mjJNT_SLIDE)
_QUAT = mujoco.mjtOrientation.mjORIENTATION_QUAT


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
    settle_fromto(geom, space)
    inside = space.inside(geom)
    check_shape(geom, inside)
    geom.pos = space.around(geom).point(geom.pos)
    geom.fromto *= inside.mean
    geom.size *= size_factors(geom, inside)
    geom.margin *= inside.mean
    geom.gap *= inside.mean
    geom.friction[1:] *= inside.mean
    geom.solimp[2] *= inside.mean
    geom.surfacevel[:3] = inside.point(geom.surfacevel[:3])


def _site(site: Any, space: Space) -> None:
    settle_fromto(site, space)
    site.pos = space.around(site).point(site.pos)
    site.fromto *= space.whole.mean
    site.size *= size_factors(site, space.inside(site))


def _joint(joint: Any, stretch: Stretch) -> None:
    joint.pos = stretch.point(joint.pos)
    if int(joint.type) != _SLIDE:
        return
    joint.range *= stretch.mean
    joint.ref *= stretch.mean
    joint.springref *= stretch.mean
    joint.springyield *= stretch.mean
    joint.margin *= stretch.mean
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
    light.range *= stretch.mean
    light.bulbradius *= stretch.mean
    light.attenuation[1:] /= stretch.mean, stretch.mean**2


def _body(body: Any, space: Space) -> None:
    if body.plugin.active:
        raise EditError(f"body {body.name!r} has a plugin, whose parameters nobody but the plugin can scale")
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
        body.inertia *= stretch.mean**2
        body.fullinertia *= stretch.mean**2
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
