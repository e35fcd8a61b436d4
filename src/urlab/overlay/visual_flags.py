"""What MuJoCo draws over a model for those who look into it: contacts, joints, frames, names and the like.

Each overlay has a plain word; most are a flag of MuJoCo's own (mjtVisFlag). ``frames`` and ``names`` also take the kind
of element that they are drawn at (mjtFrame, mjtLabel).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco

from urlab.errors import BadValue, known

_FLAG, _FRAME, _LABEL = mujoco.mjtVisFlag, mujoco.mjtFrame, mujoco.mjtLabel

FLAGS: dict[str, Any] = {
    "contacts": _FLAG.mjVIS_CONTACTPOINT,
    "contact_forces": _FLAG.mjVIS_CONTACTFORCE,
    "split_contact_forces": _FLAG.mjVIS_CONTACTSPLIT,
    "joints": _FLAG.mjVIS_JOINT,
    "actuators": _FLAG.mjVIS_ACTUATOR,
    "activations": _FLAG.mjVIS_ACTIVATION,
    "com": _FLAG.mjVIS_COM,
    "inertia": _FLAG.mjVIS_INERTIA,
    "scaled_inertia": _FLAG.mjVIS_SCLINERTIA,
    "tendons": _FLAG.mjVIS_TENDON,
    "constraints": _FLAG.mjVIS_CONSTRAINT,
    "islands": _FLAG.mjVIS_ISLAND,
    "perturbation": _FLAG.mjVIS_PERTFORCE,
    "transparent": _FLAG.mjVIS_TRANSPARENT,
    "skeleton": _FLAG.mjVIS_AUTOCONNECT,
    "cameras": _FLAG.mjVIS_CAMERA,
    "lights": _FLAG.mjVIS_LIGHT,
    "rangefinders": _FLAG.mjVIS_RANGEFINDER,
    "convex_hulls": _FLAG.mjVIS_CONVEXHULL,
    "textures": _FLAG.mjVIS_TEXTURE,
    "static_bodies": _FLAG.mjVIS_STATIC,
    "skins": _FLAG.mjVIS_SKIN,
    "flex_vertices": _FLAG.mjVIS_FLEXVERT,
    "flex_edges": _FLAG.mjVIS_FLEXEDGE,
    "flex_faces": _FLAG.mjVIS_FLEXFACE,
    "flex_skins": _FLAG.mjVIS_FLEXSKIN,
    "body_boxes": _FLAG.mjVIS_BODYBVH,
    "mesh_boxes": _FLAG.mjVIS_MESHBVH,
    "sdf_iterations": _FLAG.mjVIS_SDFITER,
}
"""Overlays that are on or off."""

FRAMES: dict[str, Any] = {
    "body": _FRAME.mjFRAME_BODY,
    "geom": _FRAME.mjFRAME_GEOM,
    "site": _FRAME.mjFRAME_SITE,
    "camera": _FRAME.mjFRAME_CAMERA,
    "light": _FRAME.mjFRAME_LIGHT,
    "contact": _FRAME.mjFRAME_CONTACT,
    "world": _FRAME.mjFRAME_WORLD,
}
NAMES: dict[str, Any] = {
    "body": _LABEL.mjLABEL_BODY,
    "joint": _LABEL.mjLABEL_JOINT,
    "geom": _LABEL.mjLABEL_GEOM,
    "site": _LABEL.mjLABEL_SITE,
    "camera": _LABEL.mjLABEL_CAMERA,
    "light": _LABEL.mjLABEL_LIGHT,
    "tendon": _LABEL.mjLABEL_TENDON,
    "actuator": _LABEL.mjLABEL_ACTUATOR,
    "constraint": _LABEL.mjLABEL_CONSTRAINT,
    "flex": _LABEL.mjLABEL_FLEX,
    "skin": _LABEL.mjLABEL_SKIN,
    "contact": _LABEL.mjLABEL_CONTACTPOINT,
    "contact_force": _LABEL.mjLABEL_CONTACTFORCE,
    "island": _LABEL.mjLABEL_ISLAND,
}
KINDS = {"frames": FRAMES, "names": NAMES}
"""Overlays that are off, or drawn at one kind of element; true is ``body``."""

OVERLAY_WORDS = (*FLAGS, *KINDS)

_HIDDEN_AT_FIRST = (_FLAG.mjVIS_RANGEFINDER, _FLAG.mjVIS_PERTOBJ)
_DYNAMIC = frozenset(
    ("contacts", "contact_forces", "split_contact_forces", "actuators", "activations", "constraints", "islands")
) | {"perturbation", "rangefinders", "body_boxes", "mesh_boxes", "sdf_iterations"}
"""Overlays of what does not follow from the positions alone."""

_NAMED_WITH = {
    "joint": "joints",
    "camera": "cameras",
    "light": "lights",
    "actuator": "actuators",
    "constraint": "constraints",
    "contact": "contacts",
    "contact_force": "contact_forces",
    "island": "islands",
}
"""MuJoCo writes these names only where the thing itself is drawn."""

_DYNAMIC_KINDS = frozenset(("contact", "contact_force", "constraint", "island", "actuator"))
_GEOMS_PER_ELEMENT = 8
_GEOMS_PER_CONTACT = 12


@dataclass(frozen=True, slots=True)
class VisualFlags:
    """Which overlays were chosen; all others are as MuJoCo has them, but for beams of rangefinders."""

    chosen: Mapping[str, bool | str] = field(default_factory=dict)

    def changed(self, changes: Mapping[str, bool | str]) -> "VisualFlags":
        """With these overlays switched, the others staying; BadValue names what exists."""
        return VisualFlags({**self.chosen, **{word: _checked(word, value) for word, value in changes.items()}})

    def in_force(self) -> dict[str, bool | str]:
        """Every overlay: whether it is drawn, or where."""
        option = default_option()
        defaults = {word: bool(option.flags[flag]) for word, flag in FLAGS.items()}
        return {**defaults, **dict.fromkeys(KINDS, False), **self.chosen}

    def apply(self, option: Any) -> None:
        """Give an MjvOption what was chosen."""
        for word, value in self.chosen.items():
            if word in FLAGS:
                option.flags[FLAGS[word]] = value
        for flag in (_FLAG.mjVIS_PERTOBJ, _FLAG.mjVIS_SELECT):  # what is dragged, and where
            option.flags[flag] = self.chosen.get("perturbation", False)
        option.frame = int(FRAMES.get(str(self.chosen.get("frames")), _FRAME.mjFRAME_NONE))
        named = str(self.chosen.get("names"))
        option.label = int(NAMES.get(named, _LABEL.mjLABEL_NONE))
        if named in _NAMED_WITH:
            option.flags[FLAGS[_NAMED_WITH[named]]] = 1

    @property
    def needs_dynamics(self) -> bool:
        """Whether they show more than follows from the positions."""
        shown = {word for word, value in self.chosen.items() if value}
        return not _DYNAMIC.isdisjoint(shown) or not _DYNAMIC_KINDS.isdisjoint(map(str, self.chosen.values()))

    def more_geoms(self, model: Any, data: Any) -> int:
        """How many geoms they can add to a scene."""
        if not any(self.chosen.values()):
            return 0
        elements = model.ngeom + model.nbody + model.njnt + model.nsite + model.ncam + model.nlight + model.nu
        elements += model.ntendon + model.neq + model.nwrap + model.nflexvert
        boxes = model.nbvh if self.chosen.get("body_boxes") or self.chosen.get("mesh_boxes") else 0
        return int(_GEOMS_PER_ELEMENT * elements + _GEOMS_PER_CONTACT * (data.ncon + len(data.efc_pos)) + boxes)


def default_option() -> Any:
    """What a view shows of a model when nothing was chosen."""
    option = mujoco.MjvOption()
    for flag in _HIDDEN_AT_FIRST:
        option.flags[flag] = 0
    return option


def _checked(word: str, value: bool | str) -> bool | str:
    if word in KINDS:
        if isinstance(value, str) and value not in KINDS[word]:
            raise BadValue(f"{word} must be true, false or one of {known(KINDS[word])}, not {value!r}")
        return "body" if value is True else value
    if word not in FLAGS:
        raise BadValue(f"there is no overlay {word!r}; there are: {known(OVERLAY_WORDS)}")
    if not isinstance(value, bool):
        raise BadValue(f"{word} must be true or false, not {value!r}")
    return value
