"""The cameras of a running scene."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from urlab.cameras import Capture, Frame, GlThread, SceneCamera, shared_gl
from urlab.config import RenderProfile
from urlab.errors import BadValue, NotReady, NoViewport, OpTimeout
from urlab_wire.enums import CameraMode

ROBOT = """<mujoco><worldbody><body name="base"><joint axis="0 1 0" range="-1 1"/><geom size=".1"/>
<camera name="head" pos="-2 0 0" xyaxes="0 -1 0 0 0 1" resolution="32 24"/>
<camera name="wrist" pos="-1 0 0" xyaxes="0 -1 0 0 0 1" resolution="16 12"/></body></worldbody></mujoco>"""
POLE = """<mujoco><worldbody><geom pos="1 0 0" size=".1"/>
<camera name="head" xyaxes="0 -1 0 0 0 1" resolution="20 10"/></worldbody></mujoco>"""
WAIT_S = 10.0


class Inbox:
    """Frames as they go out."""

    def __init__(self, capture: Capture) -> None:
        self._frames: queue.SimpleQueue[tuple[SceneCamera, Frame]] = queue.SimpleQueue()
        capture.on_frame.append(lambda channel, frame: self._frames.put((channel, frame)))

    def next(self) -> tuple[str, Frame]:
        channel, frame = self._frames.get(timeout=WAIT_S)
        return channel.name, frame

    def until(self, wanted: Callable[[Frame], bool]) -> Frame:
        while True:
            _, frame = self.next()
            if wanted(frame):
                return frame

    def is_empty(self) -> bool:
        return self._frames.empty()


class Rig:
    """A scene with its capture. ``moving`` decides whether every look finds a new state; ``looks`` counts them."""

    def __init__(self, made: Any, gl: GlThread | None = None) -> None:
        self.made = made
        self.moving = True
        self.looks = 0
        self.trouble: Exception | None = None
        self.capture = Capture(made.scene, self.look, RenderProfile.FAST, gl=gl)
        self.inbox = Inbox(self.capture)
        self.capture.start()

    def look(self) -> Any:
        self.looks += 1
        if self.trouble is not None:
            raise self.trouble
        return self.made.move_on() if self.moving else self.made.snapshot

    def __getitem__(self, name: str) -> SceneCamera:
        return self.capture.cameras[name]


@pytest.fixture
def rig(scene_of: Callable[..., Any]) -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def build(actors: Any = None, gl: GlThread | None = None, **rest: Any) -> Rig:
        rigs.append(Rig(scene_of({"arm": ROBOT} if actors is None else actors, **rest), gl))
        return rigs[-1]

    yield build
    for one in rigs:
        one.capture.close()


MakeRig = Callable[..., Rig]


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WAIT_S
    while not holds() and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    return holds()


# -- names ------------------------------------------------------------------------------------------------------------


def test_a_bare_name_will_do_where_only_one_camera_has_it(rig: MakeRig) -> None:
    capture = rig({"arm": ROBOT, "pole": POLE}).capture
    assert capture.resolve("arm/head").slot.name == "arm_head"
    assert capture.resolve("head") is capture.resolve("arm/head")
    assert capture.resolve("wrist") is capture.cameras["arm/wrist"]
    assert capture.resolve("pole_head").topic == "global/camera/pole_head"
    assert rig({"pole": POLE}).capture.resolve("head").name == "pole_head"


def test_a_bare_name_that_several_have_is_refused_with_their_names(rig: MakeRig) -> None:
    capture = rig(twins={"arm-2": "arm"}).capture
    with pytest.raises(BadValue, match="several cameras are called 'head': arm-2/head, arm/head"):
        capture.resolve("head")


def test_an_unknown_name_is_refused_with_those_that_exist(rig: MakeRig) -> None:
    capture = rig().capture
    asks = (
        lambda: capture.latest(["eye"]),
        lambda: capture.sync(["eye"], rig().made.snapshot),
        lambda: capture.set_mode("eye", CameraMode.REAL),
        lambda: capture.set_streaming("eye", True),
    )
    for ask in asks:
        with pytest.raises(BadValue, match="there is no camera 'eye'; there are: arm/head, arm/wrist"):
            ask()


@pytest.mark.parametrize("rate_hz", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_rate_that_makes_no_sense_is_refused(rig: MakeRig, rate_hz: float) -> None:
    one = rig()
    with pytest.raises(BadValue, match="rate_hz of camera 'head'"):
        one.capture.set_streaming("head", True, rate_hz)
    assert not one["arm/head"].streaming


# -- sync -------------------------------------------------------------------------------------------------------------


def test_sync_frames_are_of_exactly_the_state_given_and_keyed_as_asked(rig: MakeRig) -> None:
    one = rig({"arm": ROBOT, "pole": POLE})
    old = one.made.move_on()
    one.made.move_on(50)
    frames = one.capture.sync(["head", "arm/head", "pole_head"], old)
    assert list(frames) == ["head", "arm/head", "pole_head"]
    assert frames["head"] is frames["arm/head"]
    assert {(frame.frame_id, frame.sim_time) for frame in frames.values()} == {(old.frame_id, old.sim_time)}
    assert [(frame.name, frame.width, frame.height) for frame in frames.values()] == [
        ("arm_head", 32, 24),
        ("arm_head", 32, 24),
        ("pole_head", 20, 10),
    ]
    assert (one["arm/head"].rendered, one["pole_head"].rendered) == (1, 1)


def test_a_sync_frame_is_not_streamed_but_is_the_latest(rig: MakeRig) -> None:
    one = rig()
    one.moving = False
    frame = one.capture.sync(["head"], one.made.move_on())["head"]
    assert one.capture.latest(["head"])["head"] is frame
    assert one.inbox.is_empty()


# -- latest -----------------------------------------------------------------------------------------------------------


def test_the_first_latest_waits_for_a_frame_and_later_ones_never_do(rig: MakeRig) -> None:
    one = rig()
    first = one.capture.latest(["head", "wrist"])
    assert [frame.name for frame in first.values()] == ["arm_head", "arm_wrist"]
    held = threading.Event()
    holding = shared_gl().post(held.wait)
    kept = one.capture.latest(["head", "wrist"])
    assert kept.keys() == first.keys()
    assert not holding.done(), "it was waited for"
    held.set()
    holding.result(WAIT_S)


def test_latest_keeps_a_camera_fresh_for_a_second_and_then_it_rests(rig: MakeRig) -> None:
    one = rig()
    first = one.capture.latest(["head"])["head"]
    begin = time.monotonic()
    assert eventually(lambda: one["arm/head"].rendered >= 10)
    assert one.capture.cameras["arm/head"].frame is not first
    one.capture.latest(["head"])
    assert eventually(lambda: not one["arm/head"].is_wanted(time.monotonic()))
    assert time.monotonic() - begin >= 1.0
    looks = one.looks
    assert not threading.Event().wait(0.1)
    assert one.looks == looks
    assert one["arm/wrist"].rendered == 0
    assert one.inbox.is_empty(), "a frame that was only asked for went out"
    assert one.capture.latest(["head"])["head"].frame_id > first.frame_id


def test_a_first_frame_that_does_not_come_is_an_error_and_not_a_hang(
    rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gl, held = GlThread(), threading.Event()
    holding = gl.post(held.wait)
    one = rig(gl=gl)
    with monkeypatch.context() as impatient:
        impatient.setattr("urlab.cameras.capture._FIRST_FRAME_S", 0.2)
        with pytest.raises(OpTimeout, match=r"camera 'arm/head' gave no frame within 0.2 s"):
            one.capture.latest(["head"])
    held.set()
    holding.result(WAIT_S)
    assert one.capture.latest(["head"])["head"].name == "arm_head"
    one.capture.close()
    gl.close()


# -- streams ----------------------------------------------------------------------------------------------------------


def test_a_camera_that_is_switched_on_streams_new_states_at_its_rate(rig: MakeRig) -> None:
    one = rig()
    one.capture.set_streaming("head", True, 50.0)
    one.inbox.next()
    begin, frames = time.monotonic(), [one.inbox.next() for _ in range(10)]
    assert 0.15 < time.monotonic() - begin < WAIT_S
    assert {name for name, _ in frames} == {"arm/head"}
    ids = [frame.frame_id for _, frame in frames]
    assert ids == sorted(set(ids))
    one.capture.set_streaming("head", False)
    assert (one["arm/head"].streaming, one["arm/head"].rate_hz) == (False, 50.0)


def test_a_camera_streams_while_it_has_a_subscriber(rig: MakeRig) -> None:
    one = rig()
    listeners = 1
    one["arm/wrist"].subscribed.append(lambda: listeners > 0)
    one.capture.wake()
    assert one.inbox.next()[0] == "arm/wrist"
    listeners = 0
    assert eventually(lambda: not one["arm/wrist"].is_wanted(time.monotonic()))
    assert one["arm/head"].rendered == 0


def test_cameras_of_one_rate_show_the_same_states(rig: MakeRig) -> None:
    one = rig()
    one.capture.set_streaming("head", True, 50.0)
    one.capture.set_streaming("wrist", True, 50.0)
    seen: dict[str, list[int]] = {"arm/head": [], "arm/wrist": []}
    while min(map(len, seen.values())) < 6:
        name, frame = one.inbox.next()
        seen[name].append(frame.frame_id)
    assert len(set(seen["arm/head"]) & set(seen["arm/wrist"])) >= 4


def test_frames_keep_coming_while_nothing_moves_without_being_drawn_again(rig: MakeRig) -> None:
    one = rig()
    one.moving = False
    one.capture.set_streaming("head", True, 100.0)
    frames = [one.inbox.next()[1] for _ in range(5)]
    assert all(frame is frames[0] for frame in frames)
    assert one["arm/head"].rendered == 1
    one.made.move_on()
    assert one.inbox.until(lambda frame: frame is not frames[0]).frame_id > frames[0].frame_id


def test_a_mode_can_be_switched_while_it_streams(rig: MakeRig) -> None:
    one = rig()
    one.capture.set_streaming("head", True, 100.0)
    assert one.inbox.next()[1].mode is CameraMode.REAL
    for mode, dtype in (("depth", "float32"), ("instance", "bgra8"), ("semantic", "bgra8"), ("real", "bgra8")):
        one.capture.set_mode("head", CameraMode(mode))
        assert one.capture.latest(["head"])["head"].mode == mode
        frame = one.inbox.until(lambda frame, mode=mode: frame.mode == mode)  # type: ignore[misc]
        assert (frame.metadata()["dtype"], len(frame.data)) == (dtype, 4 * 32 * 24)
        assert one.inbox.next()[1].mode == mode
    assert one["arm/wrist"].mode is CameraMode.REAL


def test_a_mode_is_switched_for_a_frame_that_is_being_drawn(rig: MakeRig) -> None:
    one, held = rig(), threading.Event()
    holding = shared_gl().post(held.wait)
    one.capture.set_streaming("head", True)
    assert eventually(lambda: one.looks > 0)
    one.capture.set_mode("head", CameraMode.DEPTH)
    held.set()
    holding.result(WAIT_S)
    assert one.inbox.next()[1].mode is CameraMode.DEPTH


# -- trouble ----------------------------------------------------------------------------------------------------------


def test_trouble_is_logged_once_answered_to_requests_and_survived(
    rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    one = rig()
    one.trouble = NotReady("there is no state yet")
    with caplog.at_level(logging.ERROR, "urlab.cameras"):
        one.capture.set_streaming("head", True, 100.0)
        for _ in range(2):
            with pytest.raises(NoViewport, match="camera 'arm/head' has no frame: there is no state yet"):
                one.capture.latest(["head"])
        one.trouble = None
        assert one.inbox.next()[0] == "arm/head"
    assert [record.getMessage() for record in caplog.records] == ["no frames of arm/head: there is no state yet"]


def test_a_listener_that_fails_harms_no_other(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    one = rig()

    def fail(channel: SceneCamera, frame: Frame) -> None:
        raise ValueError("full")

    one.capture.on_frame.insert(0, fail)
    with caplog.at_level(logging.ERROR, "urlab.cameras"):
        one.capture.set_streaming("head", True, 100.0)
        for _ in range(3):
            one.inbox.next()
    assert [record.getMessage() for record in caplog.records] == [
        "a frame of camera 'arm/head' was not delivered: ValueError('full')"
    ]


# -- rest and end -----------------------------------------------------------------------------------------------------


def capture_threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "urlab-capture"}


def capture_thread(before: set[threading.Thread]) -> threading.Thread:
    (thread,) = capture_threads() - before
    return thread


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux counts how often a thread woke up")
def test_without_demand_nothing_is_drawn_and_the_thread_sleeps(rig: MakeRig) -> None:
    others = capture_threads()
    one = rig()
    one.capture.set_streaming("head", True)
    one.inbox.next()
    one.capture.set_streaming("head", False)
    status = Path(f"/proc/self/task/{capture_thread(others).native_id}/status")

    def switches() -> list[str]:
        return [line for line in status.read_text().splitlines() if "ctxt_switches" in line]

    assert not threading.Event().wait(0.1)
    before, rendered = switches(), one["arm/head"].rendered
    assert not threading.Event().wait(0.3)
    assert (switches(), one["arm/head"].rendered) == (before, rendered)


def test_a_scene_without_cameras_has_no_thread_and_no_gl(rig: MakeRig) -> None:
    gl, others = GlThread(), capture_threads()
    one = rig({"ball": "<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>"}, gl)
    assert one.capture.cameras == {}
    assert one.capture.latest([]) == one.capture.sync([], one.made.snapshot) == {}
    one.capture.wake()
    one.capture.close()
    assert capture_threads() == others
    assert gl._thread is None


def test_closing_ends_the_thread_and_the_frames_and_may_be_done_twice(rig: MakeRig) -> None:
    others = capture_threads()
    one = rig()
    one.capture.set_streaming("head", True, 100.0)
    one.inbox.next()
    thread = capture_thread(others)
    for _ in range(2):
        one.capture.close()
    assert not thread.is_alive()
    assert not one.capture.renderer.is_in_use
    with pytest.raises(NoViewport, match="not drawn any more"):
        one.capture.sync(["head"], one.made.snapshot)
    with pytest.raises(NoViewport, match="closing"):
        one.capture.latest(["wrist"])


def test_closing_answers_the_thread_that_waits(rig: MakeRig) -> None:
    gl, held = GlThread(), threading.Event()
    holding = gl.post(held.wait)
    one = rig(gl=gl)
    answers: queue.SimpleQueue[Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            one.capture.latest(["head"])
        except NoViewport as closing:
            answers.put(closing)

    asking = threading.Thread(target=ask)
    asking.start()
    assert eventually(lambda: one.looks > 0)
    closing = threading.Thread(target=one.capture.close)
    closing.start()
    assert "closing" in str(answers.get(timeout=WAIT_S))
    held.set()
    for thread in (asking, closing):
        thread.join(WAIT_S)
    holding.result(WAIT_S)
    gl.close()
