"""Topics and binary payloads of the streams, against the layouts that the protocol documents."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab_wire import streams
from urlab_wire.streams import NotFiniteError, RowKind, RowTopic, StreamError

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
