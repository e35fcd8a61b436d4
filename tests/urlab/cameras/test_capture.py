"""The cameras of a running scene."""

import itertools
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
WAIT_S = 30.0


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

    def latest(self, names: list[str], oldest_frame_id: int = 0) -> dict[str, Frame]:
        return self.capture.latest(names, self.made.snapshot, oldest_frame_id)

    def __getitem__(self, name: str) -> SceneCamera:
        return self.capture.cameras[name]


@pytest.fixture
def rig(scene_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Rig]]:
    for limit in ("_FRAME_WAIT_S", "_JOIN_S"):  # on a busy machine a drawing may take longer than a user waits
        monkeypatch.setattr(f"urlab.cameras.capture.{limit}", WAIT_S)
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
        lambda: capture.latest(["eye"], rig().made.snapshot),
        lambda: capture.latest_of_steps(["eye"], rig().made.snapshot, 0),
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
    assert one.latest(["head"])["head"] is frame
    assert one.inbox.is_empty()


# -- latest -----------------------------------------------------------------------------------------------------------


def test_a_latest_frame_within_its_period_is_not_waited_for(rig: MakeRig) -> None:
    one = rig()
    one["arm/head"].rate_hz = one["arm/wrist"].rate_hz = 1e-6  # turns are at multiples of the period: none comes now
    first = one.latest(["head", "wrist"])
    assert [frame.name for frame in first.values()] == ["arm_head", "arm_wrist"]
    one.made.move_on(5)
    held = threading.Event()
    holding = shared_gl().post(held.wait)
    assert one.latest(["head", "wrist"]) == first
    assert not holding.done(), "it was waited for"
    held.set()
    holding.result(WAIT_S)


def test_a_latest_frame_is_no_older_than_its_period_and_one_drawing(rig: MakeRig) -> None:
    one = rig()
    one.moving = False
    camera = one["arm/head"]
    camera.rate_hz = 1e-6  # so that it has no turn below but those that are asked for
    first = one.latest(["head"])["head"]
    camera.rate_hz = 30.0
    now_s = time.monotonic()
    almost_s = camera.taken_s + 1 / 30 + camera.drawing_s - 1e-6
    assert (camera.is_recent(almost_s), camera.is_recent(now_s + 60.0)) == (True, False)
    camera.taken_s = now_s - 2.0  # as if nothing had asked for two seconds
    moved = one.made.move_on()
    assert one.latest(["head"])["head"].frame_id == moved.frame_id > first.frame_id


def test_a_state_that_stands_still_needs_no_second_drawing(rig: MakeRig) -> None:
    one = rig()
    one.moving = False
    first = one.latest(["head"])["head"]
    one["arm/head"].taken_s -= 60.0
    assert one.latest(["head"])["head"] is first


def test_no_latest_frame_is_from_before_a_jump(rig: MakeRig) -> None:
    one = rig()
    one.moving = False
    one["arm/head"].rate_hz = 0.01
    one.latest(["head"])
    jumped, now = one.made.move_on(), one.made.move_on()
    assert one.latest(["head"], jumped.frame_id)["head"].frame_id == now.frame_id


# -- latest, of a scene that its client steps -------------------------------------------------------------------------


def test_of_steps_a_frame_shows_the_state_of_the_request_before_or_a_newer_one(rig: MakeRig) -> None:
    one = rig()
    before = one.made.snapshot
    for steps in (1, 7, 1, 1, 30):
        now = one.made.move_on(steps)
        frames = one.capture.latest_of_steps(["head", "arm/wrist"], now, before.frame_id)
        assert list(frames) == ["head", "arm/wrist"]
        assert {frame.frame_id for frame in frames.values()} <= {before.frame_id, now.frame_id}
        before = now


def test_of_steps_each_state_is_drawn_once_while_its_client_goes_on(rig: MakeRig) -> None:
    one = rig()
    states = [one.made.move_on() for _ in range(12)]
    shown = [
        one.capture.latest_of_steps(["head"], now, before.frame_id)["head"].frame_id
        for before, now in itertools.pairwise(states)
    ]
    first, *rest = shown
    assert first == states[1].frame_id, "there was no frame of the state before"
    assert rest == [state.frame_id for state in states[1:-1]]
    assert one["arm/head"].rendered <= len(shown)


def test_of_steps_a_client_that_seldom_asks_has_nothing_drawn_in_vain(rig: MakeRig) -> None:
    one = rig()
    for _ in range(4):
        before, now = one.made.move_on(), one.made.move_on()
        assert one.capture.latest_of_steps(["head"], now, before.frame_id)["head"].frame_id == now.frame_id
    assert one["arm/head"].rendered == 4


def test_of_steps_a_frame_that_was_begun_before_a_jump_is_not_shown(rig: MakeRig) -> None:
    one = rig()
    first, second, third = (one.made.move_on() for _ in range(3))
    one.capture.latest_of_steps(["head"], first, 0)
    one.capture.latest_of_steps(["head"], second, first.frame_id)
    after = one.made.move_on()
    assert third.frame_id < after.frame_id
    assert one.capture.latest_of_steps(["head"], after, after.frame_id)["head"].frame_id == after.frame_id


def test_of_steps_a_mode_that_was_switched_meanwhile_holds_for_what_was_begun(rig: MakeRig) -> None:
    one = rig()
    first, second, third = (one.made.move_on() for _ in range(3))
    one.capture.latest_of_steps(["head"], first, 0)
    one.capture.latest_of_steps(["head"], second, first.frame_id)
    one.capture.set_mode("head", CameraMode.DEPTH)
    assert one.capture.latest_of_steps(["head"], third, second.frame_id)["head"].mode is CameraMode.DEPTH


def test_latest_keeps_a_camera_fresh_for_a_second_and_then_it_rests(
    rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = rig()
    with monkeypatch.context() as longer:  # how much is drawn in one second depends on the machine
        longer.setattr("urlab.cameras.capture.DEMAND_S", WAIT_S)
        first = one.latest(["head"])["head"]
    assert eventually(lambda: one["arm/head"].rendered >= 10)
    assert one.capture.cameras["arm/head"].frame is not first
    begin = time.monotonic()
    one.latest(["head"])
    assert eventually(lambda: not one["arm/head"].is_wanted(time.monotonic()))
    assert time.monotonic() - begin >= 1.0

    def rests() -> bool:
        looks = one.looks
        return not threading.Event().wait(0.1) and one.looks == looks

    assert eventually(rests), "a look that was due already is done first"
    assert one["arm/wrist"].rendered == 0
    assert one.inbox.is_empty(), "a frame that was only asked for went out"
    assert one.latest(["head"])["head"].frame_id > first.frame_id


def test_a_first_frame_that_does_not_come_is_an_error_and_not_a_hang(
    rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gl, held = GlThread(), threading.Event()
    holding = gl.post(held.wait)
    one = rig(gl=gl)
    with monkeypatch.context() as impatient:
        impatient.setattr("urlab.cameras.capture._FRAME_WAIT_S", 0.2)
        with pytest.raises(OpTimeout, match=r"camera 'arm/head' gave no frame within 0.2 s"):
            one.latest(["head"])
    held.set()
    holding.result(WAIT_S)
    assert one.latest(["head"])["head"].name == "arm_head"
    one.capture.close()
    gl.close()


# -- streams ----------------------------------------------------------------------------------------------------------


def test_a_camera_that_is_switched_on_streams_new_states_at_its_rate(rig: MakeRig) -> None:
    one, sent_s = rig(), list[float]()
    one.capture.on_frame.insert(0, lambda *_: sent_s.append(time.monotonic()))  # who takes them out may be late
    one.capture.set_streaming("head", True, 50.0)
    one.inbox.next()
    frames = [one.inbox.next() for _ in range(10)]
    assert 0.15 < sent_s[10] - sent_s[0] < WAIT_S
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
        assert one.latest(["head"])["head"].mode == mode
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


def test_all_streams_are_switched_off_and_on_together(rig: MakeRig) -> None:
    one = rig()
    one["arm/wrist"].subscribed.append(lambda: True)
    one.capture.set_streaming("head", True, 100.0)
    one.inbox.until(lambda frame: frame.name == "arm_head")
    one.capture.set_all_streaming(False)
    assert not any(camera.is_streamed for camera in one.capture.cameras.values())
    assert one.capture.sync(["head"], one.made.snapshot)["head"].name == "arm_head"
    one.capture.set_streaming("wrist", None, 50.0)
    assert not one["arm/wrist"].is_streamed, "a new rate switches nothing on"
    one.capture.set_streaming("wrist", False)
    assert one["arm/wrist"].is_streamed, "to its subscriber"
    one.capture.set_all_streaming(True)
    assert all(camera.streaming for camera in one.capture.cameras.values())
    one.inbox.until(lambda frame: frame.name == "arm_head")


# -- trouble ----------------------------------------------------------------------------------------------------------


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What cameras had to say: on a busy machine the watchdog has its say too."""
    return [record.getMessage() for record in caplog.records if record.name == "urlab.cameras"]


def test_trouble_is_logged_once_answered_to_requests_and_survived(
    rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    one = rig()
    one.trouble = NotReady("there is no state yet")
    with caplog.at_level(logging.ERROR, "urlab.cameras"):
        one.capture.set_streaming("head", True, 100.0)
        for _ in range(2):
            with pytest.raises(NoViewport, match="camera 'arm/head' has no frame: there is no state yet"):
                one.latest(["head"])
        one.trouble = None
        assert one.inbox.next()[0] == "arm/head"
    assert logged(caplog) == ["no frames of arm/head: there is no state yet"]


def test_a_listener_that_fails_harms_no_other(rig: MakeRig, caplog: pytest.LogCaptureFixture) -> None:
    one = rig()

    def fail(channel: SceneCamera, frame: Frame) -> None:
        raise ValueError("full")

    one.capture.on_frame.insert(0, fail)
    with caplog.at_level(logging.ERROR, "urlab.cameras"):
        one.capture.set_streaming("head", True, 100.0)
        for _ in range(3):
            one.inbox.next()
    assert logged(caplog) == ["a frame of camera 'arm/head' was not delivered: ValueError('full')"]


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

    def done() -> list[str]:
        """How often the thread woke up, and what it has drawn."""
        switches = [line for line in status.read_text().splitlines() if "ctxt_switches" in line]
        return [*switches, str(one["arm/head"].rendered)]

    before: list[str] = []
    deadline = time.monotonic() + WAIT_S  # a frame that was begun is finished first
    while before != (now := done()):
        assert time.monotonic() < deadline, "the thread does not sleep"
        before = now
        assert not threading.Event().wait(0.3)


def test_a_scene_without_cameras_has_no_thread_and_no_gl(rig: MakeRig) -> None:
    gl, others = GlThread(), capture_threads()
    one = rig({"ball": "<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>"}, gl)
    assert one.capture.cameras == {}
    assert one.latest([]) == one.capture.sync([], one.made.snapshot) == {}
    one.capture.wake()
    one.capture.close()
    assert capture_threads() <= others
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
        one.latest(["wrist"])


def test_closing_answers_the_thread_that_waits(rig: MakeRig) -> None:
    gl, held = GlThread(), threading.Event()
    holding = gl.post(held.wait)
    one = rig(gl=gl)
    answers: queue.SimpleQueue[Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            one.latest(["head"])
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
