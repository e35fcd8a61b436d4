"""A running scene on ZeroMQ sockets: its state, its info and its cameras to subscribers, commands from any sender.

`streams` owns the sockets: `state_publisher` (states, rows and info) and `camera_publisher` (pictures) hand messages to
the thread of `publishing`, which sends them; `control_receiver` takes commands.
"""

from urlab.transport.streams.streams import Streams

__all__ = ["Streams"]
