"""Frames that tell a state, put together from bytes.

A message of the state is the same bytes again and again, with other numbers in them. What is around the clocks is found
out once, by encoding a message of marks; the robots and entities come packed already. By construction such a frame
decodes to what the encoder would have written, except that its whole numbers always take eight bytes.
"""

import struct
from collections.abc import Mapping
from typing import Any

from urlab_wire.codec import encode
from urlab_wire.ops.stepping import ClockBlock, StateReply, split_ns, split_s
from urlab_wire.stream_messages import StateFull

_FLOAT, _UINT64, _INT64 = 0xCB, 0xCF, 0xD3
_TIME_MARK = struct.unpack(">d", b"\x7e\x37\0\0\0\0\0\1")[0]
_MARK = 0x7E37 << 48
_FIXMAP = 0x80
_BLOCKS_KEY = b"\xb0per_articulation"


class StateFrame:
    """Builds the msgpack frames of one kind of state message; ``kind`` has the fields of `StateReply`."""

    def __init__(self, kind: type[StateReply] | type[StateFull]) -> None:
        clocks = [ClockBlock(sec=_MARK + 2 * i, nsec=_MARK + 2 * i + 1) for i in (1, 2)]
        marked = encode(
            kind(
                time=_TIME_MARK,
                step=_MARK + 1,
                sim_time=clocks[0],
                wall_time=clocks[1],
                per_articulation={},
                entities={},
            )
        )
        head = marked[: marked.index(_BLOCKS_KEY)]
        values = [struct.pack(">Bd", _FLOAT, _TIME_MARK)]
        values += [struct.pack(">BQ", _UINT64, _MARK + i) for i in (1, 2, 3, 4, 5)]
        self._parts = _between(head, values)
        codes = zip(self._parts, "dQqqqq", strict=True)
        self._head = struct.Struct(">" + "".join(f"{len(part)}s{code}" for part, code in codes))
        self._fields = head[0] - _FIXMAP

    def build(self, time_s: float, step: int, wall_ns: int, blocks: bytes, extras: Mapping[str, Any]) -> bytes:
        """One frame. ``blocks`` are the packed robots and entities with their keys, ``extras`` further fields."""
        first, second, third, fourth, fifth, sixth = self._parts
        if extras:
            first = bytes((_FIXMAP + self._fields + len(extras),)) + first[1:]
        sec, nsec = split_s(time_s)
        wall_sec, wall_nsec = split_ns(wall_ns)
        head = self._head.pack(first, time_s, second, step, third, sec, fourth, nsec, fifth, wall_sec, sixth, wall_nsec)
        if not extras:
            return head + blocks
        return b"".join((head, blocks, memoryview(encode(extras))[1:]))


def _between(head: bytes, values: list[bytes]) -> tuple[bytes, ...]:
    """The bytes before each value, up to and with the byte that tells its type; clocks may be negative."""
    parts, position = [], 0
    for place, value in enumerate(values):
        start = head.index(value, position)
        code = bytes((_INT64,)) if place > 1 else value[:1]
        parts.append(head[position:start] + code)
        position = start + len(value)
    return tuple(parts)
