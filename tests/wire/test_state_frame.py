"""Frames put together from bytes decode to what the encoder writes."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab_wire import encode
from urlab_wire.ops.stepping import ArticulationState, ClockBlock, EntityState, ForwardReply, ResetReply, StepReply
from urlab_wire.state_frame import StateFrame
from urlab_wire.stream_messages import StateFull

ROBOTS = {"arm": ArticulationState(qpos=[1.5], qvel=[-2.0], sensors={"touch": [0.25]})}
THINGS = {"box": EntityState(xpos=[1.0, 2.0, 3.0], xquat=[1.0, 0.0, 0.0, 0.0])}
BLOCKS = encode({"per_articulation": ROBOTS, "entities": THINGS})[1:]
EXTRAS = {"warnings": ["hot"], "cameras": {"eye": {"data": b"1234"}}}

seconds = st.floats(-1e12, 1e12)


def struct_of(kind, time_s, step, wall_ns, extras):
    return kind(
        time=time_s,
        step=step,
        sim_time=ClockBlock.of_s(time_s),
        wall_time=ClockBlock.of_ns(wall_ns),
        per_articulation=ROBOTS,
        entities=THINGS,
        **extras,
    )


@pytest.mark.parametrize("kind", [StepReply, ResetReply, ForwardReply, StateFull])
@given(time_s=seconds, step=st.integers(0, 2**63), wall_ns=st.integers(0, 2**62))
def test_a_frame_says_what_the_struct_says(kind, time_s, step, wall_ns):
    frame = StateFrame(kind).build(time_s, step, wall_ns, BLOCKS, {})
    assert msgpack.unpackb(frame) == msgpack.unpackb(encode(struct_of(kind, time_s, step, wall_ns, {})))


@given(time_s=seconds)
def test_further_fields_stand_beside_the_state(time_s):
    frame = StateFrame(StepReply).build(time_s, 7, 8, BLOCKS, EXTRAS)
    assert msgpack.unpackb(frame) == msgpack.unpackb(encode(struct_of(StepReply, time_s, 7, 8, EXTRAS)))


@pytest.mark.parametrize("time_s", [float("inf"), float("-inf"), float("nan"), 1e300, -1e300])
def test_a_time_beyond_the_clock_leaves_it_standing(time_s):
    clock = msgpack.unpackb(StateFrame(StepReply).build(time_s, 1, 1, BLOCKS, {}))["sim_time"]
    assert abs(clock["sec"]) == 2**62
    assert clock["nsec"] == 0
