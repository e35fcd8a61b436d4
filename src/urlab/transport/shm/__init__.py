"""Shared memory: requests and replies, the state and the pictures, for clients on the same machine."""

from urlab.transport.shm.folder import ShmUnavailable
from urlab.transport.shm.kept_replies import KeptReplies
from urlab.transport.shm.server import SharedMemory
from urlab.transport.shm.streams import CameraShape

__all__ = ["CameraShape", "KeptReplies", "SharedMemory", "ShmUnavailable"]
