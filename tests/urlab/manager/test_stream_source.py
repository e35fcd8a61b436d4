"""What a running scene gives to the streams, and takes from them."""

import json
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.errors import OpTimeout
from urlab.manager import Manager, StepCounter, View
from urlab.manager.stream_source import StreamSource
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab_wire import encode
from urlab_wire.enums import ControlSource, ObservationLevel, StepMode
from urlab_wire.ops.stepping import StepRequest
from urlab_wire.rows import pack_twist
from urlab_wire.streams import ControlOutcome, pack_control, twist_command_topic

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


def test_a_reset_and_the_beginning_of_a_session_restart_its_count_of_steps(demo_manager: Manager) -> None:
    def seen() -> object:
        return state_of(demo_manager)["step"]

    demo_manager.step(StepRequest(n_steps=2), MINIMAL)
    assert seen() == 2
    demo_manager.reset(MINIMAL)
    assert seen() == 0
    demo_manager.step(StepRequest(n_steps=3), MINIMAL)
    demo_manager.counter.driver_start = demo_manager.counter.total - 1
    assert seen() == 1


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
            gate.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    with pytest.raises(OpTimeout), source.locked(0.001):
        pass
    gate.set()
    holder.join()


TWO_JOINTS = """
<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1"/>
  <body pos="0 0 .3"><joint name="b" axis="0 1 0"/><geom size=".1"/></body></body></worldbody>
  <actuator><motor name="ma" joint="a"/><motor name="mb" joint="b"/></actuator></mujoco>"""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Manager]:
    """Paused in live mode: ``raw`` with actuators 0 and 1, and ``pd`` with a controller and actuators 2 and 3."""
    for name in ("raw", "pd"):
        (tmp_path / f"{name}.xml").write_text(TWO_JOINTS)
    (tmp_path / "pd.urlab.toml").write_text('[controller]\nkind = "pd"\n')
    actors = tuple(Actor(name, str(tmp_path / f"{name}.xml")) for name in ("raw", "pd"))
    scene = compile_scene(Level("two", actors), Library(file_record))
    manager = Manager(scene, replays_dir=tmp_path, roots=FileRoots(), counter=StepCounter())
    manager.loop.set_paused(True)
    manager.start(StepMode.LIVE)
    yield manager
    manager.stop()


def send(manager: Manager, topic: str, payload: bytes) -> ControlOutcome:
    (outcome,) = StreamSource(manager).control([(topic.encode(), payload)])
    return outcome


def staged(manager: Manager) -> list[float]:
    return [value for one in manager.articulations.values() for value in one.staged.staged(ControlSource.ZMQ).tolist()]


def fingerprint(manager: Manager) -> tuple[object, ...]:
    controller = manager.articulation("pd").controller
    return (
        staged(manager),
        controller.params(),
        tuple(getattr(manager.engine.data, name).tobytes() for name in ("qpos", "qvel", "ctrl")),
    )


@pytest.mark.parametrize("topic", ["pd/control", "pd/control ", "pd/control   "])
def test_setpoints_go_to_the_actuators_of_these_ids(live: Manager, topic: str) -> None:
    assert send(live, topic, pack_control({3: 0.5})) is ControlOutcome.APPLIED
    assert staged(live) == [0, 0, 0, 0.5]
    assert send(live, "raw/control", pack_control({1: 2.0, 0: 1.0})) is ControlOutcome.APPLIED
    assert staged(live) == [1, 2, 0, 0.5]


def test_they_act_in_the_very_next_step(live: Manager) -> None:
    send(live, "raw/control", pack_control({0: 0.25, 1: -0.75}))
    with live.engine.locked():
        live.engine.step_once()
        assert live.engine.data.ctrl[:2].tolist() == [0.25, -0.75]


def test_a_velocity_is_what_the_robot_is_told_to_do(live: Manager) -> None:
    assert send(live, twist_command_topic("raw"), pack_twist(0.5, -0.25, 1.5)) is ControlOutcome.APPLIED
    twist = live.articulation("raw").twist
    assert twist is not None
    assert (twist.linear, twist.angular) == ([0.5, -0.25, 0.0], [0.0, 0.0, 1.5])


def test_messages_are_taken_in_their_order(live: Manager) -> None:
    messages = [(b"raw/control", pack_control({0: float(value)})) for value in range(5)]
    assert StreamSource(live).control(messages) == [ControlOutcome.APPLIED] * 5
    assert staged(live)[0] == 4


@pytest.mark.parametrize(
    ("topic", "payload", "outcome"),
    [
        ("raw/control", b"", ControlOutcome.MALFORMED),
        ("raw/control", struct.pack("<I", 2**32 - 1), ControlOutcome.MALFORMED),
        ("raw/control", struct.pack("<iif", 2, 0, 1.0), ControlOutcome.MALFORMED),
        ("raw/control", struct.pack("<iif", 1, 0, float("nan")), ControlOutcome.NOT_FINITE),
        ("raw/control", struct.pack("<iifif", 2, 0, 1.0, 1, float("inf")), ControlOutcome.NOT_FINITE),
        ("raw/control", pack_control({0: 1.0, 2: 1.0}), ControlOutcome.UNKNOWN_ID),
        ("raw/control", pack_control({0: 1.0, 99: 1.0}), ControlOutcome.UNKNOWN_ID),
        ("raw/control", pack_control({-1: 1.0}), ControlOutcome.UNKNOWN_ID),
        ("robot/control", pack_control({0: 1.0}), ControlOutcome.UNKNOWN_ROBOT),
        ("ra/control", pack_control({0: 1.0}), ControlOutcome.UNKNOWN_ROBOT),
        ("my/raw/control", pack_control({0: 1.0}), ControlOutcome.UNKNOWN_ROBOT),
        ("control", pack_control({0: 1.0}), ControlOutcome.UNKNOWN_ROBOT),
        ("raw/controls", pack_control({0: 1.0}), ControlOutcome.UNKNOWN_TOPIC),
        ("raw", pack_control({0: 1.0}), ControlOutcome.UNKNOWN_TOPIC),
        ("raw/set_twist", b"", ControlOutcome.MALFORMED),
        ("raw/set_twist", bytes(16), ControlOutcome.MALFORMED),
        ("raw/set_twist", pack_twist(1.0, float("nan"), 0.0), ControlOutcome.NOT_FINITE),
        ("robot/set_twist", pack_twist(1.0, 0.0, 0.0), ControlOutcome.UNKNOWN_ROBOT),
        ("pd/set_gains", b"", ControlOutcome.BAD_JSON),
        ("pd/set_gains", b"{", ControlOutcome.BAD_JSON),
        ("pd/set_gains", b"[1]", ControlOutcome.BAD_JSON),
        ("pd/set_gains", b'{"a": 5}', ControlOutcome.BAD_JSON),
        ("pd/set_gains", b'{"a": {"ki": 5}}', ControlOutcome.BAD_JSON),
        ("pd/set_gains", b'{"a": {"kp": NaN}}', ControlOutcome.BAD_JSON),
        ("pd/set_gains", b'{"a": ' * 3000, ControlOutcome.BAD_JSON),
        ("pd/set_gains", b'{"a": ' + b"[" * 900 + b"]" * 900 + b"}", ControlOutcome.BAD_JSON),
        ("pd/set_gains", b'{"a": {"kp": -1}}', ControlOutcome.REFUSED),
        ("pd/set_gains", b'{"a": {"kp": 1}, "c": {"kp": 1}}', ControlOutcome.REFUSED),
        ("pd/set_gains", b'{"a": {"kp": "5"}}', ControlOutcome.REFUSED),
        ("pd/set_gains", b'{"a": {"kp": ' + b"9" * 10000 + b"}}", None),
        ("pd/set_gains", b'{"a": {"kp": ' + b"[" * 900 + b"]" * 900 + b"}}", ControlOutcome.REFUSED),
        ("raw/set_gains", b'{"a": {"kp": 1}}', ControlOutcome.REFUSED),
    ],
)
def test_a_wrong_message_changes_nothing(
    live: Manager, topic: str, payload: bytes, outcome: ControlOutcome | None
) -> None:
    before = fingerprint(live)
    got = send(live, topic, payload)
    assert got in ((ControlOutcome.BAD_JSON, ControlOutcome.REFUSED) if outcome is None else (outcome,))
    assert fingerprint(live) == before


@pytest.mark.parametrize("topic", ["pd/set_gains", "pd/set_gains "])
def test_gains_are_set_by_joint(live: Manager, topic: str) -> None:
    before = live.articulation("pd").controller.params()
    gains = {"a": {"kp": 12.0, "torque_limit": 3.0}, "mb": {"kv": 0.5}}
    assert send(live, topic, json.dumps(gains).encode()) is ControlOutcome.APPLIED
    after = live.articulation("pd").controller.params()
    assert after["kp"] == {**before["kp"], "a": 12.0}
    assert after["torque_limit"] == {**before["torque_limit"], "a": 3.0}
    assert after["kv"] == {**before["kv"], "b": 0.5}


def test_a_robot_that_follows_somebody_else_keeps_setpoints_for_later(live: Manager) -> None:
    live.set_control_source(ControlSource.UI, "raw")
    live.set_control_source(ControlSource.UI, "pd")
    assert send(live, "raw/control", pack_control({0: 0.5})) is ControlOutcome.OTHER_SOURCE
    with live.engine.locked():
        live.engine.step_once()
        assert live.engine.data.ctrl[0] == 0
    live.set_control_source(ControlSource.ZMQ, "raw")
    with live.engine.locked():
        live.engine.step_once()
        assert live.engine.data.ctrl[0] == 0.5
    before = live.articulation("pd").controller.params()
    assert send(live, "pd/set_gains", b'{"a": {"kp": 1}}') is ControlOutcome.OTHER_SOURCE
    assert live.articulation("pd").controller.params() == before


@pytest.mark.parametrize("mode", [StepMode.DIRECT, StepMode.PUPPET])
def test_in_other_modes_nothing_is_taken(live: Manager, mode: StepMode) -> None:
    live.set_mode(mode)
    before = fingerprint(live)
    assert send(live, "raw/control", pack_control({0: 0.5})) is ControlOutcome.NOT_LIVE
    assert send(live, "pd/set_gains", b'{"a": {"kp": 1}}') is ControlOutcome.NOT_LIVE
    assert fingerprint(live) == before


payloads = (
    st.binary(max_size=64)
    | st.dictionaries(st.integers(-1, 4), st.floats(width=32), max_size=5).map(pack_control)
    | st.recursive(st.floats() | st.text() | st.none(), lambda inner: st.dictionaries(st.text(), inner)).map(
        lambda tree: json.dumps(tree).encode()
    )
)
topics = st.sampled_from([b"raw/control", b"pd/control ", b"pd/set_gains", b"raw/set_gains "]) | st.binary(max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(topics, payloads), max_size=4))
def test_whatever_is_sent_is_applied_whole_or_not_at_all(live: Manager, messages: list[tuple[bytes, bytes]]) -> None:
    source = StreamSource(live)
    for message in messages:
        before = fingerprint(live)
        (outcome,) = source.control([message])
        assert np.isfinite(staged(live)).all()
        if outcome is not ControlOutcome.APPLIED:
            assert fingerprint(live) == before
