"""Messages of a robot's sensors, and which of its sensors go into which message.

| MuJoCo | ROS |
|---|---|
| gyro and accelerometer of one site (or one of them), with a framequat of the site or of its body | sensor_msgs/Imu |
| force and torque of one site | geometry_msgs/WrenchStamped |
| rangefinder of a site | sensor_msgs/Range |
| any other | std_msgs/Float64MultiArray |

An Imu and a wrench are named after their site, the others after their sensor. What is a second one of its kind at a
site goes with the others.

A source reads the same sensors out of every state. It has a ``name``, a ``type_name`` and ``convert(state)``, which
raises `SceneChanged` when the state is another scene's. It never changes; any thread.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import mujoco
import numpy as np

from urlab.ros2.convert.robots import RobotState
from urlab.ros2.frames import RobotFrames
from urlab.ros2.geometry import RigidTransform, at, header, quaternion, time_message, vector3
from urlab.ros2.messages import make
from urlab_client import Sensor, URLabArticulation
from urlab_wire.stream_messages import StateFull

_UNKNOWN = np.array([-1.0] + 8 * [0.0])
"""The covariance of what an IMU does not measure."""

_MEASURED = np.zeros(9)
_INFRARED = 1

_SITE, _XBODY = int(mujoco.mjtObj.mjOBJ_SITE), int(mujoco.mjtObj.mjOBJ_XBODY)
_WORLD_FRAME = int(mujoco.mjtObj.mjOBJ_UNKNOWN)
_GYRO, _ACCELEROMETER, _FRAMEQUAT, _FORCE, _TORQUE, _RANGEFINDER = (
    int(getattr(mujoco.mjtSensor, f"mjSENS_{name}"))
    for name in ("GYRO", "ACCELEROMETER", "FRAMEQUAT", "FORCE", "TORQUE", "RANGEFINDER")
)


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
    turn: RigidTransform

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
    """std_msgs/Float64MultiArray of some sensors: their values in MuJoCo's units, one after the other.

    ``name`` is the name of its one dimension. ``sizes`` has the number of values of each sensor, by name.
    """

    type_name: ClassVar[str] = "std_msgs/msg/Float64MultiArray"
    name: str
    robot: RobotState
    sizes: dict[str, int]

    def convert(self, state: StateFull) -> Any:
        """The message of that state."""
        values = [value for name, size in self.sizes.items() for value in self.robot.sensor(state, name, size)]
        dimension = make("std_msgs/msg/MultiArrayDimension", label=self.name, size=len(values), stride=len(values))
        layout = make("std_msgs/msg/MultiArrayLayout", dim=[dimension])
        return make(self.type_name, layout=layout, data=values)


Source = ImuSource | WrenchSource | RangeSource | ArraySource


class RobotSensors:
    """The sources of one robot; every sensor is in exactly one, and all of them, in the model's order, in ``data``.

    The name of ``data`` says what is where: ``imu_gyro:3 imu_acc:3 touch:1``. ``sources`` are all that have a message
    of their own. Made once per scene; never changes.
    """

    def __init__(self, model: Any, robot: URLabArticulation, frames: RobotFrames) -> None:
        self._model, self._robot, self._frames = model, robot, frames
        self._state = RobotState(robot)
        self._left = dict(robot.sensors)
        sizes = {name: one.dim for name, one in robot.sensors.items()}
        self.data = ArraySource(" ".join(f"{name}:{size}" for name, size in sizes.items()), self._state, sizes)
        self.imus = [self._imu(site) for site in self._sites(_GYRO, _ACCELEROMETER)]
        self.wrenches = [made for site in self._sites(_FORCE) if (made := self._wrench(site)) is not None]
        self.ranges = [self._range(one) for one in list(self._left.values()) if self._is_beam(one)]
        self.arrays = [ArraySource(one.name, self._state, {one.name: one.dim}) for one in self._left.values()]

    @property
    def sources(self) -> list[Source]:
        """Imus, wrenches, ranges and arrays."""
        return [*self.imus, *self.wrenches, *self.ranges, *self.arrays]

    def _sites(self, *kinds: int) -> list[int]:
        """The sites that have a sensor of one of the kinds."""
        found = {self._object(one)[1]: None for one in self._left.values() if one.sensor_type in kinds}
        return list(found)

    def _imu(self, site: int) -> ImuSource:
        gyro, accelerometer = self._take(_GYRO, site), self._take(_ACCELEROMETER, site)
        framequat, turn = self._orientation(site)
        name, frame = self._site_name(site), self._frames.sites[site]
        return ImuSource(name, frame, self._state, gyro, accelerometer, framequat, turn)

    def _wrench(self, site: int) -> WrenchSource | None:
        if self._find(_TORQUE, (_SITE, site)) is None:
            return None
        force, torque = self._take(_FORCE, site), self._take(_TORQUE, site)
        return WrenchSource(self._site_name(site), self._frames.sites[site], self._state, str(force), str(torque))

    def _range(self, sensor: Sensor) -> RangeSource:
        del self._left[sensor.name]
        frame, cutoff = self._frames.beams[self._object(sensor)[1]], float(self._model.sensor_cutoff[sensor.id])
        return RangeSource(sensor.name, frame, self._state, cutoff if cutoff > 0.0 else math.inf)

    def _is_beam(self, sensor: Sensor) -> bool:
        """Whether it is a rangefinder that measures one distance; others see with a camera, or tell more."""
        fields = int(self._model.sensor_intprm[sensor.id, 0])
        is_distance = sensor.dim == 1 and fields == 1 << int(mujoco.mjtRayDataField.mjRAYDATA_DIST)
        return sensor.sensor_type == _RANGEFINDER and is_distance and self._object(sensor)[0] == _SITE

    def _orientation(self, site: int) -> tuple[str | None, RigidTransform]:
        """A framequat of the site or else of its body, in the world; and how the site is turned in that."""
        of_site = self._find(_FRAMEQUAT, (_SITE, site))
        of_body = self._find(_FRAMEQUAT, (_XBODY, int(self._model.site_bodyid[site])))
        if of_site is not None:
            return self._left.pop(of_site).name, at()
        if of_body is not None:
            return self._left.pop(of_body).name, at(quat_wxyz=self._model.site_quat[site])
        return None, at()

    def _take(self, kind: int, site: int) -> str | None:
        name = self._find(kind, (_SITE, site))
        return None if name is None else self._left.pop(name).name

    def _find(self, kind: int, of: tuple[int, int]) -> str | None:
        """The first sensor of a kind that is left, of that object, measured in the world."""
        return next(
            (
                name
                for name, one in self._left.items()
                if one.sensor_type == kind
                and self._object(one) == of
                and int(self._model.sensor_reftype[one.id]) == _WORLD_FRAME
            ),
            None,
        )

    def _object(self, sensor: Sensor) -> tuple[int, int]:
        return int(self._model.sensor_objtype[sensor.id]), int(self._model.sensor_objid[sensor.id])

    def _site_name(self, site: int) -> str:
        name = str(mujoco.mj_id2name(self._model, mujoco.mjtObj.mjOBJ_SITE, site))
        return name.removeprefix(f"{self._robot.prefix}_")


def _covariance(sensor: str | None) -> Any:
    return _UNKNOWN if sensor is None else _MEASURED
