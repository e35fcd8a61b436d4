"""Messages of sensors. Each source reads the same sensors out of every state; `urlab.ros2.convert.sensors` picks them.

A source has a ``name``, a ``type_name`` and ``convert(state)``, which raises `SceneChanged` when the state is another
scene's. It never changes; any thread.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from urlab.ros2.convert.geometry import quaternion, vector3
from urlab.ros2.convert.pose import Pose, at
from urlab.ros2.convert.robot_state import RobotState
from urlab.ros2.convert.stamps import header, time_message
from urlab.ros2.messages import make
from urlab_wire.stream_messages import StateFull

_UNKNOWN = np.array([-1.0] + 8 * [0.0])
"""The covariance of what an IMU does not measure."""

_MEASURED = np.zeros(9)
_INFRARED = 1


@dataclass(frozen=True, eq=False)
class ImuSource:
    """sensor_msgs/Imu of one site, in its frame: rad/s, m/s^2 (+9.81 up at rest); the orientation is that in the world.

    What has no sensor (None) is zero, and the first number of its covariance is -1. ``turn`` is the pose of the site
    in what ``framequat`` is the orientation of.
    """

    type_name: ClassVar[str] = "sensor_msgs/msg/Imu"
    name: str
    frame_id: str
    robot: RobotState
    gyro: str | None
    accelerometer: str | None
    framequat: str | None
    turn: Pose

    def convert(self, state: StateFull) -> Any:
        """The message of that state."""
        return make(
            self.type_name,
            header=header(time_message(state.sim_time), self.frame_id),
            orientation=self._orientation(state),
            orientation_covariance=_covariance(self.framequat),
            angular_velocity=self._vector(state, self.gyro),
            angular_velocity_covariance=_covariance(self.gyro),
            linear_acceleration=self._vector(state, self.accelerometer),
            linear_acceleration_covariance=_covariance(self.accelerometer),
        )

    def _vector(self, state: StateFull, sensor: str | None) -> Any:
        return vector3((0.0, 0.0, 0.0) if sensor is None else self.robot.sensor(state, sensor, 3))

    def _orientation(self, state: StateFull) -> Any:
        if self.framequat is None:
            return quaternion((1.0, 0.0, 0.0, 0.0))
        measured = at(quat_wxyz=self.robot.sensor(state, self.framequat, 4))
        return quaternion(measured.then(self.turn).quat_wxyz)


@dataclass(frozen=True, eq=False)
class WrenchSource:
    """geometry_msgs/WrenchStamped of one site, in its frame: N and N m, as MuJoCo measures them.

    That is what the site's body does to its parent.
    """

    type_name: ClassVar[str] = "geometry_msgs/msg/WrenchStamped"
    name: str
    frame_id: str
    robot: RobotState
    force: str
    torque: str

    def convert(self, state: StateFull) -> Any:
        """The message of that state."""
        force, torque = (vector3(self.robot.sensor(state, one, 3)) for one in (self.force, self.torque))
        return make(
            self.type_name,
            header=header(time_message(state.sim_time), self.frame_id),
            wrench=make("geometry_msgs/msg/Wrench", force=force, torque=torque),
        )


@dataclass(frozen=True, eq=False)
class RangeSource:
    """sensor_msgs/Range of a rangefinder: metres along +x of its frame, a ray without width.

    REP-117: +inf is no hit within ``max_range_m`` (the sensor's cutoff, or +inf), NaN is no measurement. MuJoCo says
    a negative number for no hit, and its cutoff for what is beyond that.
    """

    type_name: ClassVar[str] = "sensor_msgs/msg/Range"
    name: str
    frame_id: str
    robot: RobotState
    max_range_m: float

    def convert(self, state: StateFull) -> Any:
        """The message of that state."""
        (measured,) = self.robot.sensor(state, self.name, 1)
        is_hit = math.isnan(measured) or 0.0 <= measured < self.max_range_m
        return make(
            self.type_name,
            header=header(time_message(state.sim_time), self.frame_id),
            radiation_type=_INFRARED,
            max_range=self.max_range_m,
            range=measured if is_hit else math.inf,
        )


@dataclass(frozen=True, eq=False)
class ArraySource:
    """std_msgs/Float64MultiArray of any sensor: its values in MuJoCo's units, in one dimension with its name."""

    type_name: ClassVar[str] = "std_msgs/msg/Float64MultiArray"
    name: str
    robot: RobotState
    size: int

    def convert(self, state: StateFull) -> Any:
        """The message of that state."""
        return array_message(self.name, self.robot.sensor(state, self.name, self.size))


@dataclass(frozen=True, eq=False)
class SensorData:
    """std_msgs/Float64MultiArray of all sensors of a robot, in the model's order.

    ``name`` is the name of its one dimension and says what is where: ``imu_gyro:3 imu_acc:3 touch:1``.
    """

    type_name: ClassVar[str] = "std_msgs/msg/Float64MultiArray"
    robot: RobotState
    sizes: dict[str, int]

    @cached_property
    def name(self) -> str:
        """Every sensor with the number of its values."""
        return " ".join(f"{name}:{size}" for name, size in self.sizes.items())

    def convert(self, state: StateFull) -> Any:
        """The message of that state."""
        values = (self.robot.sensor(state, name, size) for name, size in self.sizes.items())
        return array_message(self.name, [value for some in values for value in some])


def array_message(label: str, values: Sequence[float]) -> Any:
    """std_msgs/Float64MultiArray of one dimension."""
    size = len(values)
    dimension = make("std_msgs/msg/MultiArrayDimension", label=label, size=size, stride=size)
    layout = make("std_msgs/msg/MultiArrayLayout", dim=[dimension])
    return make("std_msgs/msg/Float64MultiArray", layout=layout, data=values)


def _covariance(sensor: str | None) -> Any:
    return _UNKNOWN if sensor is None else _MEASURED
