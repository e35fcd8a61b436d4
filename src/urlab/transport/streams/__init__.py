"""A running scene on ZeroMQ sockets: its state, its info and its cameras to subscribers, commands from any sender."""

from urlab.transport.streams.streams import Streams

__all__ = ["Streams"]
