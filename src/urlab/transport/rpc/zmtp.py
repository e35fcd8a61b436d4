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


_DELIMITER = bytes((MORE, 0))
_PING = b"\x04PING"
_MAX_CONTEXT_BYTES = 16
MAX_COMMAND_BYTES = 1 << 16
"""A READY holds a handful of short properties."""

_SHORT, _LONG = struct.Struct(">BBBB"), struct.Struct(">BBBQ")


class ProtocolError(Exception):
    """The peer does not speak ZMTP 3 with the NULL mechanism, or breaks its rules."""


def check_greeting(greeting: bytes) -> None:
    """ProtocolError unless a peer's 64 bytes are a greeting that we can answer."""
    if greeting[:1] != b"\xff" or greeting[9:10] != b"\x7f":
        raise ProtocolError("it does not begin like ZeroMQ")
    if greeting[10] < 3:
        raise ProtocolError(f"it speaks ZMTP {greeting[10]}.x, and this server 3.0 (libzmq 4)")
    mechanism = greeting[12:32].rstrip(b"\0")
    if mechanism != b"NULL":
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


class FrameParser:
    """Cuts a stream of bytes into frames.

    A body of more than ``limit`` bytes is not kept: its frame comes out with a body of None. One of more than
    ``hard_limit``, or a command of more than `MAX_COMMAND_BYTES`, is a ProtocolError at once. Memory is taken as the
    bytes of a body arrive, not when they are announced.
    """

    def __init__(self, limit: int, hard_limit: int) -> None:
        self._limit = limit
        self._hard_limit = hard_limit
        self._rest = b""
        self._body = bytearray()
        self._missing = 0
        self._flags = 0
        self._dropped = False

    @property
    def is_between_frames(self) -> bool:
        """Whether the last frame is complete."""
        return not self._missing and not self._rest

    def feed(self, data: bytes) -> list[tuple[int, bytes | None]]:
        """The frames that these bytes complete, as (flags, body)."""
        frames: list[tuple[int, bytes | None]] = []
        data = self._rest + data if self._rest else data
        self._rest = b""
        position = 0
        while position < len(data):
            if self._missing:
                position = self._take_body(data, position, frames)
            else:
                head = self._read_head(data, position)
                if head is None:
                    self._rest = data[position:]
                    break
                position = self._begin_body(data, position, head, frames)
        return frames

    def _read_head(self, data: bytes, position: int) -> tuple[int, int] | None:
        """(bytes of the head, bytes of the body), or None when the head is not there yet."""
        flags = data[position]
        if flags & ~(MORE | LONG | COMMAND):
            raise ProtocolError(f"a frame has the flags {flags:#04x}")
        if not flags & LONG:
            return (2, data[position + 1]) if len(data) > position + 1 else None
        if len(data) < position + 9:
            return None
        size = int.from_bytes(data[position + 1 : position + 9], "big")
        if size > (MAX_COMMAND_BYTES if flags & COMMAND else self._hard_limit):
            raise ProtocolError(f"a frame announces {size} bytes")
        return 9, size

    def _begin_body(
        self, data: bytes, position: int, head: tuple[int, int], frames: list[tuple[int, bytes | None]]
    ) -> int:
        flags, start = data[position], position + head[0]
        end = start + head[1]
        if end <= len(data):
            frames.append((flags, data[start:end] if head[1] <= self._limit else None))
            return end
        self._flags, self._missing, self._dropped = flags, end - len(data), head[1] > self._limit
        self._body = bytearray() if self._dropped else bytearray(data[start:])
        return len(data)

    def _take_body(self, data: bytes, position: int, frames: list[tuple[int, bytes | None]]) -> int:
        end = min(len(data), position + self._missing)
        if not self._dropped:
            self._body += data[position:end]
        self._missing -= end - position
        if not self._missing:
            frames.append((self._flags, None if self._dropped else bytes(self._body)))
            self._body = bytearray()
        return end
