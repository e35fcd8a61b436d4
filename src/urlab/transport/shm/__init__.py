"""Shared memory: requests and replies, the state and the pictures, for clients on the same machine."""

from urlab.transport.shm.folder import ShmUnavailable
from urlab.transport.shm.server import SharedMemory

__all__ = ["SharedMemory", "ShmUnavailable"]
