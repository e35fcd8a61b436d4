import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from urlab.compile import CompiledScene
from urlab.errors import PathNotWritable, ReplayRequiresStepped, ReplaySessionNotFound
from urlab.manager import Manager, StepCounter, View
from urlab.paths import FileRoots
from urlab_wire.enums import ObservationLevel, StepMode
from urlab_wire.ops.stepping import ArticulationCommand, StepRequest


def record(manager: Manager, n_steps: int = 5) -> None:
    manager.record_replay.start_recording(None, None)
    manager.step(StepRequest(n_steps=n_steps), View(ObservationLevel.MINIMAL))


def test_a_save_that_fails_leaves_the_recording_to_the_autosave(manager: Manager, tmp_path: Path) -> None:
    record(manager)
    (tmp_path / "a.json").mkdir()
    with pytest.raises(PathNotWritable):
        manager.record_replay.save_recording(str(tmp_path / "a.json"))
    assert manager.record_replay.autosave() is not None


def test_an_autosave_happens_once(manager: Manager) -> None:
    record(manager)
    path = manager.record_replay.autosave()
    assert path is not None
    assert path.name.startswith("autosave-")
    assert manager.record_replay.autosave() is None


def test_a_cleared_recording_is_not_autosaved(manager: Manager) -> None:
    record(manager)
    manager.record_replay.clear_recording()
    assert manager.record_replay.autosave() is None


def test_a_recording_without_frames_is_not_autosaved(manager: Manager) -> None:
    manager.record_replay.start_recording(None, None)
    assert manager.record_replay.autosave() is None


def test_an_autosave_that_cannot_be_written_is_only_logged(
    manager: Manager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record(manager)
    (tmp_path / "Replays").write_text("in the way")
    assert manager.record_replay.autosave() is None
    assert "5 frames is lost" in caplog.text


def test_a_recording_names_the_level_that_it_is_of(hopper_scene: CompiledScene, tmp_path: Path) -> None:
    manager = Manager(
        hopper_scene,
        replays_dir=tmp_path,
        roots=FileRoots(write=(tmp_path,)),
        counter=StepCounter(),
        level_path="/Game/Levels/yard",
    )
    manager.start(StepMode.DIRECT)
    record(manager)
    path = manager.record_replay.save_recording("ep")
    manager.stop()
    assert json.loads(path.read_text())["urlab"]["level"] == "/Game/Levels/yard"


# -- replay in live mode ------------------------------------------------------------------------------------------

FRAMES = 40
STEP_S = 0.002
PATIENCE_S = 60.0


class SimulatedClock:
    """Time that passes by waiting alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, secs: float, /) -> None:
        self.now += secs


class Shown:
    """The frames that were published, and when; ``end`` is set when the last one is there."""

    def __init__(self, manager: Manager, clock: SimulatedClock) -> None:
        self.frames: list[tuple[int, float]] = []
        self.end = threading.Event()
        self._manager, self._clock = manager, clock
        manager.engine.on_publish.append(self._note)

    def _note(self) -> None:
        at = self._manager.record_replay.position
        if at is not None:
            self.frames.append((at.frame, self._clock.now))
            if at.is_at_end:
                self.end.set()


@pytest.fixture
def live(hopper_scene: CompiledScene, tmp_path: Path) -> Iterator[tuple[Manager, Shown]]:
    """A recording of 40 frames, in a scene that is live and paused, on a clock of its own."""
    clock = SimulatedClock()
    manager = Manager(
        hopper_scene, replays_dir=tmp_path, roots=FileRoots(), counter=StepCounter(), clock=clock
    )  # fmt: skip
    manager.start(StepMode.DIRECT)
    record(manager, FRAMES)
    manager.record_replay.stop_recording()
    manager.loop.set_paused(True)
    manager.set_mode(StepMode.LIVE)
    yield manager, Shown(manager, clock)
    manager.stop()


@pytest.mark.parametrize("percent", [100, 50, 20])
def test_live_mode_plays_a_replay_at_the_pace_of_the_simulation(live: tuple[Manager, Shown], percent: float) -> None:
    manager, shown = live
    manager.loop.set_speed(percent)
    assert manager.start_replay(loop=False, paused=False) == ("live", FRAMES)
    assert shown.end.wait(PATIENCE_S)
    assert [frame for frame, _ in shown.frames] == list(range(FRAMES))
    begin = shown.frames[0][1]
    expected = [frame * STEP_S * 100 / percent for frame in range(FRAMES)]
    assert [at - begin for _, at in shown.frames] == pytest.approx(expected)
    with manager.engine.locked():
        assert manager.loop.held
        assert not manager.plays_replay
        assert manager.record_replay.is_playing, "its last frame is shown"
        assert manager.counter.total == FRAMES, "frames that are shown are no steps"


def test_a_paused_replay_goes_nowhere_but_where_it_is_sent(live: tuple[Manager, Shown]) -> None:
    manager, shown = live
    manager.start_replay(loop=False, paused=True)
    assert not manager.plays_replay
    assert manager.record_replay.seek(7, None).frame == 7
    assert manager.record_replay.seek(None, 0.0205).frame == 9
    assert [frame for frame, _ in shown.frames] == [0, 7, 9]
    manager.loop.set_paused(False)
    assert shown.end.wait(PATIENCE_S)
    assert [frame for frame, _ in shown.frames] == [0, 7, *range(9, FRAMES)]


def test_a_replay_that_was_held_plays_on_from_where_it_is_sent(live: tuple[Manager, Shown]) -> None:
    manager, shown = live
    manager.start_replay(loop=False, paused=False)
    assert shown.end.wait(PATIENCE_S)
    with manager.engine.locked():
        shown.end.clear()
        shown.frames.clear()
        manager.record_replay.seek(FRAMES - 3, None)
        begin = shown.frames[0][1]
    assert shown.end.wait(PATIENCE_S)
    frames = [(frame, round(at - begin, 6)) for frame, at in shown.frames]
    assert frames == [(37, 0.0), (38, 0.002), (39, 0.004)], "the frame that was asked for has its time too"


def test_a_loop_goes_on_until_it_is_stopped_and_then_physics_does(live: tuple[Manager, Shown]) -> None:
    manager, shown = live
    again = threading.Event()
    manager.engine.on_publish.append(lambda: len(shown.frames) > 2 * FRAMES and again.set())
    manager.start_replay(loop=True, paused=False)
    assert again.wait(PATIENCE_S)
    assert manager.plays_replay
    stepped = threading.Event()
    manager.engine.post_step.append(stepped.set)
    manager.record_replay.stop_replay()
    assert stepped.wait(PATIENCE_S)
    frames = [frame for frame, _ in shown.frames]
    assert frames == [number % FRAMES for number in range(len(frames))]


def test_live_mode_refuses_a_replay_of_a_client_that_does_not_know_better(live: tuple[Manager, Shown]) -> None:
    manager, shown = live
    with pytest.raises(ReplayRequiresStepped, match="paused"):
        manager.start_replay(loop=False, paused=None)
    assert (shown.frames, manager.loop.paused) == ([], True)


def test_a_replay_that_cannot_begin_leaves_the_pause_alone(live: tuple[Manager, Shown]) -> None:
    manager, _ = live
    manager.record_replay.clear_recording()
    with pytest.raises(ReplaySessionNotFound):
        manager.start_replay(loop=False, paused=False)
    assert manager.loop.paused


ENDS: dict[str, Callable[[Manager], object]] = {
    "a reset": lambda manager: manager.reset(View(ObservationLevel.MINIMAL)),
    "a recording": lambda manager: manager.record_replay.start_recording(None, None),
    "a state": lambda manager: manager.restore_state(manager.save_state()[1], View(ObservationLevel.MINIMAL)),
    "live mode": lambda manager: manager.set_mode(StepMode.LIVE),
    "its stop": lambda manager: manager.record_replay.stop_replay(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_after_a_replay_that_was_held_physics_runs(
    live: tuple[Manager, Shown], end: Callable[[Manager], object]
) -> None:
    manager, shown = live
    manager.start_replay(loop=False, paused=False)
    assert shown.end.wait(PATIENCE_S)
    stepped = threading.Event()
    manager.engine.post_step.append(stepped.set)
    end(manager)
    assert stepped.wait(PATIENCE_S)
    assert manager.record_replay.position is None


def test_commands_of_a_live_step_do_nothing_while_a_replay_is_active(live: tuple[Manager, Shown]) -> None:
    manager, _ = live
    manager.start_replay(loop=False, paused=True)
    request = StepRequest(per_articulation={"hopper": ArticulationCommand(ctrl=[3.0])})
    observed = manager.step(request, View(ObservationLevel.MINIMAL))
    assert manager.articulations["hopper"].staged.active.tolist() == [0.0]
    assert observed.extras["replay"].frame == 0


def test_the_frame_that_is_told_can_be_seen(manager: Manager) -> None:
    record(manager, 500)
    manager.record_replay.stop_recording()
    manager.record_replay.start_replay(loop=False)
    late, is_over = [], threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            at, seen = manager.record_replay.position, manager.engine.snapshot.sim_time
            if at is not None and seen < at.time_s:
                late.append((at, seen))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(499):
        manager.step(StepRequest(n_steps=1), View(ObservationLevel.MINIMAL))
    is_over.set()
    watcher.join()
    assert manager.record_replay.position is not None
    assert manager.record_replay.position.frame == 499
    assert late == []
