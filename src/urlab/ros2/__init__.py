"""The bridge to ROS 2: states and pictures of a running server in, ROS messages out; and commands the other way.

It is a client like any other: it knows ``urlab_client`` and ``urlab_wire``, never another part of the server. A state
goes through `bridge` (follows the server, owns the threads), `topics` (what a scene publishes and takes), `convert`
(states to messages, pure functions) and `publishers` (serialises what has subscribers) to a `backend`, which carries
bytes: `dds` needs no ROS, `rclpy_backend` does. Below them are `frames`, `geometry`, `names`, `messages` and `qos`.
`services` control the simulation.
"""
