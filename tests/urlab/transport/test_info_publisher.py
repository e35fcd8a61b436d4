import json
from typing import Any

from urlab.manager import View
from urlab.manager.stream_source import StreamSource
from urlab.transport.info_publisher import OFTEN_UNTIL_STEP
from urlab_wire.enums import StepMode
from urlab_wire.ops.stepping import StepRequest

MESSAGE = {
    "type": "actuator_list",
    "robot": "MyRobot",
    "names": ["MyRobot_s", "MyRobot_e"],
    "ids": [0, 1],
    "mins": [-1.0, -100.0],
    "maxs": [1.0, 100.0],
    "camera_list": [],
}


def test_it_tells_what_there_is_in_one_frame(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    streams = stream(manager, cameras=("eye",))
    socket = subscribe(streams._info, b"")
    step(manager, 50)
    (frame,) = socket.recv_multipart()
    cameras = [{"name": "eye", "endpoint": streams.endpoints()["cameras"]["eye"]}]
    assert json.loads(frame) == MESSAGE | {"camera_list": cameras}


def test_it_tells_it_often_at_first_and_seldom_later(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    streams = stream(manager)
    told: list[int] = []
    offer = streams._info._outlet.offer
    subscribe(streams._info, b"")

    def note(batch: Any) -> None:
        told.append(streams._info._steps)
        offer(batch)

    streams._info._outlet.offer = note
    with manager.engine.locked():
        for _ in range(OFTEN_UNTIL_STEP + 1000):
            manager.engine.publish()
    assert told == [*range(50, OFTEN_UNTIL_STEP + 1, 50), OFTEN_UNTIL_STEP + 500, OFTEN_UNTIL_STEP + 1000]


def test_only_live_steps_count(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(StepMode.DIRECT, paused=True)
    streams = stream(manager)
    socket = subscribe(streams._info, b"")
    for _ in range(120):
        manager.step(StepRequest(), View())
    assert streams._info._steps == 0
    manager.set_mode(StepMode.LIVE)
    step(manager, 50)
    assert json.loads(socket.recv()) == MESSAGE
    assert streams.counters()["info"]["sent"] == 1


def test_each_play_is_counted_anew(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    first = play(paused=True)
    streams = stream(first)
    socket = subscribe(streams._info, b"")
    step(first, 70)
    assert json.loads(socket.recv()) == MESSAGE
    streams.detach()
    step(first, 70)
    second = play(paused=True)
    streams.attach(StreamSource(second), {})
    step(second, 49)
    assert not socket.poll(20)
    step(second)
    assert json.loads(socket.recv()) == MESSAGE


def test_nobody_listening_is_no_work(play: Any, stream: Any, subscribe: Any, step: Any) -> None:
    manager = play(paused=True)
    streams = stream(manager)
    step(manager, 170)
    socket = subscribe(streams._info, b"")
    step(manager, 30)
    socket.recv()
    assert streams.counters()["info"]["sent"] == 1
