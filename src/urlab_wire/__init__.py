"""The contract between server and clients: pure data, no sockets, no threads, no simulation."""

from urlab_wire.catalogue import CATALOGUE, OpSpec
from urlab_wire.codec import DecodeError, decode, encode
from urlab_wire.envelope import ErrorReply, Reply, Request
from urlab_wire.errors import ErrorCode

__all__ = [
    "CATALOGUE",
    "DecodeError",
    "ErrorCode",
    "ErrorReply",
    "OpSpec",
    "Reply",
    "Request",
    "decode",
    "encode",
]
