"""Transports: bytes in, bytes out. Nothing here knows what the bytes mean."""

from urlab.transport.shm import CameraShape, KeptReplies, SharedMemory, ShmUnavailable
from urlab.transport.streams import Streams
from urlab.transport.zmq_rpc import ZmqRpcServer

__all__ = ["CameraShape", "KeptReplies", "SharedMemory", "ShmUnavailable", "Streams", "ZmqRpcServer"]
