"""The protocol's ops: a dispatcher, sessions, and one handler file per namespace."""

from urlab.ops import cameras, debug, hello, outliner, recording, replay, runtime, scene, sim, stepping, viewport
from urlab.ops.context import Parts
from urlab.ops.dispatcher import Dispatcher
from urlab.ops.registry import HANDLERS

__all__ = [
    "HANDLERS",
    "Dispatcher",
    "Parts",
    "cameras",
    "debug",
    "hello",
    "outliner",
    "recording",
    "replay",
    "runtime",
    "scene",
    "sim",
    "stepping",
    "viewport",
]
