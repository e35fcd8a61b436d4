"""A level as data: actors and lights in order, and the physics options that it overrides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from urlab.geometry import Pose, Vec3
from urlab_wire.enums import LightKind

LEVELS_PACKAGE = "/Game/Levels/"
MANAGER_NAME = "MjManager"
UNIT_SCALE: Vec3 = (1.0, 1.0, 1.0)
DEFAULT_INTENSITY = 5000.0
MIN_THRESHOLD, MAX_THRESHOLD = 0.01, 1.0


class QuickConvert(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``static`` stands still, ``driven`` follows its mocap pose, neither falls freely.

    With ``complex_mesh`` the collision shape is a convex decomposition, finer with a smaller ``coacd_threshold``;
    without it, the convex hull. ``friction`` is MuJoCo's: sliding, torsional, rolling.
    """

    static: bool = False
    complex_mesh: bool = False
    coacd_threshold: float = 0.05
    driven: bool = False
    friction: Vec3 = (1.0, 1.0, 1.0)


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


@dataclass(frozen=True, slots=True)
class Light:
    """It shines along +X of its pose. ``color`` is (r, g, b) in 0..1; ``intensity`` 5000 is MuJoCo's usual brightness.

    ``rotation_euler`` is the pose's rotation as the author gave it: roll, pitch, yaw in degrees.
    """

    name: str
    kind: LightKind = LightKind.DIRECTIONAL
    actor_id: str = ""
    pose: Pose = field(default_factory=Pose)
    rotation_euler: Vec3 = (0.0, 0.0, 0.0)
    intensity: float = DEFAULT_INTENSITY
    color: Vec3 = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Level:
    """What exists, as data. Immutable: an edit makes another level.

    ``has_manager`` says that the level brings the actor which the original needs in order to simulate. ``randomize``
    are the entries of `urlab.scene.randomisation` that a reset with a seed draws.
    """

    name: str
    actors: tuple[Actor, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    lights: tuple[Light, ...] = ()
    has_manager: bool = False
    randomize: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Its path in the protocol."""
        return f"{LEVELS_PACKAGE}{self.name}"

    def path_of(self, actor_name: str) -> str:
        """An actor's path in the protocol."""
        return f"{self.path}.{self.name}:PersistentLevel.{actor_name}"
