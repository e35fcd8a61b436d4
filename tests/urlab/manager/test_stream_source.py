"""What a running scene tells the streams."""

import json
import threading
import time

import msgpack
import pytest

from urlab.errors import OpTimeout
from urlab.manager import Manager, View
from urlab.manager.stream_source import StreamSource
from urlab_wire import encode
from urlab_wire.enums import ObservationLevel, StepMode
from urlab_wire.ops.stepping import StepRequest
from urlab_wire.stream_messages import unpack_state

MINIMAL = View(ObservationLevel.MINIMAL)


def state_of(manager: Manager) -> dict[str, object]:
    source = StreamSource(manager)
    with manager.engine.locked():
        return msgpack.unpackb(source.state())


def test_the_state_is_what_a_standard_observation_says(demo_manager: Manager) -> None:
    demo_manager.articulation("quadruped").twist.set([0.5], [0, 0, 1.0], 3)
    demo_manager.step(StepRequest(n_steps=5), MINIMAL)
    state, seen = state_of(demo_manager), demo_manager.read(View(ObservationLevel.STANDARD))
    assert state["op"] == "state_full"
    assert state["time"] == demo_manager.engine.data.time
    assert state["step"] == demo_manager.counter.total == 5
    assert state["per_articulation"] == msgpack.unpackb(encode(seen.blocks.articulations))
    assert state["entities"] == msgpack.unpackb(encode(seen.blocks.entities))
    assert state["per_articulation"]["quadruped"]["actions"] == 3


def test_its_clocks_are_those_of_the_simulation_and_of_the_wall(demo_manager: Manager) -> None:
    demo_manager.engine.data.time = 12.25
    before = time.time_ns()
    state = state_of(demo_manager)
    assert state["sim_time"] == {"sec": 12, "nsec": 250_000_000}
    assert before <= state["wall_time"]["sec"] * 10**9 + state["wall_time"]["nsec"] <= time.time_ns()


def test_steps_only_grow_over_resets(demo_manager: Manager) -> None:
    source, steps = StreamSource(demo_manager), []
    for _ in range(3):
        demo_manager.step(StepRequest(n_steps=2), MINIMAL)
        demo_manager.reset(MINIMAL)
        with demo_manager.engine.locked():
            steps.append(unpack_state(source.state()).step)
    assert steps == [2, 4, 6]


def test_a_stream_leaves_the_warnings_to_the_replies(manager: Manager) -> None:
    manager.engine.data.qvel[0] = float("nan")
    with manager.engine.locked():
        manager.engine.step_once()
    state_of(manager)
    assert manager.read(MINIMAL).extras["warnings"]


def test_listeners_hear_of_every_publication_until_they_leave(manager: Manager) -> None:
    source, heard = StreamSource(manager), []

    def hear() -> None:
        heard.append(manager.engine.data.time)

    source.listen(hear)
    manager.step(StepRequest(n_steps=3), MINIMAL)
    manager.step(StepRequest(), MINIMAL)
    source.unlisten(hear)
    manager.step(StepRequest(), MINIMAL)
    assert heard == pytest.approx([0.006, 0.008])


def test_it_is_live_when_physics_runs_by_itself(manager: Manager) -> None:
    source, seen = StreamSource(manager), {}
    for mode in (StepMode.LIVE, StepMode.PUPPET, StepMode.DIRECT):
        manager.set_mode(mode)
        seen[mode] = source.is_live
    assert seen == {StepMode.LIVE: True, StepMode.PUPPET: False, StepMode.DIRECT: False}


def test_the_info_message_tells_actuators_and_their_ranges(demo_manager: Manager) -> None:
    model = demo_manager.engine.model
    messages = [json.loads(one) for one in StreamSource(demo_manager).info({"eye": "tcp://127.0.0.1:1"})]
    assert [one["robot"] for one in messages] == [one.prefix for one in demo_manager.scene.articulations]
    for message in messages:
        assert message["type"] == "actuator_list"
        assert message["camera_list"] == [{"name": "eye", "endpoint": "tcp://127.0.0.1:1"}]
        assert [model.actuator(name).id for name in message["names"]] == message["ids"]
        ranges = [model.actuator_ctrlrange[one].tolist() for one in message["ids"]]
        assert [list(pair) for pair in zip(message["mins"], message["maxs"], strict=True)] == ranges


def test_an_actuator_without_a_range_gets_a_wide_one(manager: Manager) -> None:
    (message,) = [json.loads(one) for one in StreamSource(manager).info({})]
    assert message == {
        "type": "actuator_list",
        "robot": "hopper",
        "names": ["hopper_push"],
        "ids": [0],
        "mins": [-100.0],
        "maxs": [100.0],
        "camera_list": [],
    }


def test_a_busy_simulation_is_not_waited_for(manager: Manager) -> None:
    source, held, gate = StreamSource(manager), threading.Event(), threading.Event()

    def hold() -> None:
        with manager.engine.locked():
            held.set()
            gate.wait(5)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(5)
    with pytest.raises(OpTimeout), source.locked(0.001):
        pass
    gate.set()
    holder.join()
