"""The protocol's ops: a dispatcher, sessions, and one handler file per namespace."""

from urlab.ops import hello, recording, replay, runtime, sim, stepping
from urlab.ops.dispatcher import Dispatcher
from urlab.ops.registry import HANDLERS

__all__ = ["HANDLERS", "Dispatcher", "hello", "recording", "replay", "runtime", "sim", "stepping"]
