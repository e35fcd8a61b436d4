"""A light of a level."""

from dataclasses import dataclass, field

from urlab.geometry import Pose, Vec3
from urlab_wire.enums import LightKind

DEFAULT_INTENSITY = 5000.0


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
