"""The shapes of a body in URDF: what MuJoCo shows by default is visual, what can touch is collision.

Boxes, spheres and cylinders are themselves, a capsule is a cylinder and two spheres. Ellipsoids and meshes are the box
around them: a URDF names mesh files, and readers need not have any. Planes and heightfields are left out.
"""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from urlab.ros2.convert.pose import Pose, at
from urlab.ros2.convert.urdf_text import add_origin, number, numbers

Shape = tuple[Pose, str, dict[str, str]]
"""Where it is in its geom, the name of its element, and that element's attributes."""

_BOX, _SPHERE, _CYLINDER, _CAPSULE, _ELLIPSOID, _MESH = (
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{name}"))
    for name in ("BOX", "SPHERE", "CYLINDER", "CAPSULE", "ELLIPSOID", "MESH")
)
_SHOWN_GROUPS = 3
_PLAIN_RGBA = np.array([0.5, 0.5, 0.5, 1.0], np.float32)
"""The colour of a geom that leaves its colour to its material."""


def add_shapes(model: Any, link: ET.Element, body_id: int) -> None:
    """Add the visual and collision shapes of a body to its link."""
    first = int(model.body_geomadr[body_id])
    for geom in range(first, first + int(model.body_geomnum[body_id])):
        place = at(model.geom_pos[geom], model.geom_quat[geom])
        for pose, kind, attributes in _shapes(model, geom):
            if int(model.geom_group[geom]) < _SHOWN_GROUPS:
                visual = _add(link, "visual", place.then(pose), kind, attributes)
                _add_colour(model, visual, geom)
            if int(model.geom_contype[geom]) or int(model.geom_conaffinity[geom]):
                _add(link, "collision", place.then(pose), kind, attributes)


def _add(link: ET.Element, role: str, pose: Pose, kind: str, attributes: dict[str, str]) -> ET.Element:
    element = ET.SubElement(link, role)
    add_origin(element, pose)
    ET.SubElement(ET.SubElement(element, "geometry"), kind, attributes)
    return element


def _add_colour(model: Any, visual: ET.Element, geom: int) -> None:
    rgba, material = model.geom_rgba[geom], int(model.geom_matid[geom])
    if material >= 0 and np.array_equal(rgba, _PLAIN_RGBA):
        rgba = model.mat_rgba[material]
    name = ",".join(f"{float(one):.3g}" for one in rgba)
    ET.SubElement(ET.SubElement(visual, "material", name=name), "color", rgba=numbers(rgba))


def _shapes(model: Any, geom: int) -> Iterator[Shape]:
    """What a geom is made of."""
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind == _BOX:
        yield at(), "box", {"size": numbers(2 * size)}
    elif kind == _SPHERE:
        yield at(), "sphere", {"radius": number(size[0])}
    elif kind in (_CYLINDER, _CAPSULE):
        yield at(), "cylinder", {"radius": number(size[0]), "length": number(2 * size[1])}
        for end in (size[1], -size[1]) if kind == _CAPSULE else ():
            yield at((0.0, 0.0, end)), "sphere", {"radius": number(size[0])}
    elif kind in (_ELLIPSOID, _MESH):
        centre, half = model.geom_aabb[geom][:3], model.geom_aabb[geom][3:]
        yield at(centre), "box", {"size": numbers(2 * half)}
