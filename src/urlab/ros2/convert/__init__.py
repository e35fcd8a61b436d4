"""From what a client knows to ROS messages, and from commands to setpoints. Pure: nothing here sends or waits.

`robots` makes joint states and odometry, `sensors`, `cameras` and `transforms` what they are named after, `urdf` robot
descriptions; `commands` reads what ROS asks of a robot.

Most converters are made once per scene from the client's handles and a `urlab.ros2.frames.SceneFrames`, have a
``type_name``, and turn each ``state/full`` into a message with ``convert(state)``. They never change, so any thread may
use them; a state that belongs to another scene raises `SceneChanged`. Messages share the parts that never change:
serialise them, do not write into them.
"""

from urlab.ros2.convert.cameras import (
    BadPicture,
    Picture,
    camera_info,
    camera_transform,
    compressed,
    compression_name,
    image,
)
from urlab.ros2.convert.commands import BadCommand, ControlCommand, JointCommand, Setpoints, twist_command
from urlab.ros2.convert.robots import JointStates, Odometry, SceneChanged
from urlab.ros2.convert.sensors import RobotSensors
from urlab.ros2.convert.transforms import EntityPoses, SceneTransforms, static_transforms
from urlab.ros2.convert.urdf import robot_description
from urlab.ros2.geometry import clock

__all__ = [
    "BadCommand",
    "BadPicture",
    "ControlCommand",
    "EntityPoses",
    "JointCommand",
    "JointStates",
    "Odometry",
    "Picture",
    "RobotSensors",
    "SceneChanged",
    "SceneTransforms",
    "Setpoints",
    "camera_info",
    "camera_transform",
    "clock",
    "compressed",
    "compression_name",
    "image",
    "robot_description",
    "static_transforms",
    "twist_command",
]
