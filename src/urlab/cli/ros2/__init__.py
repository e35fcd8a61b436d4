"""`urlab ros2`: a running server as a node in a ROS 2 graph."""

from urlab.cli.ros2.command import ros2

__all__ = ["ros2"]
