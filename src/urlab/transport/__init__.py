"""Transports: bytes in, bytes out. Nothing here knows what the bytes mean.

``rpc`` serves requests of ZeroMQ clients, ``streams`` publishes a running scene on ZeroMQ sockets, ``shm`` does both in
shared memory.
"""

from urlab.transport.publisher import ScenePublisher, StreamedCamera
from urlab.transport.reply_cache import ReplyCache
from urlab.transport.rpc import ZmqRpcServer
from urlab.transport.shm import SharedMemory, ShmUnavailable
from urlab.transport.streams import Streams

__all__ = [
    "ReplyCache",
    "ScenePublisher",
    "SharedMemory",
    "ShmUnavailable",
    "StreamedCamera",
    "Streams",
    "ZmqRpcServer",
]
