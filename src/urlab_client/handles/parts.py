"""The parts of an articulation: its joints, actuators, sensors and bodies."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from urlab_client.checks import finite
from urlab_client.enums import ActuatorType
from urlab_client.lookup import FixedAttributes

if TYPE_CHECKING:
    from urlab_client.handles.articulation import URLabArticulation

Part = TypeVar("Part", "Joint", "Actuator", "Sensor", "Body")


JOINT_WORDS = ("free", "ball", "slide", "hinge")


@dataclass(frozen=True, slots=True, repr=False)
class Joint:
    """Where a joint's numbers are.

    ``id`` is MuJoCo's, ``jnt_type`` is 0 free, 1 ball, 2 slide, 3 hinge. The offsets point into ``client.data``, the
    local ones into the articulation's ``qpos_array`` and ``qvel_array``. ``range`` is (low, high) in radians or
    metres, None when unlimited.
    """

    name: str
    id: int
    jnt_type: int
    body_id: int
    qpos_offset: int
    qpos_local_offset: int
    qpos_dim: int
    qvel_offset: int
    qvel_local_offset: int
    qvel_dim: int
    range: tuple[float, float] | None

    def __repr__(self) -> str:
        limits = "" if self.range is None else f", range=({self.range[0]:g}, {self.range[1]:g})"
        return f"Joint({self.name!r}, {JOINT_WORDS[self.jnt_type]}, id={self.id}{limits})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Actuator:
    """What the model says about an actuator, and its slot in the articulation's setpoint buffer.

    ``id`` is MuJoCo's; ``type`` is the kind that its author wrote; ``kp`` is the first number of its gain, ``kv`` the
    damping of a servo (else the second number of its gain); ``joint`` is the unprefixed joint that it drives;
    the ranges are (low, high), None when unlimited; ``trn_type`` is mjtTrn. ``gear``, ``gainprm`` and ``dynprm`` are
    copies of the model's.
    """

    name: str
    id: int
    type: ActuatorType | None
    joint: str | None
    ctrlrange: tuple[float, float] | None
    forcerange: tuple[float, float] | None
    kp: float | None
    kv: float | None
    trn_type: int
    gear: npt.NDArray[np.float64]
    gainprm: npt.NDArray[np.float64]
    dynprm: npt.NDArray[np.float64]
    _articulation: "URLabArticulation" = field(repr=False)
    _local: int = field(repr=False)
    ctrl_id: int = field(default=-1, repr=False)
    """Its index in ``data.ctrl``: the actuator's id, unless actuators of the model have several controls or none."""

    def __repr__(self) -> str:
        kind = self.type.value if self.type is not None else "general"
        drives = f", joint={self.joint!r}" if self.joint else ""
        limits = "" if self.ctrlrange is None else f", ctrlrange=({self.ctrlrange[0]:g}, {self.ctrlrange[1]:g})"
        return f"Actuator({self.name!r}, {kind}{drives}{limits})"

    def set_control(self, v: float) -> None:
        """Set this actuator's setpoint, from the next step on; ValueError unless it is finite."""
        self._articulation.ctrl_array[self._local] = finite(f"{self._articulation.prefix}: {self.name}", v)

    @property
    def value(self) -> float:
        """The setpoint in the buffer, in the actuator's own unit (a target, a torque, ...)."""
        return float(self._articulation.ctrl_array[self._local])

    @property
    def force(self) -> float | None:
        """The scalar force (N or N m) of the last reply at observation level full, else None."""
        return self._articulation.observed.force(self.name, self._local)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sensor:
    """What the model says about a sensor.

    ``id`` is MuJoCo's, ``dim`` the length of its output, ``sensor_type`` is mjtSensor, ``offset`` its place in
    ``client.data.sensordata``.
    """

    name: str
    id: int
    dim: int
    sensor_type: int
    offset: int
    _articulation: "URLabArticulation" = field(repr=False)

    def __repr__(self) -> str:
        return f"Sensor({self.name!r}, dim={self.dim}, id={self.id})"

    @property
    def latest(self) -> npt.NDArray[np.float64] | None:
        """The value of the last reply that carried sensors, (dim,), a copy; None before there was one."""
        values = self._articulation.observed.sensors.get(self.name)
        return None if values is None else np.array(values, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Body:
    """A body. Its pose is what the last reply said at observation level full, else that of ``client.data``.

    Without a local model it is None at other levels, except for the root, whose pose the articulation knows.
    """

    name: str
    id: int
    _articulation: "URLabArticulation" = field(repr=False)

    def __repr__(self) -> str:
        return f"Body({self.name!r}, id={self.id})"

    @property
    def xpos(self) -> npt.NDArray[np.float64] | None:
        """Position of the body frame, (3,) metres, world frame; a copy."""
        return self._pose("xpos")

    @property
    def xquat(self) -> npt.NDArray[np.float64] | None:
        """Orientation of the body frame, (4,) as w, x, y, z, world frame; a copy."""
        return self._pose("xquat")

    def _pose(self, key: str) -> npt.NDArray[np.float64] | None:
        observed = self._articulation.observed.bodies.get(self.name)
        if observed is not None and key in observed:
            return np.array(observed[key], dtype=np.float64)
        data = self._articulation._data
        if data is not None:
            return np.array(getattr(data, key)[self.id])
        if self.id != self._articulation.body_id:
            return None
        return self._articulation.root_pos_w if key == "xpos" else self._articulation.root_quat_w


for _kind in (Joint, Actuator, Sensor, Body):  # a frozen class with slots says nothing useful of a misspelt attribute
    _kind.__setattr__ = FixedAttributes.__setattr__  # type: ignore[assignment,method-assign]


def renewed(old: Mapping[str, Part], new: Mapping[str, Part]) -> dict[str, Part]:
    """The new parts; one that was there before by that name stays the same object, with what is known of it now."""
    return {name: _become(old[name], part) if name in old else part for name, part in new.items()}


def _become(old: Part, new: Part) -> Part:
    for one in fields(new):
        object.__setattr__(old, one.name, getattr(new, one.name))
    return old
