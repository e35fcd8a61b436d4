"""Commands from ROS as messages of the control stream: a running policy keeps its session."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from urlab.ros2 import convert
from urlab_client import URLabArticulation
from urlab_wire.rows import pack_twist
from urlab_wire.streams import control_topic, pack_control, twist_command_topic

JOINT_STATE, ARRAY = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray"
TWIST = "geometry_msgs/msg/Twist"


class RobotCommand(NamedTuple):
    """A topic below a robot's namespace. ``read`` gives (topic, payload), or raises `BadCommand`."""

    name: str
    type_name: str
    read: Callable[[Any], tuple[str, bytes]]


def robot_commands(model: Any, robot: URLabArticulation) -> Iterator[RobotCommand]:
    """Everything that ROS may ask of a robot."""
    ids = {name: actuator.id for name, actuator in robot.actuators.items()}
    if ids:
        joints, control = convert.JointCommand(model, robot), convert.ControlCommand(robot)
        yield RobotCommand("joint_command", JOINT_STATE, _setpoints(robot.prefix, ids, joints.convert))
        yield RobotCommand("control", ARRAY, _setpoints(robot.prefix, ids, control.convert))
    topic = twist_command_topic(robot.prefix)
    yield RobotCommand("cmd_vel", TWIST, lambda message: (topic, pack_twist(*convert.twist_command(message))))


def _setpoints(
    prefix: str, ids: dict[str, int], read: Callable[[Any], convert.Setpoints]
) -> Callable[[Any], tuple[str, bytes]]:
    topic = control_topic(prefix)
    return lambda message: (topic, pack_control({ids[name]: value for name, value in read(message).items()}))
