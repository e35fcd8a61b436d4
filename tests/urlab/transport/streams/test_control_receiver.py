"""The control socket, spoken to with plain sockets as the protocol describes."""

import logging
import struct
import time
from typing import Any

import pytest
import zmq

from urlab.manager import StreamSource
from urlab.transport.streams import Streams, control_receiver
from urlab.transport.streams.control_receiver import MAX_FRAME_BYTES
from urlab_wire.enums import ControlSource, StepMode
from urlab_wire.streams import ControlOutcome, pack_control

NOTHING = {"received": 0, **{str(outcome): 0 for outcome in ControlOutcome}}


def counters(streams: Streams) -> dict[str, int]:
    return streams.counters()["control"]


@pytest.fixture
def speak(connect: Any, wait_until: Any) -> Any:
    """Opens a PUB socket that the server listens to for certain: hello messages go first, and the count is reset."""

    def open_speaker(streams: Streams) -> Any:
        socket = connect(streams.endpoints()["control"], zmq.PUB)
        control = streams._control

        def heard() -> int:
            socket.send_multipart([b"hello?", b""])
            return control.counters()["received"]

        wait_until(heard)
        sent_last = [b"last hello", b"", b""]
        before = control.counters()["malformed"]
        socket.send_multipart(sent_last)
        wait_until(lambda: control.counters()["malformed"] > before)
        control._counts = dict.fromkeys(ControlOutcome, 0)
        control._warned.clear()
        return socket

    return open_speaker


def test_a_script_written_from_the_protocol_alone_reads_and_moves_the_arm(play: Any, stream: Any, connect: Any) -> None:
    endpoints = stream(play()).endpoints()
    sub = connect(endpoints["state"], zmq.SUB)
    sub.setsockopt_string(zmq.SUBSCRIBE, "MyRobot/")
    pub = connect(endpoints["control"], zmq.PUB)
    positions: dict[str, float] = {}
    deadline = time.monotonic() + 60
    while positions.get("shoulder", 0) < 0.4 or positions.get("elbow", 0) > -0.4:
        assert time.monotonic() < deadline, positions
        topic, data = sub.recv_multipart()
        topic_str = topic.decode()
        if "/joint/" in topic_str:
            _jid, pos, _vel, _acc = struct.unpack("<Ifff", data)
            positions[topic_str.rpartition("/")[2]] = pos
        payload = struct.pack("<I", 2)
        for actuator, value in ((0, 0.5), (1, -0.5)):
            payload += struct.pack("<If", actuator, value)
        pub.send_multipart([b"MyRobot/control ", payload])


def test_a_message_acts_before_the_next_step(play: Any, stream: Any, speak: Any, step: Any, wait_until: Any) -> None:
    manager = play(paused=True)
    streams = stream(manager)
    pub = speak(streams)
    for value in (0.25, 0.5):
        applied = counters(streams)["applied"]
        pub.send_multipart([b"MyRobot/control", pack_control({1: value})])
        wait_until(lambda: counters(streams)["applied"] == applied + 1)  # noqa: B023 - it is waited for here
        step(manager)
        assert manager.engine.data.ctrl.tolist() == [0, value]


def test_in_a_running_scene_it_acts_within_a_step_of_its_receipt(
    play: Any, stream: Any, speak: Any, wait_until: Any
) -> None:
    manager = play()
    streams = stream(manager)
    pub = speak(streams)
    ctrl: list[float] = []
    manager.engine.post_step.append(lambda: ctrl.append(float(manager.engine.data.ctrl[0])))
    pub.send_multipart([b"MyRobot/control ", pack_control({0: 0.5})])
    wait_until(lambda: counters(streams)["applied"])
    with manager.engine.locked():
        already = len(ctrl)
    wait_until(lambda: len(ctrl) > already + 3)
    assert set(ctrl[already:]) == {0.5}


def test_every_wrong_message_is_counted_by_its_reason(
    play: Any, stream: Any, speak: Any, wait_until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    manager = play(paused=True)
    streams = stream(manager)
    pub = speak(streams)
    caplog.clear()
    caplog.set_level(logging.DEBUG, "urlab.transport")
    good = pack_control({0: 0.5})
    messages = {
        "malformed": [[b"MyRobot/control"], [b"MyRobot/control", good, b""], [b"MyRobot/control", b"\1"]],
        "not_finite": [[b"MyRobot/control ", struct.pack("<iif", 1, 0, float("nan"))]],
        "unknown_robot": [[b"Other/control ", good], [b"\xff\xfe/control", good]],
        "unknown_topic": [[b"MyRobot/", good], [b"", b""]],
        "unknown_id": [[b"MyRobot/control", pack_control({7: 0.5})]],
        "bad_json": [[b"MyRobot/set_gains ", b"{"], [b"MyRobot/set_gains", b"[" * 10_000]],
        "refused": [[b"MyRobot/set_gains ", b'{"elbow": {"kp": 1}}']],
        "applied": [[b"MyRobot/control", good]],
    }
    expected = NOTHING | {reason: len(sent) for reason, sent in messages.items()}
    expected["received"] = sum(expected.values())
    for sent in messages.values():
        for frames in sent:
            pub.send_multipart(frames)
    wait_until(lambda: counters(streams)["received"] == expected["received"])
    assert counters(streams) == expected
    assert manager.articulation("MyRobot").staged.staged(ControlSource.ZMQ).tolist() == [0.5, 0]
    warned = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    debugged = [one for one in caplog.records if one.levelno == logging.DEBUG]
    assert sum("MyRobot" in one and "malformed" in one for one in warned) == 1
    assert len(warned) == len(messages) - 1
    assert len(warned) + len(debugged) == expected["received"] - 1


@pytest.mark.parametrize(("every_s", "warnings"), [(0.0, 3), (1e9, 1)])
def test_unknown_ids_are_told_with_those_that_exist_at_a_bounded_rate(
    play: Any,
    stream: Any,
    speak: Any,
    wait_until: Any,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    every_s: float,
    warnings: int,
) -> None:
    monkeypatch.setattr(control_receiver, "_WARN_EVERY_S", every_s)
    streams = stream(play(paused=True))
    pub = speak(streams)
    caplog.clear()
    for count in (1, 2, 3):
        pub.send_multipart([b"MyRobot/control", pack_control({1: 0.5, 7: 0.5})])
        wait_until(lambda count=count: counters(streams)["unknown_id"] == count)
    told = [one.getMessage() for one in caplog.records if "unknown_id" in one.getMessage()]
    assert len(told) == warnings
    assert all("asks for actuators 1, 7, the robot has 0, 1" in one for one in told)


def test_a_huge_frame_is_never_read_and_others_go_on(play: Any, stream: Any, speak: Any, wait_until: Any) -> None:
    streams = stream(play(paused=True))
    hostile, honest = speak(streams), speak(streams)
    hostile.send_multipart([b"MyRobot/control", bytes(MAX_FRAME_BYTES + 1)])
    honest.send_multipart([b"MyRobot/control", pack_control({0: 0.5})])
    wait_until(lambda: counters(streams)["applied"])
    assert counters(streams) == NOTHING | {"received": 1, "applied": 1}
    large = pack_control(dict.fromkeys(range(MAX_FRAME_BYTES // 8 - 1), 0.0))
    honest.send_multipart([b"MyRobot/control", large])
    wait_until(lambda: counters(streams)["unknown_id"])


@pytest.mark.parametrize("mode", [StepMode.DIRECT, StepMode.PUPPET])
def test_in_other_modes_messages_are_drained_and_counted(
    play: Any, stream: Any, speak: Any, wait_until: Any, mode: StepMode
) -> None:
    manager = play(mode)
    streams = stream(manager)
    pub = speak(streams)
    for _ in range(200):
        pub.send_multipart([b"MyRobot/control ", pack_control({0: 0.5})])
    wait_until(lambda: counters(streams)["received"] == 200)
    assert counters(streams) == NOTHING | {"received": 200, "not_live": 200}
    assert manager.articulation("MyRobot").staged.active.tolist() == [0, 0]


def test_between_scenes_messages_are_drained_and_counted(
    play: Any, stream: Any, speak: Any, step: Any, wait_until: Any
) -> None:
    streams = stream(None)
    pub = speak(streams)
    message = [b"MyRobot/control", pack_control({0: 0.5})]
    pub.send_multipart(message)
    wait_until(lambda: counters(streams)["not_live"] == 1)
    for number in (1, 2):
        manager = play(paused=True)
        streams.attach(StreamSource(manager), [])
        pub.send_multipart(message)
        wait_until(lambda: counters(streams)["applied"] == number)  # noqa: B023 - it is waited for here
        step(manager)
        assert manager.engine.data.ctrl[0] == 0.5
        streams.detach()


def test_a_flood_does_not_stop_physics(play: Any, stream: Any, speak: Any, wait_until: Any) -> None:
    manager = play()
    streams = stream(manager)
    pub = speak(streams)
    before = manager.loop.steps
    for number in range(20_000):
        pub.send_multipart([b"MyRobot/control ", pack_control({0: number / 20_000})])
    wait_until(lambda: manager.loop.steps > before + 20)
    assert not manager.loop.paused
    wait_until(lambda: (counted := counters(streams))["applied"] == counted["received"] > 0)
