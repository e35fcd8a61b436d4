"""nav_msgs/Odometry of a robot with a free base, exact: covariances are zero."""

from typing import TYPE_CHECKING, Any

from urlab.ros2.convert.geometry import pose_message, vector3
from urlab.ros2.convert.pose import at
from urlab.ros2.convert.robot_state import RobotState
from urlab.ros2.convert.stamps import header, time_message
from urlab.ros2.messages import make
from urlab_client import URLabArticulation
from urlab_wire.stream_messages import StateFull

if TYPE_CHECKING:
    from urlab.ros2.frames import RobotFrames


class Odometry:
    """The base in ``<robot>/odom``, and its velocity in its own frame, as ROS wants it.

    MuJoCo's free joint has the linear velocity in the world and the angular one in the body. Made once per scene, for
    a robot whose frames have an ``odom``; any thread.
    """

    type_name = "nav_msgs/msg/Odometry"

    def __init__(self, frames: "RobotFrames", robot: URLabArticulation) -> None:
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
