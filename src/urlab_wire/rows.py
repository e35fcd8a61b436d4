"""State rows: small binary messages per joint, sensor, free body and twist. What stands in them is said only here.

Everything is little-endian. Rows come in two layouts: v1 is the one that the protocol documents, v2 the one that later
servers send. The functions that arrange a row (`joint_row` and so on) take numbers, or anything that stands for them:
`pack_row` turns a row of numbers into bytes; `RowPacker` takes rows of places in arrays, once, and packs all of them
together whenever the arrays have changed. `unpack_twist` is for twists that are sent as commands.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from urlab_wire.enums import RowLayout
from urlab_wire.streams import StreamError

_INT = struct.Struct("<i")
_TWIST = struct.Struct("<3f")

Number = TypeVar("Number")

Place = tuple[str, int]
"""Stands for a number: the name of an array, and an index in it."""

Message = tuple[bytes, bytes]
"""Topic and payload."""


class StateRow(NamedTuple, Generic[Number]):
    """A row: int32 words, then float32 words, or float64 ones if it is ``wide``."""

    words: tuple[int, ...]
    numbers: tuple[Number, ...]
    wide: bool = False


PlacedRow = tuple[bytes, StateRow[Place]]
"""A topic, and a row of places."""


# -- what stands in a row -----------------------------------------------------------------------------------------


def joint_row(ident: int, pos: Number, vel: Number, acc: Number) -> StateRow[Number]:
    """16 bytes: MuJoCo's id, then first position, velocity and acceleration of a joint."""
    return StateRow((ident,), (pos, vel, acc))


def sensor_row(ident: int, values: Sequence[Number], layout: RowLayout) -> StateRow[Number]:
    """MuJoCo's id, in v2 how many values there are, and the values."""
    return StateRow((ident, len(values)) if layout is RowLayout.V2 else (ident,), tuple(values))


def base_state_row(qpos: Sequence[Number], qvel: Sequence[Number], layout: RowLayout) -> StateRow[Number]:
    """A free body; ``qpos`` and ``qvel`` are its joint's: position, quaternion w x y z, linear and angular velocity.

    v1 is 56 bytes: position and quaternion as they are, float64. v2 is 52 bytes: float32, the quaternion as x y z w,
    and the velocities.
    """
    if layout is RowLayout.V1:
        return StateRow((), tuple(qpos), wide=True)
    x, y, z, qw, qx, qy, qz = qpos
    return StateRow((), (x, y, z, qx, qy, qz, qw, *qvel))


def twist_row(velocity: Sequence[Number]) -> StateRow[Number]:
    """12 bytes: vx, vy in m/s, yaw rate in rad/s."""
    return StateRow((), tuple(velocity))


def scene_row(numbers: Sequence[Number]) -> StateRow[Number]:
    """v2 only: one field of an entity, float64 as they are."""
    return StateRow((), tuple(numbers), wide=True)


# -- packing ------------------------------------------------------------------------------------------------------


def pack_row(row: StateRow[float]) -> bytes:
    """One row as bytes. What is beyond float32 becomes infinite, as it does in C."""
    with np.errstate(over="ignore"):
        numbers = np.array(row.numbers, dtype=np.float64).astype("<f8" if row.wide else "<f4")
    return np.array(row.words, dtype="<i4").tobytes() + numbers.tobytes()


def pack_twist(vx: float, vy: float, yaw_rate: float) -> bytes:
    """The payload of a twist: that of a row, and of a command to the control socket."""
    return pack_row(twist_row((vx, vy, yaw_rate)))


def pack_actions(actions: int) -> bytes:
    """An int32 bit field."""
    return _INT.pack(actions)


class RowPacker:
    """Packs rows, (topic, row) each, whose numbers are places in ``arrays``: each (n,), float64, and changed by others.

    All rows of one width lie in one buffer, so that they cost a gather per array, one copy, and a slice per row.
    """

    def __init__(
        self, rows: Iterable[tuple[bytes, StateRow[Place]]], arrays: Mapping[str, NDArray[np.float64]]
    ) -> None:
        rows = list(rows)
        narrow = [(topic, row) for topic, row in rows if not row.wide]
        wide = [(topic, row) for topic, row in rows if row.wide]
        self._buffers = [_RowBuffer(some, arrays, dtype) for some, dtype in ((narrow, "<f4"), (wide, "<f8")) if some]

    def pack(self) -> list[Message]:
        """The rows with the numbers that the arrays hold now, in a list of its own."""
        messages: list[Message] = []
        for buffer in self._buffers:
            messages += buffer.pack()
        return messages


class _RowBuffer:
    """Rows of one width. ``_moves`` says which numbers go where."""

    def __init__(self, rows: Sequence[PlacedRow], arrays: Mapping[str, NDArray[np.float64]], dtype: str) -> None:
        self._spans: list[tuple[bytes, int, int]] = []
        self._numbers = np.zeros(sum(len(row.words) + len(row.numbers) for _, row in rows), dtype=dtype)
        integers, size = self._numbers.view("<i4"), self._numbers.itemsize
        moves: dict[str, tuple[list[int], list[int]]] = {}
        end = 0
        for topic, row in rows:
            begin, end = end, end + len(row.words)
            if row.words:  # rows of float64 have none
                integers[begin:end] = row.words
            for array, index in row.numbers:
                places, indices = moves.setdefault(array, ([], []))
                places.append(end)
                indices.append(index)
                end += 1
            self._spans.append((topic, size * begin, size * end))
        self._moves = [(np.array(to), arrays[name], np.array(at)) for name, (to, at) in moves.items()]

    def pack(self) -> list[Message]:
        """What is beyond float32 becomes infinite, as it does in C."""
        with np.errstate(over="ignore"):
            for places, array, indices in self._moves:
                self._numbers[places] = array.take(indices)
        packed = self._numbers.tobytes()
        return [(topic, packed[begin:end]) for topic, begin, end in self._spans]


# -- unpacking ----------------------------------------------------------------------------------------------------


def unpack_twist(payload: bytes) -> tuple[float, float, float]:
    """vx, vy in m/s, yaw rate in rad/s."""
    if len(payload) != _TWIST.size:
        raise StreamError(f"a twist row has {_TWIST.size} bytes, but this one has {len(payload)}")
    vx, vy, yaw_rate = _TWIST.unpack(payload)
    return vx, vy, yaw_rate
