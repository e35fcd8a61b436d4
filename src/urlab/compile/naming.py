"""Names for elements whose author gave none, so that every element can be addressed."""

from collections.abc import Iterable
from typing import Any

import mujoco

_KINDS = (
    ("body", "bodies"), ("geom", "geoms"), ("site", "sites"), ("camera", "cameras"), ("light", "lights"),
    ("actuator", "actuators"), ("sensor", "sensors"), ("tendon", "tendons"), ("equality", "equalities"),
    ("key", "keys"), ("pair", "pairs"), ("exclude", "excludes"),
)  # fmt: skip


def name_the_unnamed(spec: Any) -> None:
    """Name every unnamed element ``<kind>_<number>``; an unnamed free joint is called ``free``."""
    for kind, plural in _KINDS:
        elements = getattr(spec, plural)
        _name(elements, [f"{kind}_{number}" for number in range(len(elements))])
    _name(spec.joints, [_joint_name(joint, number) for number, joint in enumerate(spec.joints)])


def _name(elements: Iterable[Any], wanted: list[str]) -> None:
    taken = {element.name for element in elements}
    for element, name in zip(elements, wanted, strict=True):
        if not element.name:
            element.name = _untaken(name, taken)
            taken.add(element.name)


def _joint_name(joint: Any, number: int) -> str:
    return "free" if joint.type == mujoco.mjtJoint.mjJNT_FREE else f"joint_{number}"


def _untaken(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name
