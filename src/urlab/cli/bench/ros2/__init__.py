"""`urlab bench ros2`: what the ROS 2 bridge costs, and how fast its topics arrive in another process.

What is exported here is light; whatever measures is imported when a command runs.
"""

from urlab.cli.bench.ros2.plan import ROS2_SCENES, Ros2Plan, make_ros2_plan

__all__ = ["ROS2_SCENES", "Ros2Plan", "make_ros2_plan"]
