"""From what a client knows to ROS messages, and from commands to setpoints. Pure: nothing here sends or waits.

Most converters are made once per scene from the client's handles and a `urlab.ros2.frames.SceneFrames`, have a
``type_name``, and turn each ``state/full`` into a message with ``convert(state)``. They never change, so any thread may
use them; a state that belongs to another scene raises `SceneChanged`. Messages share the parts that never change:
serialise them, do not write into them.
"""

from urlab.ros2.convert.camera import camera_info, camera_transform, compressed, compressed_depth, image
from urlab.ros2.convert.commands import BadCommand, ControlCommand, JointCommand, Quantity, Setpoints, twist_command
from urlab.ros2.convert.entities import EntityFrame, EntityPoses
from urlab.ros2.convert.joint_states import JointStates
from urlab.ros2.convert.odometry import Odometry
from urlab.ros2.convert.picture import BadPicture, Picture
from urlab.ros2.convert.robot_state import SceneChanged
from urlab.ros2.convert.sensor_sources import ArraySource, ImuSource, RangeSource, SensorData, WrenchSource
from urlab.ros2.convert.sensors import RobotSensors, Source
from urlab.ros2.convert.stamps import clock, time_message, time_of_s
from urlab.ros2.convert.transforms import RobotTransforms, SceneTransforms, static_transforms
from urlab.ros2.convert.urdf import robot_description, urdf

__all__ = [
    "ArraySource",
    "BadCommand",
    "BadPicture",
    "ControlCommand",
    "EntityFrame",
    "EntityPoses",
    "ImuSource",
    "JointCommand",
    "JointStates",
    "Odometry",
    "Picture",
    "Quantity",
    "RangeSource",
    "RobotSensors",
    "RobotTransforms",
    "SceneChanged",
    "SceneTransforms",
    "SensorData",
    "Setpoints",
    "Source",
    "WrenchSource",
    "camera_info",
    "camera_transform",
    "clock",
    "compressed",
    "compressed_depth",
    "image",
    "robot_description",
    "static_transforms",
    "time_message",
    "time_of_s",
    "twist_command",
    "urdf",
]
