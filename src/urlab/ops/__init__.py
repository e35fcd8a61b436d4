"""The protocol's ops: a dispatcher, sessions, and one module of handlers per namespace."""

from urlab.ops import handlers
from urlab.ops.context import HANDLERS, Parts
from urlab.ops.dispatcher import Dispatcher

__all__ = ["HANDLERS", "Dispatcher", "Parts", "handlers"]
