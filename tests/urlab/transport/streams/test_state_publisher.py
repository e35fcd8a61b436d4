"""The state and info streams of a real scene, read with plain sockets."""

import json
import struct
import threading
import time
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq

from urlab.manager import Manager, StreamSource, View
from urlab.transport.streams.state_publisher import HEARTBEAT_S, OFTEN_UNTIL_STEP, Heartbeat
from urlab_wire.enums import ObservationLevel, RowLayout, StepMode
from urlab_wire.ops.stepping import StepRequest

MINIMAL = View(ObservationLevel.MINIMAL)
V1_TOPICS = {
    b"MyRobot/joint/shoulder",
    b"MyRobot/joint/elbow",
    b"MyRobot/sensor/angle",
    b"MyRobot/sensor/where",
    b"MyRobot/twist",
    b"state/full",
}
SCENE_TOPICS = {f"scene/ball/{field}".encode() for field in ("xpos", "xquat", "qpos", "qvel")}

INFO = {
    "type": "actuator_list",
    "robot": "MyRobot",
    "names": ["MyRobot_s", "MyRobot_e"],
    "ids": [0, 1],
    "mins": [-1.0, -100.0],
    "maxs": [1.0, 100.0],
    "camera_list": [],
}


def receive(socket: Any, count: int) -> list[tuple[bytes, bytes]]:
    return [tuple(socket.recv_multipart()) for _ in range(count)]


def receive_states(socket: Any, until: int) -> list[dict[str, Any]]:
    """Everything up to the state of that step."""
    states = []
    while not states or states[-1]["step"] < until:
        states.append(msgpack.unpackb(socket.recv_multipart()[1]))
    return states


def test_a_live_step_sends_rows_and_then_the_state(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    socket = subscribe(stream(manager)._state, b"MyRobot/", b"state/full")
    socket.recv_multipart()  # the first heartbeat
    step(manager)
    messages = receive(socket, len(V1_TOPICS))
    assert {topic for topic, _ in messages} == V1_TOPICS
    assert messages[-1][0] == b"state/full"
    state = msgpack.unpackb(messages[-1][1])
    assert (state["op"], state["step"], state["time"]) == ("state_full", 1, 0.002)


@pytest.mark.parametrize("layout", list(RowLayout))
def test_rows_hold_the_numbers_of_the_step(
    play: Any, stream: Any, subscribe: Any, step: Any, layout: RowLayout
) -> None:
    manager = play(paused=True)
    socket = subscribe(stream(manager, layout=layout)._state, b"MyRobot/", b"scene/")
    manager.engine.data.qvel[:] = np.linspace(0.1, 1, manager.engine.model.nv)
    step(manager)
    data, count = manager.engine.data, len(V1_TOPICS) - 1 + (len(SCENE_TOPICS) if layout is RowLayout.V2 else 0)
    rows = dict(receive(socket, count))
    elbow = data.joint("MyRobot_elbow")
    numbers = np.array([elbow.qpos[0], elbow.qvel[0], elbow.qacc[0]]).astype(np.float32)
    assert rows[b"MyRobot/joint/elbow"] == struct.pack("<i", elbow.id) + numbers.tobytes()
    where = data.sensor("MyRobot_where")
    header = struct.pack("<i", where.id) if layout is RowLayout.V1 else struct.pack("<ii", where.id, 3)
    assert rows[b"MyRobot/sensor/where"] == header + where.data.astype(np.float32).tobytes()
    assert (rows.keys() >= SCENE_TOPICS) is (layout is RowLayout.V2)
    if layout is RowLayout.V2:
        assert rows[b"scene/ball/xpos"] == data.body("ball").xpos.tobytes()


def test_while_nobody_listens_nothing_is_encoded(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    streams = stream(manager)
    step(manager, 100)
    assert streams.counters()["state"] == {"sent": 0, "dropped": 0}
    assert streams._state._rows is None
    socket = subscribe(streams._state, b"MyRobot/joint/elbow")
    step(manager, 5)
    assert {topic for topic, _ in receive(socket, 5)} == {b"MyRobot/joint/elbow"}
    assert streams.counters()["state"]["sent"] == 5


def test_subscriptions_may_change_at_any_time(
    play: Any, stream: Any, subscribe: Any, step: Any, wait_until: Any
) -> None:
    manager = play(paused=True)
    publisher = stream(manager)._state
    socket = subscribe(publisher, b"MyRobot/joint/elbow")
    step(manager)
    assert socket.recv_multipart()[0] == b"MyRobot/joint/elbow"
    socket.setsockopt(zmq.UNSUBSCRIBE, b"MyRobot/joint/elbow")
    socket.setsockopt(zmq.SUBSCRIBE, b"MyRobot/twist")

    def selected() -> list[bytes]:
        rows = publisher._rows
        with manager.engine.locked():
            return [topic for topic, _ in rows()] if rows is not None else []

    wait_until(lambda: selected() == [b"MyRobot/twist"])
    step(manager)
    assert socket.recv_multipart()[0] == b"MyRobot/twist"
    socket.close()
    wait_until(lambda: publisher._rows is None)


def test_actions_are_sent_only_when_there_are_any(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    socket = subscribe(stream(manager)._state, b"MyRobot/actions", b"MyRobot/twist")
    step(manager)
    manager.articulation("MyRobot").twist.set([0.5], None, 5)
    step(manager)
    topics = dict(receive(socket, 3))
    assert topics[b"MyRobot/actions"] == struct.pack("<i", 5)
    assert topics[b"MyRobot/twist"] == struct.pack("<3f", 0.5, 0, 0)
    assert not socket.poll(0)


@pytest.mark.parametrize("mode", [StepMode.DIRECT, StepMode.PUPPET])
def test_other_modes_send_the_state_once_per_request_and_no_rows(
    play: Any, stream: Any, subscribe: Any, mode: StepMode
) -> None:
    manager = play(mode)
    socket = subscribe(stream(manager)._state, b"")
    per_request = 10 if mode is StepMode.DIRECT else 1
    for _ in range(5):
        manager.step(StepRequest(n_steps=10), MINIMAL)
    steps = [state["step"] for state in receive_states(socket, 5 * per_request)]
    assert sorted(set(steps)) == [per_request * request for request in range(steps[0] // per_request, 6)]
    assert steps == sorted(steps)


@pytest.mark.parametrize(("mode", "paused"), [(StepMode.LIVE, True), (StepMode.DIRECT, False)])
def test_an_idle_scene_repeats_its_state(play: Any, stream: Any, subscribe: Any, mode: StepMode, paused: bool) -> None:
    socket = subscribe(stream(play(mode, paused=paused))._state, b"")
    states = [msgpack.unpackb(payload) for topic, payload in receive(socket, 4) if topic == b"state/full"]
    assert [state["step"] for state in states] == [0, 0, 0, 0]
    clocks = [state["wall_time"]["sec"] + state["wall_time"]["nsec"] / 1e9 for state in states]
    assert clocks == sorted(clocks)
    assert clocks[-1] - clocks[0] > 2 * HEARTBEAT_S


def test_a_running_scene_sends_every_step(play: Any, stream: Any, subscribe: Any) -> None:
    """On a machine that is late the heartbeat may repeat a state, and a few may have been dropped."""
    streams = stream(play())
    socket = subscribe(streams._state, b"state/full")
    states = [msgpack.unpackb(payload) for _, payload in receive(socket, 100)]
    steps = list(dict.fromkeys(state["step"] for state in states))
    assert steps == sorted(steps)
    assert steps[-1] - steps[0] + 1 - len(steps) <= streams.counters()["state"]["dropped"]
    assert [state["time"] for state in states] == pytest.approx([0.002 * state["step"] for state in states])


def test_idle_without_subscribers_no_thread_wakes(play: Any, stream: Any, wait_until: Any) -> None:
    streams = stream(play(paused=True))
    owned = [streams._state._heartbeat._thread, streams._control._thread]
    owned += [one for one in threading.enumerate() if one.name == "urlab-publishing"]
    clocks = [time.pthread_getcpuclockid(one.ident) for one in owned]

    def rest() -> bool:
        before = [time.clock_gettime(clock) for clock in clocks]
        threading.Event().wait(0.25)
        return [time.clock_gettime(clock) for clock in clocks] == before

    wait_until(rest)  # they have just begun
    assert rest()


def test_a_scene_that_is_busy_is_not_waited_for(play: Any, stream: Any, subscribe: Any) -> None:
    manager = play(StepMode.DIRECT)
    streams = stream(manager)
    socket = subscribe(streams._state, b"state/full")
    with manager.engine.locked():
        while socket.poll(int(2000 * HEARTBEAT_S)):
            socket.recv_multipart()
    socket.recv_multipart()


def test_a_stuck_subscriber_holds_up_neither_steps_nor_other_subscribers(
    play: Any, stream: Any, subscribe: Any, step: Any, connect: Any, wait_until: Any
) -> None:
    manager = play(paused=True)
    publisher = stream(manager)._state
    stuck = connect("inproc://nowhere", zmq.SUB)
    for option in (zmq.RCVHWM, zmq.RCVBUF):
        stuck.setsockopt(option, 1)
    stuck.setsockopt(zmq.SUBSCRIBE, b"")
    stuck.connect(publisher.socket.endpoint)
    wait_until(lambda: stuck.poll(0) or publisher._rows is not None)
    step(manager, 2000)
    healthy = subscribe(publisher, b"state/full")
    step(manager)
    states = iter(lambda: msgpack.unpackb(healthy.recv_multipart()[1])["step"], 2001)
    assert all(one < 2001 for one in states)


def test_a_new_scene_takes_over_the_same_socket(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    first = play(paused=True)
    streams = stream(first)
    endpoints = streams.endpoints()
    socket = subscribe(streams._state, b"MyRobot/joint/elbow")
    step(first)
    socket.recv_multipart()
    streams.detach()
    step(first)
    second = play(paused=True)
    second.engine.data.joint("MyRobot_elbow").qpos = 0.5
    streams.attach(StreamSource(second), [])
    assert streams.endpoints() == endpoints
    step(second)
    joint = struct.unpack("<Ifff", socket.recv_multipart()[1])
    assert joint[1] == np.float32(second.engine.data.joint("MyRobot_elbow").qpos[0])
    assert not socket.poll(0)


def test_between_scenes_nothing_is_said(play: Any, stream: Any, subscribe: Any) -> None:
    streams = stream(play(paused=True))
    socket = subscribe(streams._state, b"")
    socket.recv_multipart()
    streams.detach()
    while socket.poll(int(2000 * HEARTBEAT_S)):
        socket.recv_multipart()
    streams.detach()


def test_a_detached_scene_is_left_alone(play: Any, stream: Any) -> None:
    manager: Manager = play(paused=True)
    hooks = manager.engine.on_publish[:]
    streams = stream(manager)
    assert len(manager.engine.on_publish) > len(hooks)
    streams.detach()
    assert manager.engine.on_publish == hooks


# -- the info stream ------------------------------------------------------------------------------------------------


def test_the_info_tells_what_there_is_in_one_frame(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    streams = stream(manager, cameras=("eye",))
    socket = subscribe(streams._info, b"")
    step(manager, 50)
    (frame,) = socket.recv_multipart()
    cameras = [{"name": "eye", "endpoint": streams.endpoints()["cameras"]["eye"]}]
    assert json.loads(frame) == INFO | {"camera_list": cameras}


def test_the_info_is_sent_often_at_first_and_seldom_later(play: Any, stream: Any, subscribe: Any) -> None:
    manager = play(paused=True)
    socket = subscribe(stream(manager)._info, b"")

    def publish(times: int) -> None:
        with manager.engine.locked():
            for _ in range(times):
                manager.engine.publish()

    for _ in range(OFTEN_UNTIL_STEP // 50):
        publish(50)
        socket.recv()
    for _ in range(2):
        publish(499)
        assert not socket.poll(20)
        publish(1)
        socket.recv()


def test_the_info_counts_live_steps_only(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(StepMode.DIRECT, paused=True)
    streams = stream(manager)
    socket = subscribe(streams._info, b"")
    for _ in range(120):
        manager.step(StepRequest(), View())
    manager.set_mode(StepMode.LIVE)
    step(manager, 50)
    assert json.loads(socket.recv()) == INFO
    assert streams.counters()["info"]["sent"] == 1


def test_the_info_counts_each_play_anew(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    first = play(paused=True)
    streams = stream(first)
    socket = subscribe(streams._info, b"")
    step(first, 70)
    assert json.loads(socket.recv()) == INFO
    streams.detach()
    step(first, 70)
    second = play(paused=True)
    streams.attach(StreamSource(second), [])
    step(second, 49)
    assert not socket.poll(20)
    step(second)
    assert json.loads(socket.recv()) == INFO


def test_the_info_is_not_sent_while_it_has_no_subscriber(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    streams = stream(manager)
    step(manager, 170)
    socket = subscribe(streams._info, b"")
    step(manager, 30)
    socket.recv()
    assert streams.counters()["info"]["sent"] == 1


# -- the heartbeat --------------------------------------------------------------------------------------------------


def test_it_beats_while_it_is_wanted(wait_until: Any) -> None:
    beats: list[int] = []
    heartbeat = Heartbeat(lambda: beats.append(1), period_s=0.001)
    assert beats == []
    heartbeat.want(True)
    wait_until(lambda: len(beats) > 3)
    heartbeat.close()
    after = len(beats)
    threading.Event().wait(0.01)
    assert len(beats) == after


def test_it_rests_when_it_is_no_longer_wanted(wait_until: Any) -> None:
    beats: list[int] = []
    heartbeat = Heartbeat(lambda: beats.append(1), period_s=0.001)
    heartbeat.want(True)
    wait_until(lambda: beats)
    heartbeat.want(False)
    after = len(beats) + 1  # one may be on its way
    threading.Event().wait(0.05)
    assert len(beats) <= after
    heartbeat.want(True)
    wait_until(lambda: len(beats) > after)
    heartbeat.close()


def test_the_first_beat_comes_at_once_and_closing_does_not_wait_for_the_next() -> None:
    beaten = threading.Event()
    heartbeat = Heartbeat(beaten.set, period_s=3600)
    heartbeat.want(True)
    assert beaten.wait(30)
    heartbeat.close()
    heartbeat.close()
    assert not heartbeat._thread.is_alive()


def test_one_that_was_never_wanted_can_be_closed() -> None:
    heartbeat = Heartbeat(lambda: None, period_s=1)
    heartbeat.close()
    assert not heartbeat._thread.is_alive()


def test_a_subscriber_that_leaves_while_it_is_closed_does_not_keep_it_alive() -> None:
    """`want` comes from the publishing thread, which goes on while the heartbeat ends."""
    beaten, closed = threading.Event(), threading.Event()
    heartbeat = Heartbeat(beaten.set, period_s=3600)
    heartbeat.want(True)
    assert beaten.wait(30)

    def leave_again_and_again() -> None:
        while not closed.is_set():
            heartbeat.want(False)

    leaving = threading.Thread(target=leave_again_and_again)
    leaving.start()
    heartbeat.close()
    closed.set()
    leaving.join()
    assert not heartbeat._thread.is_alive()
