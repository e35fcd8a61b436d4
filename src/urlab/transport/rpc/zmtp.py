"""ZMTP 3.0, ZeroMQ's protocol on the wire, as far as a server of REQ and DEALER clients needs it, and 3.1's PING.

Pure functions and a parser; no sockets. A connection begins with a greeting of 64 bytes from either side and a READY
command each; then come messages of one or more frames. A frame is a flag byte (1 = more frames follow, 2 = the size
has eight bytes, 4 = it is a command), a size of one or eight bytes, and a body. Only the NULL mechanism is spoken:
there is no authentication to negotiate.
"""

import struct

MORE, LONG, COMMAND = 1, 2, 4

GREETING_BYTES = 64
GREETING = (
    b"\xff" + bytes(8) + b"\x7f"  # the signature
    + b"\x03\x00"  # version 3.0
    + b"NULL".ljust(20, b"\0")  # the mechanism
    + b"\x00" + bytes(31)  # not a server of that mechanism; filler
)  # fmt: skip


_VERSION_AT = 10
_REVISIONS = {0: "1.0", 1: "2.0", 2: "2.1"}
"""What the byte at that place means where it is no version 3: the protocol was numbered otherwise then."""

_DELIMITER = bytes((MORE, 0))
_PING = b"\x04PING"
_MAX_CONTEXT_BYTES = 16
MAX_COMMAND_BYTES = 1 << 16
"""A READY holds a handful of short properties."""

_SHORT, _LONG = struct.Struct(">BBBB"), struct.Struct(">BBBQ")


class ProtocolError(Exception):
    """The peer does not speak ZMTP 3 with the NULL mechanism, or breaks its rules."""


def check_greeting(greeting: bytes) -> None:
    """ProtocolError unless what has come of a peer's 64 bytes may become a greeting that we can answer.

    What is wrong is found with the first byte that shows it: a peer of an older protocol sends no more than a few, and
    then waits.
    """
    if greeting[:1] not in (b"", b"\xff") or greeting[9:10] not in (b"", b"\x7f"):
        raise ProtocolError("it does not begin like ZeroMQ")
    if len(greeting) > _VERSION_AT and greeting[_VERSION_AT] < 3:
        spoken = _REVISIONS.get(greeting[_VERSION_AT], "of an unknown version")
        raise ProtocolError(f"it speaks ZMTP {spoken}, and this server 3.0 (libzmq 4)")
    mechanism = greeting[12:32].rstrip(b"\0")
    if len(greeting) >= GREETING_BYTES and mechanism != b"NULL":
        raise ProtocolError(f"it wants the mechanism {mechanism!r}, and this server has NULL only")


def ready_command() -> bytes:
    """The frame that ends our half of the handshake."""
    properties = _property(b"Socket-Type", b"ROUTER") + _property(b"Identity", b"")
    return frame(b"\x05READY" + properties, COMMAND)


def check_ready(body: bytes) -> None:
    """ProtocolError unless a peer's first command is READY."""
    if not body.startswith(b"\x05READY"):
        raise ProtocolError(f"it answered the handshake with {body[:32]!r}")


def answer_to_ping(body: bytes) -> bytes | None:
    """The PONG frame for a command that is a PING, with the context that it carries; None for other commands.

    After its name a PING has a time to live of two bytes, and then the context, of sixteen bytes at most.
    """
    if not body.startswith(_PING):
        return None
    context = body[len(_PING) + 2 :]
    if len(context) > _MAX_CONTEXT_BYTES:
        raise ProtocolError(f"a PING has a context of {len(context)} bytes")
    return frame(b"\x04PONG" + context, COMMAND)


def frame(body: bytes, flags: int = 0) -> bytes:
    """One frame, ready to be sent."""
    if len(body) < 256:
        return bytes((flags, len(body))) + body
    return bytes((flags | LONG,)) + len(body).to_bytes(8, "big") + body


def lone_request(data: bytes) -> bytes | None:
    """The request, when bytes are just the two frames of a REQ client: an empty one and a body. Else None."""
    if data[:2] != _DELIMITER or len(data) < 4:
        return None
    if data[2] == 0:
        return data[4:] if len(data) == 4 + data[3] else None
    if data[2] == LONG and len(data) == 11 + int.from_bytes(data[3:11], "big"):
        return data[11:]
    return None


def reply_head(size: int, delimited: bool) -> bytes:
    """What stands before the body of a message of one frame; first an empty one, if the client's request had that."""
    head = _SHORT.pack(MORE, 0, 0, size) if size < 256 else _LONG.pack(MORE, 0, LONG, size)
    return head if delimited else head[2:]


def _property(name: bytes, value: bytes) -> bytes:
    return bytes((len(name),)) + name + len(value).to_bytes(4, "big") + value


Frame = tuple[int, bytes | None]
"""(flags, body); the body of a frame that was too large to keep is None."""


class FrameParser:
    """Cuts a stream of bytes into frames, one at a time.

    A body of more than ``limit`` bytes is not kept: its frame comes out with a body of None. One of more than
    ``hard_limit``, or a command of more than `MAX_COMMAND_BYTES`, is a ProtocolError at once. Memory is taken as the
    bytes of a body arrive, not when they are announced.
    """

    def __init__(self, limit: int, hard_limit: int) -> None:
        self._limit = limit
        self._hard_limit = hard_limit
        self._data = b""
        self._position = 0
        self._body = bytearray()
        self._missing = 0
        self._flags = 0
        self._dropped = False

    @property
    def is_between_frames(self) -> bool:
        """Whether the last frame is complete, and no byte of another one has come."""
        return not self._missing and not self._data

    @property
    def held_bytes(self) -> int:
        """What is kept of frames that have not come out yet."""
        return len(self._data) - self._position + len(self._body)

    def feed(self, data: bytes) -> None:
        """Take in what was received."""
        self._data = self._data[self._position :] + data if self._data else data
        self._position = 0

    def next_frame(self) -> Frame | None:
        """The next frame that is complete; None when it takes more bytes."""
        if self._missing:
            return self._take_body()
        head = self._read_head()
        if head is None:
            return None
        flags, (start, size) = self._data[self._position], head
        end = start + size
        if end <= len(self._data):
            body = self._data[start:end] if size <= self._limit else None
            self._go_to(end)
            return flags, body
        self._flags, self._missing, self._dropped = flags, end - len(self._data), size > self._limit
        self._body = bytearray() if self._dropped else bytearray(self._data[start:])
        self._go_to(len(self._data))
        return None

    def _go_to(self, position: int) -> None:
        self._position = position
        if position >= len(self._data):
            self._data, self._position = b"", 0

    def _read_head(self) -> tuple[int, int] | None:
        """(where the body begins, its bytes), or None when the head is not there yet."""
        data, position = self._data, self._position
        if position >= len(data):
            return None
        flags = data[position]
        if flags & ~(MORE | LONG | COMMAND):
            raise ProtocolError(f"a frame has the flags {flags:#04x}")
        if not flags & LONG:
            return (position + 2, data[position + 1]) if len(data) > position + 1 else None
        if len(data) < position + 9:
            return None
        size = int.from_bytes(data[position + 1 : position + 9], "big")
        if size > (MAX_COMMAND_BYTES if flags & COMMAND else self._hard_limit):
            raise ProtocolError(f"a frame announces {size} bytes")
        return position + 9, size

    def _take_body(self) -> Frame | None:
        data, position = self._data, self._position
        end = min(len(data), position + self._missing)
        if not self._dropped:
            self._body += data[position:end] if position or end < len(data) else data
        self._missing -= end - position
        self._go_to(end)
        if self._missing:
            return None
        body = None if self._dropped else bytes(self._body)
        self._body = bytearray()
        return self._flags, body
