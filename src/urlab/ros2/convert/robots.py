"""Messages of one robot as a whole: joint states, odometry; and its part of a state, from which they are made.

Every hinge and slide joint is in one sensor_msgs/JointState. Free and ball joints have no single number: they are in
tf, and a free root in nav_msgs/Odometry as well, which is exact: covariances are zero.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from urlab.ros2.frames import HINGE, SLIDE, RobotFrames
from urlab.ros2.geometry import Array, at, header, pose_message, time_message, vector3
from urlab.ros2.messages import make, typestore
from urlab_client import URLabArticulation
from urlab_wire.ops.stepping import ArticulationState
from urlab_wire.stream_messages import StateFull

JOINT_STATE = "sensor_msgs/msg/JointState"

_JointState: Any = typestore.types[JOINT_STATE]
_NO_EFFORT: Array = np.zeros(0)


class SceneChanged(RuntimeError):
    """A state does not fit the handshake: the server plays another scene now. ``discover()`` and begin anew."""


class RobotState:
    """Finds one robot's block in states. Immutable; any thread."""

    def __init__(self, robot: URLabArticulation) -> None:
        self.prefix = robot.prefix
        self._n_qpos = sum(joint.qpos_dim for joint in robot.joints.values())
        self._n_qvel = sum(joint.qvel_dim for joint in robot.joints.values())

    def of(self, state: StateFull) -> ArticulationState:
        """The robot's block; `SceneChanged` when there is none, or one of another shape."""
        block = state.per_articulation.get(self.prefix)
        if block is None:
            raise SceneChanged(f"no robot {self.prefix!r}; the state has {', '.join(state.per_articulation) or 'none'}")
        if len(block.qpos) != self._n_qpos or len(block.qvel) != self._n_qvel:
            raise SceneChanged(
                f"{self.prefix!r} has {len(block.qpos)} qpos and {len(block.qvel)} qvel, "
                f"not {self._n_qpos} and {self._n_qvel} as in the handshake"
            )
        return block

    def sensor(self, state: StateFull, name: str, size: int) -> Sequence[float]:
        """A sensor's values; `SceneChanged` when they are not there, or not so many."""
        values = (self.of(state).sensors or {}).get(name)
        if values is None or len(values) != size:
            got = "no values" if values is None else f"{len(values)} values"
            raise SceneChanged(f"sensor {name!r} of {self.prefix!r} has {got}, not {size} as in the handshake")
        return values


class JointStates:
    """Joint states of one robot: ``names`` are unprefixed, positions in rad or m, velocities per second.

    ``effort`` is empty: ``state/full`` carries no forces. Made once per scene; any thread.
    """

    type_name = JOINT_STATE

    def __init__(self, robot: URLabArticulation) -> None:
        joints = [one for one in robot.joints.values() if one.jnt_type in (HINGE, SLIDE)]
        self.names = [one.name for one in joints]
        self._state = RobotState(robot)
        self._qpos = np.array([one.qpos_local_offset for one in joints], dtype=np.intp)
        self._qvel = np.array([one.qvel_local_offset for one in joints], dtype=np.intp)

    def convert(self, state: StateFull) -> Any:
        """The joint states of that state; `SceneChanged` when it is another scene's."""
        block = self._state.of(state)
        return _JointState(
            header=header(time_message(state.sim_time), ""),
            name=self.names,
            position=np.array(block.qpos)[self._qpos],
            velocity=np.array(block.qvel)[self._qvel],
            effort=_NO_EFFORT,
        )


class Odometry:
    """The base in ``<robot>/odom``, and its velocity in its own frame, as ROS wants it.

    MuJoCo's free joint has the linear velocity in the world and the angular one in the body. Made once per scene, for
    a robot whose frames have an ``odom``; any thread.
    """

    type_name = "nav_msgs/msg/Odometry"

    def __init__(self, frames: RobotFrames, robot: URLabArticulation) -> None:
        if frames.odom is None:
            raise ValueError(f"{robot.prefix!r} has no free base, so it has no odometry")
        self._odom, self._base = frames.odom, frames.base
        self._state = RobotState(robot)
        root = next(iter(robot.joints.values()))
        self._qpos = slice(root.qpos_local_offset, root.qpos_local_offset + 7)
        self._qvel = slice(root.qvel_local_offset, root.qvel_local_offset + 6)

    def convert(self, state: StateFull) -> Any:
        """The odometry of that state; `SceneChanged` when it is another scene's."""
        block = self._state.of(state)
        qpos, qvel = block.qpos[self._qpos], block.qvel[self._qvel]
        linear_b = at(quat_wxyz=qpos[3:]).inverse().then(at(qvel[:3])).pos
        twist = make("geometry_msgs/msg/Twist", linear=vector3(linear_b), angular=vector3(qvel[3:]))
        return make(
            self.type_name,
            header=header(time_message(state.sim_time), self._odom),
            child_frame_id=self._base,
            pose=make("geometry_msgs/msg/PoseWithCovariance", pose=pose_message(qpos[:3], qpos[3:])),
            twist=make("geometry_msgs/msg/TwistWithCovariance", twist=twist),
        )
