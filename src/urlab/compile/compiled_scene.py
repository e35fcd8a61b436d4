"""What compilation yields: one immutable description of a scene that physics can run.

Short names are compiled names without ``<prefix>_``. Ids and offsets are those of the compiled model. All tuples
are in ascending id order, which is the order of every array on the wire.
"""

from dataclasses import dataclass
from typing import Any

from urlab.compile.assemble import PlacedActor
from urlab.scene.sidecar import Sidecar
from urlab_wire.enums import CameraMode


@dataclass(frozen=True, slots=True)
class ModelSlot:
    """One element of the model: its id and its names."""

    id: int
    name: str
    short: str


@dataclass(frozen=True, slots=True)
class BodySlot(ModelSlot):
    """One body."""


@dataclass(frozen=True, slots=True)
class JointSlot(ModelSlot):
    """One joint: where its numbers are. ``kind`` is mjtJoint (0 free, 1 ball, 2 slide, 3 hinge)."""

    kind: int
    qpos: slice
    qvel: slice


@dataclass(frozen=True, slots=True)
class ActuatorSlot(ModelSlot):
    """One actuator. ``act_index`` is its activation's index in ``data.act``, or None when it has none.

    ``joint`` is the driven joint when the transmission is joint or jointinparent.
    """

    kind: str
    joint: JointSlot | None
    act_index: int | None


@dataclass(frozen=True, slots=True)
class ControlSlot(ModelSlot):
    """One control signal; ``id`` is its index in ``data.ctrl``.

    Nearly every actuator has one, of the actuator's name and id. One with several has ``name``, ``name[1]`` ...; one
    with none has none. ``force_index`` is the index in ``data.actuator_force`` of the force that belongs to it, or
    None: an actuator may have fewer forces than controls.
    """

    actuator: ActuatorSlot
    force_index: int | None


@dataclass(frozen=True, slots=True)
class SensorSlot(ModelSlot):
    """One sensor and its slice of ``data.sensordata``."""

    data: slice


@dataclass(frozen=True, slots=True)
class CameraSlot(ModelSlot):
    """One camera: resolution (width, height) in pixels, vertical field of view in degrees."""

    mode: CameraMode
    resolution: tuple[int, int]
    fovy: float


@dataclass(frozen=True, slots=True)
class CompiledArticulation:
    """One robot in the compiled model."""

    prefix: str
    actor_id: str
    joints: tuple[JointSlot, ...]
    actuators: tuple[ActuatorSlot, ...]
    controls: tuple[ControlSlot, ...]
    sensors: tuple[SensorSlot, ...]
    bodies: tuple[BodySlot, ...]
    cameras: tuple[CameraSlot, ...]
    sidecar: Sidecar
    start_key: int | None = None
    """The id of the keyframe that it starts from."""
    root_joint: JointSlot | None = None
    """The free joint of the tree that its first hinge, slide or ball joint is in; None when that tree is fixed."""


@dataclass(frozen=True, slots=True)
class CompiledEntity:
    """One body that clients see in ``entities``, by compiled name. ``free_joint`` is None when it is not free."""

    name: str
    actor_name: str
    actor_id: str
    body_id: int
    free_joint: JointSlot | None


@dataclass(frozen=True)
class CompiledScene:
    """One compiled scene. The model's options and parameters may change while it runs; nothing else does."""

    model: Any
    spec: Any
    articulations: tuple[CompiledArticulation, ...]
    entities: tuple[CompiledEntity, ...]
    global_cameras: tuple[CameraSlot, ...]
    joints: tuple[JointSlot, ...]
    placed: tuple[PlacedActor, ...]
    notes: tuple[str, ...] = ()

    def articulation(self, prefix: str) -> CompiledArticulation | None:
        """The articulation of that prefix, or None."""
        return next((one for one in self.articulations if one.prefix == prefix), None)
