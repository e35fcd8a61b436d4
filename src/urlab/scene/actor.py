"""An actor: one model, placed in a level."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from urlab.geometry import Pose, Vec3
from urlab.scene.quick_convert import QuickConvert

UNIT_SCALE: Vec3 = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Actor:
    """``name`` prefixes every compiled name; ``actor_id`` is the handle that a client chose, or empty.

    ``blueprint`` is the name of a shipped model, ``Imports/<name>`` for an import, or the path of a model file.
    ``keyframe`` names the keyframe of its model that it starts from (joints and controls), or is empty.
    ``config`` replaces what the model's sidecar says, field by field. ``quick_convert`` is for static meshes.
    """

    name: str
    blueprint: str
    actor_id: str = ""
    pose: Pose = field(default_factory=Pose)
    keyframe: str = ""
    scale: Vec3 = UNIT_SCALE
    tags: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    quick_convert: QuickConvert | None = None
