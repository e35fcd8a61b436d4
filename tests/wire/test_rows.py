"""State rows against the layouts that the protocol documents."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab_wire import rows
from urlab_wire.enums import RowLayout
from urlab_wire.rows import RowPacker, StateRow, pack_row
from urlab_wire.streams import StreamError

float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
ids = st.integers(-(2**31), 2**31 - 1)


def vectors(count: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(*[float32s] * count)


@given(ids, vectors(3))
def test_a_joint_row_is_an_id_and_three_float32(ident: int, numbers: tuple[float, float, float]) -> None:
    payload = pack_row(rows.joint_row(ident, *numbers))
    assert payload == struct.pack("<ifff", ident, *numbers)


@given(ids, st.lists(float32s.filter(lambda one: one == 0 or abs(one) > 1e-30), min_size=1, max_size=9).map(tuple))
def test_a_sensor_row_is_an_id_and_its_values_and_in_v2_their_number(ident: int, values: tuple[float, ...]) -> None:
    v1, v2 = (pack_row(rows.sensor_row(ident, values, layout)) for layout in RowLayout)
    assert v1 == struct.pack(f"<i{len(values)}f", ident, *values)
    assert v2 == struct.pack(f"<ii{len(values)}f", ident, len(values), *values)


def test_base_state_v1_is_seven_float64_with_w_first() -> None:
    qpos = (1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 0.4)
    payload = pack_row(rows.base_state_row(qpos, (0.0,) * 6, RowLayout.V1))
    assert payload == struct.pack("<7d", *qpos)


def test_base_state_v2_is_thirteen_float32_with_w_last() -> None:
    qpos, qvel = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0), (8.0, 9.0, 10.0, 11.0, 12.0, 13.0)
    payload = pack_row(rows.base_state_row(qpos, qvel, RowLayout.V2))
    assert payload == struct.pack("<13f", 1, 2, 3, 5, 6, 7, 4, 8, 9, 10, 11, 12, 13)


def test_rows_that_are_packed_together_are_those_that_are_packed_alone() -> None:
    arrays = {"a": np.array([1.5, -2.5, 1e300, 4.0]), "b": np.array([0.1, 0.2])}
    some: list[StateRow[rows.Place]] = [
        StateRow((7, 8), (("a", 3), ("b", 0))),
        StateRow((), (("b", 1), ("a", 0)), wide=True),
        StateRow((), (("a", 2),)),
        StateRow((9,), ()),
        StateRow((), (("a", 2),), wide=True),
    ]
    packer = RowPacker([(b"%d" % number, row) for number, row in enumerate(some)], arrays)
    for _ in range(2):
        alone = {
            b"%d" % number: pack_row(row._replace(numbers=tuple(arrays[name][index] for name, index in row.numbers)))
            for number, row in enumerate(some)
        }
        assert dict(packer.pack()) == alone
        arrays["a"] += 1.0
        arrays["b"] *= 3.0


@given(vectors(3), st.integers(0, 1023))
def test_twists_and_actions_are_read_back(twist: tuple[float, float, float], actions: int) -> None:
    assert rows.pack_twist(*twist) == struct.pack("<3f", *twist)
    assert rows.unpack_twist(rows.pack_twist(*twist)) == twist
    assert rows.pack_actions(actions) == struct.pack("<i", actions)


def test_what_is_beyond_float32_becomes_infinite() -> None:
    row = struct.unpack("<ifff", pack_row(rows.joint_row(1, 1e300, -1e300, math.nan)))
    assert row[1:3] == (math.inf, -math.inf)
    assert rows.unpack_twist(rows.pack_twist(1e39, 0, 0)) == (math.inf, 0, 0)


@pytest.mark.parametrize("wrong", [0, 11, 13, 1000])
def test_a_twist_of_another_size_is_refused(wrong: int) -> None:
    with pytest.raises(StreamError, match=f"12 bytes, but this one has {wrong}"):
        rows.unpack_twist(bytes(wrong))
