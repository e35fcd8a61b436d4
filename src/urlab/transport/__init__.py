"""Transports: frames in, frames out. They know the protocol's errors, and nothing else of what a frame says.

`rpc` serves requests of ZeroMQ clients, `streams` publishes a running scene on ZeroMQ sockets, `shm` does both in
shared memory. `publisher` is what the streams need of a scene, `endpoint` listens on an address, `repeats` gives a
request that is repeated on another transport the first one's reply, `guard` judges who connects to ZeroMQ's sockets.
"""

from urlab.transport.publisher import ScenePublisher, StreamedCamera
from urlab.transport.repeats import RequestRegistry
from urlab.transport.rpc import CurveRpcServer, ZmqRpcServer
from urlab.transport.shm import SharedMemory, ShmUnavailable
from urlab.transport.streams import Streams

__all__ = [
    "CurveRpcServer",
    "RequestRegistry",
    "ScenePublisher",
    "SharedMemory",
    "ShmUnavailable",
    "StreamedCamera",
    "Streams",
    "ZmqRpcServer",
]
