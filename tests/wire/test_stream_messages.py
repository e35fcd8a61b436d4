"""The payloads of the streams that are maps."""

import json
from typing import Any

import msgpack
import msgspec
import pytest

from urlab_wire import encode
from urlab_wire import stream_messages as messages
from urlab_wire.ops.stepping import ArticulationState, ClockBlock, EntityState
from urlab_wire.stream_messages import ActuatorList, CameraEndpoint, StateFull
from urlab_wire.streams import StreamError

STATE = StateFull(
    time=0.5,
    step=250,
    sim_time=ClockBlock(sec=0, nsec=500_000_000),
    wall_time=ClockBlock(sec=1, nsec=2),
    per_articulation={"arm": ArticulationState(qpos=[1.0], qvel=[2.0])},
    entities={"crate": EntityState(xpos=[0.0, 0.0, 1.0], xquat=[1.0, 0.0, 0.0, 0.0])},
)


def test_the_whole_state_is_a_map_that_any_msgpack_library_reads() -> None:
    assert msgpack.unpackb(encode(STATE)) == {
        "op": "state_full",
        "time": 0.5,
        "step": 250,
        "sim_time": {"sec": 0, "nsec": 500_000_000},
        "wall_time": {"sec": 1, "nsec": 2},
        "per_articulation": {"arm": {"qpos": [1.0], "qvel": [2.0]}},
        "entities": {"crate": {"xpos": [0.0, 0.0, 1.0], "xquat": [1.0, 0.0, 0.0, 0.0]}},
    }
    assert messages.unpack_state(encode(STATE)) == STATE


def test_the_info_message_has_the_fields_of_the_protocol() -> None:
    info = ActuatorList(
        robot="arm", names=["arm_m"], ids=[3], mins=[-1.0], maxs=[1.0], camera_list=[CameraEndpoint("eye", "tcp://x:1")]
    )
    assert json.loads(messages.pack_info(info)) == {
        "type": "actuator_list",
        "robot": "arm",
        "names": ["arm_m"],
        "ids": [3],
        "mins": [-1.0],
        "maxs": [1.0],
        "camera_list": [{"name": "eye", "endpoint": "tcp://x:1"}],
    }
    assert msgspec.json.decode(messages.pack_info(info), type=messages.ActuatorList) == info


def test_metadata_is_a_map_of_anything_plain() -> None:
    metadata = {"frame_id": 7, "K": [[1.0, 0.0], [0.0, 1.0]], "mode": "depth"}
    assert messages.unpack_metadata(messages.pack_metadata(metadata)) == metadata


@pytest.mark.parametrize("read", [messages.unpack_state, messages.unpack_metadata])
@pytest.mark.parametrize("payload", [b"", b"\xc1", b"[]", b"\x90", b"[" * 5000, b"\x91" * 5000, b'{"type": "other"}'])
def test_a_broken_message_is_a_stream_error(read: Any, payload: bytes) -> None:
    with pytest.raises(StreamError, match="broken"):
        read(payload)
