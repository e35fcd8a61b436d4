"""The contract between server and clients: pure data, no sockets, no simulation.

`ops` has the type of every request and reply, and `catalogue` the list of all ops; `envelope` is what frames share,
`codec` turns them into bytes, `enums` and `errors` have the words. Streams: `streams` (topics), `stream_messages`,
`rows` and `state_frame` (payloads), `pixels` (pictures). Shared memory: `shm` (layout), `shm_wait` (waiting).
"""

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
