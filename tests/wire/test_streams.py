"""Topics and binary payloads of the streams, against the layouts that the protocol documents."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab_wire import streams
from urlab_wire.streams import BaseState, JointRow, NotFiniteError, RowKind, RowTopic, SensorRow, StreamError

float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
ids = st.integers(-(2**31), 2**31 - 1)
prefixes = st.text(st.characters(categories=("L", "N"), include_characters=".-_"), min_size=1)
names = st.text(min_size=1).map(lambda name: f"j{name}".rstrip(" "))


def vectors(count: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(*[float32s] * count)


# -- topics -------------------------------------------------------------------------------------------------------


def test_topics_are_those_of_the_protocol() -> None:
    assert streams.row_topic("arm", RowKind.JOINT, "elbow") == "arm/joint/elbow"
    assert streams.row_topic("arm", RowKind.SENSOR, "imu") == "arm/sensor/imu"
    assert streams.row_topic("dog", RowKind.BASE_STATE, "root") == "dog/base_state/root"
    assert streams.row_topic("dog", RowKind.TWIST) == "dog/twist"
    assert streams.row_topic("dog", RowKind.ACTIONS) == "dog/actions"
    assert streams.control_topic("MyRobot") == "MyRobot/control "
    assert streams.gains_topic("MyRobot") == "MyRobot/set_gains "
    assert streams.scene_topic("crate", "xpos") == "scene/crate/xpos"
    assert streams.frame_topic("arm/camera/eye") == "arm/camera/eye "
    assert streams.meta_topic("arm/camera/eye") == "meta/arm/camera/eye"


@given(prefixes, names)
def test_row_topics_are_read_back(prefix: str, name: str) -> None:
    for kind in (RowKind.JOINT, RowKind.SENSOR, RowKind.BASE_STATE):
        assert streams.parse_row_topic(streams.row_topic(prefix, kind, name)) == RowTopic(prefix, kind, name)
    for kind in (RowKind.TWIST, RowKind.ACTIONS):
        assert streams.parse_row_topic(streams.row_topic(prefix, kind) + " ") == RowTopic(prefix, kind)


@pytest.mark.parametrize(
    "topic", ["", "arm", "arm/", "/joint/a", "arm/joint", "arm/joint/", "arm/twist/x", "arm/camera/eye", "state/full"]
)
def test_other_topics_are_no_rows(topic: str) -> None:
    assert streams.parse_row_topic(topic) is None


# -- rows ---------------------------------------------------------------------------------------------------------


@given(ids, vectors(3))
def test_a_joint_row_is_an_id_and_three_float32(ident: int, numbers: tuple[float, ...]) -> None:
    payload = streams.pack_joint(JointRow(ident, *numbers))
    assert payload == struct.pack("<ifff", ident, *numbers)
    assert streams.unpack_joint(payload) == (ident, *numbers)


@given(ids, st.lists(float32s.filter(lambda one: one == 0 or abs(one) > 1e-30), min_size=1, max_size=9).map(tuple))
def test_sensor_rows_of_either_layout_are_read(ident: int, values: tuple[float, ...]) -> None:
    row = SensorRow(ident, values)
    assert streams.pack_sensor_v1(row) == struct.pack(f"<i{len(values)}f", ident, *values)
    assert streams.pack_sensor_v2(row) == struct.pack(f"<ii{len(values)}f", ident, len(values), *values)
    assert streams.unpack_sensor(streams.pack_sensor_v1(row)) == row
    assert streams.unpack_sensor(streams.pack_sensor_v2(row)) == row


def test_base_state_v1_is_seven_float64_with_w_first() -> None:
    row = BaseState((1.0, 2.0, 3.0), (0.1, 0.2, 0.3, 0.4))
    payload = streams.pack_base_state_v1(row)
    assert payload == struct.pack("<7d", 1, 2, 3, 0.1, 0.2, 0.3, 0.4)
    assert streams.unpack_base_state(payload) == row


def test_base_state_v2_is_thirteen_float32_with_w_last() -> None:
    row = BaseState((1.0, 2.0, 3.0), (4.0, 5.0, 6.0, 7.0), (8.0, 9.0, 10.0), (11.0, 12.0, 13.0))
    payload = streams.pack_base_state_v2(row)
    assert payload == struct.pack("<13f", 1, 2, 3, 5, 6, 7, 4, 8, 9, 10, 11, 12, 13)
    assert streams.unpack_base_state(payload) == row


@given(vectors(3), st.integers(0, 1023))
def test_twists_and_actions_are_read_back(twist: tuple[float, float, float], actions: int) -> None:
    assert streams.pack_twist(*twist) == struct.pack("<3f", *twist)
    assert streams.unpack_twist(streams.pack_twist(*twist)) == twist
    assert streams.pack_actions(actions) == struct.pack("<i", actions)
    assert streams.unpack_actions(streams.pack_actions(actions)) == actions


def test_what_is_beyond_float32_becomes_infinite() -> None:
    assert streams.unpack_joint(streams.pack_joint(JointRow(1, 1e300, -1e300, math.nan)))[1:3] == (math.inf, -math.inf)
    assert streams.unpack_twist(streams.pack_twist(1e39, 0, 0)) == (math.inf, 0, 0)


@pytest.mark.parametrize(
    ("read", "size"),
    [
        (streams.unpack_joint, 16),
        (streams.unpack_base_state, 52),
        (streams.unpack_twist, 12),
        (streams.unpack_actions, 4),
    ],
)
def test_a_row_of_another_size_is_refused(read, size: int) -> None:
    for wrong in (0, size - 1, size + 1, 1000):
        with pytest.raises(StreamError, match=f"{size} bytes, but this one has {wrong}"):
            read(bytes(wrong))


@pytest.mark.parametrize("size", [0, 4, 7, 13])
def test_a_sensor_row_of_broken_words_is_refused(size: int) -> None:
    with pytest.raises(StreamError, match=f"has {size} bytes"):
        streams.unpack_sensor(bytes(size))


# -- control ------------------------------------------------------------------------------------------------------


def test_a_control_message_is_what_the_protocols_example_sends() -> None:
    payload = struct.pack("<I", 3)
    for actuator in range(3):
        payload += struct.pack("<If", actuator, 0.5)
    assert streams.pack_control({0: 0.5, 1: 0.5, 2: 0.5}) == payload
    assert streams.unpack_control(payload) == {0: 0.5, 1: 0.5, 2: 0.5}


@given(st.dictionaries(ids, float32s, max_size=20))
def test_control_messages_are_read_back(values: dict[int, float]) -> None:
    assert streams.unpack_control(streams.pack_control(values)) == values


def test_the_last_value_of_an_id_counts() -> None:
    assert streams.unpack_control(struct.pack("<iifif", 2, 7, 1.0, 7, 2.0)) == {7: 2.0}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\1\0\0",
        struct.pack("<i", 1),
        struct.pack("<i", -1),
        struct.pack("<I", 2**32 - 1),
        struct.pack("<i", 2**31 - 1) + bytes(80),
        struct.pack("<iif", 2, 0, 1.0),
        struct.pack("<iifi", 1, 0, 1.0, 0),
    ],
)
def test_a_control_message_whose_count_and_size_disagree_is_refused(payload: bytes) -> None:
    with pytest.raises(StreamError, match="control message"):
        streams.unpack_control(payload)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_setpoint_that_is_not_finite_is_refused_by_name(value: float) -> None:
    with pytest.raises(NotFiniteError, match=f"actuator 4 is sent {value}"):
        streams.unpack_control(struct.pack("<iifif", 2, 3, 1.0, 4, value))
    with pytest.raises(NotFiniteError):
        streams.unpack_control(streams.pack_control({1: 1e300}))


@given(st.binary(max_size=64))
def test_any_bytes_are_finite_setpoints_or_an_error(payload: bytes) -> None:
    try:
        values = streams.unpack_control(payload)
    except StreamError:
        return
    assert len(payload) == 4 + 8 * int(np.frombuffer(payload, "<i4", 1)[0])
    assert all(math.isfinite(value) for value in values.values())


def test_gains_are_json_by_joint() -> None:
    assert streams.pack_gains({"elbow": {"kp": 50.0, "kv": 1.5}}) == b'{"elbow":{"kp":50.0,"kv":1.5}}'
    with pytest.raises(NotFiniteError, match="elbow"):
        streams.pack_gains({"elbow": {"kp": math.nan}})
