"""A node in a ROS 2 graph without ROS: plain DDS, by Eclipse Cyclone DDS.

Messages go out and come in as the bytes that they are. Cyclone's Python classes would encode every field in Python
(20 to 30 ms for a VGA picture); this package calls the C library that comes with them instead (`library`), with topics
whose type is a name and nothing else (`endpoints`). That interface is not a stable one: see `library` for what is
pinned.

What has been tried: the tests talk to a participant on Fast DDS 2.9 (Debian's), in both directions. Services are tried
with what rmw_cyclonedds_cpp puts on the wire, sent by that participant. No test has met ROS itself.
"""

from urlab.ros2.dds.backend import DdsBackend

__all__ = ["DdsBackend"]
