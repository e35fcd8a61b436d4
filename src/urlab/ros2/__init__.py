"""The bridge to ROS 2: a node that shows a running server's world to a ROS graph and takes its commands.

It is a client like any other: it knows ``urlab_client`` and ``urlab_wire``, never another room of the server. What it
says to the graph crosses `urlab.ros2.backend.Backend` as serialised messages; there is one backend on plain DDS, which
needs no ROS, and one on rclpy, for where ROS is installed.
"""
