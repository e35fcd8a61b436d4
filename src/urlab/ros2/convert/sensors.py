"""Which of a robot's sensors go into which message.

| MuJoCo | ROS |
|---|---|
| gyro and accelerometer of one site (or one of them), with a framequat of the site or of its body | sensor_msgs/Imu |
| force and torque of one site | geometry_msgs/WrenchStamped |
| rangefinder of a site | sensor_msgs/Range |
| any other | std_msgs/Float64MultiArray |

An Imu and a wrench are named after their site, the others after their sensor. What is a second one of its kind at a
site goes with the others.
"""

import math
from typing import TYPE_CHECKING, Any

import mujoco

from urlab.ros2.convert.pose import Pose, at
from urlab.ros2.convert.robot_state import RobotState
from urlab.ros2.convert.sensor_sources import ArraySource, ImuSource, RangeSource, SensorData, WrenchSource
from urlab_client import Sensor, URLabArticulation

if TYPE_CHECKING:
    from urlab.ros2.frames import RobotFrames

Source = ImuSource | WrenchSource | RangeSource | ArraySource

_SITE, _XBODY = int(mujoco.mjtObj.mjOBJ_SITE), int(mujoco.mjtObj.mjOBJ_XBODY)
_WORLD_FRAME = int(mujoco.mjtObj.mjOBJ_UNKNOWN)
_GYRO, _ACCELEROMETER, _FRAMEQUAT, _FORCE, _TORQUE, _RANGEFINDER = (
    int(getattr(mujoco.mjtSensor, f"mjSENS_{name}"))
    for name in ("GYRO", "ACCELEROMETER", "FRAMEQUAT", "FORCE", "TORQUE", "RANGEFINDER")
)


class RobotSensors:
    """The sources of one robot; every sensor is in exactly one, and all of them in ``data``.

    ``sources`` are all that have a message of their own. Made once per scene; never changes.
    """

    def __init__(self, model: Any, robot: URLabArticulation, frames: "RobotFrames") -> None:
        self._model, self._robot, self._frames = model, robot, frames
        self._state = RobotState(robot)
        self._left = dict(robot.sensors)
        self.data = SensorData(self._state, {name: one.dim for name, one in robot.sensors.items()})
        self.imus = [self._imu(site) for site in self._sites(_GYRO, _ACCELEROMETER)]
        self.wrenches = [made for site in self._sites(_FORCE) if (made := self._wrench(site)) is not None]
        self.ranges = [self._range(one) for one in list(self._left.values()) if self._is_beam(one)]
        self.arrays = [ArraySource(one.name, self._state, one.dim) for one in self._left.values()]

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
        asked = int(self._model.sensor_intprm[sensor.id, 0])
        is_distance = sensor.dim == 1 and asked == 1 << int(mujoco.mjtRayDataField.mjRAYDATA_DIST)
        return sensor.sensor_type == _RANGEFINDER and is_distance and self._object(sensor)[0] == _SITE

    def _orientation(self, site: int) -> tuple[str | None, Pose]:
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
        """The first sensor of a kind that nobody has taken, of that object, measured in the world."""
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
