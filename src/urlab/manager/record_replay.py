"""Recording and replay of one running scene: the recorder, the player, and the files behind them."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco

from urlab.compile import CompiledScene
from urlab.errors import BadValue, FileError, UrlabError
from urlab.paths import FileRoots
from urlab.physics import Engine
from urlab.recording import (
    LIVE,
    MCAP,
    Journal,
    JournalHeader,
    Recorder,
    ReplayPlayer,
    ReplayPosition,
    load_path,
    read_recording,
    recorded_signals,
    save_path,
    write_json,
)
from urlab.recording.mcap_frames import INSTALL, check_mcap_installed
from urlab.scene.names import legal_name
from urlab_wire.ops.stepping import ReplayBlock

if TYPE_CHECKING:
    from urlab.recording.stream import McapStream

log = logging.getLogger("urlab.recording")


@dataclass(frozen=True, slots=True)
class RecordingState:
    """Of the recording that runs, or the last one. Its duration is one timestep per frame.

    ``warnings`` say what of it is not in the file that it was to go to.
    """

    active: bool
    name: str
    frame_count: int
    sim_duration_s: float
    warnings: tuple[str, ...] = ()


class RecordReplay:
    """What `recording_*` and `replay_*` work on. Methods take the physics lock themselves unless they say otherwise."""

    def __init__(
        self,
        engine: Engine,
        scene: CompiledScene,
        replays_dir: Path,
        roots: FileRoots,
        about: Callable[[], Mapping[str, Any]] = dict,
        journal_dir: Path | None = None,
    ) -> None:
        """``about`` tells what is kept with every recording: how cameras are drawn, the seed of the last reset.

        Frames that are not saved yet are kept below ``journal_dir`` as well, if there is one.
        """
        self._engine = engine
        self._about = about
        self._metadata: dict[str, Any] = {}
        self._replays_dir = replays_dir
        self._roots = roots
        self._recorder = Recorder(scene.joints, recorded_signals(scene))
        self._player = ReplayPlayer(scene.joints, self._recorder)
        self.is_playing = False
        """Whether steps show recorded frames."""

        self.on_jump: Callable[[], None] = lambda: None
        """Called, under the lock, when a replay begins, ends or goes elsewhere: live mode plays on from there."""

        self._has_just_jumped = False
        self._shown: ReplayPosition | None = None
        engine.on_publish.append(self._note_shown)
        self._unsaved = False
        self._journal_dir = journal_dir
        self._journal: Journal | None = None
        self._stream: McapStream | None = None

    # -- recording ----------------------------------------------------------------------------------------------

    def start_recording(
        self, name: str | None, max_duration_s: float | None, path: str | None = None
    ) -> tuple[str, float, Path | None]:
        """Begin; returns the name, the window in force, and the file that frames go to as they come, if ``path``."""
        where = self._stream_path(path, max_duration_s)
        with self._engine.locked():
            started = self._recorder.start(name, max_duration_s)
            try:
                stream = None if where is None else self._begin_stream(where)
            except UrlabError:
                self._recorder.stop()
                self._recorder.clear()
                raise
            self.end_replay()
            self._player.make_live_active()
            self._engine.post_step.append(self._capture)
            self._unsaved = False
            self._stream = stream
            given_up, self._journal = self._journal, self._begin_journal() if stream is None else None
        _discard(given_up)
        return *started, where

    def _stream_path(self, path: str | None, max_duration_s: float | None) -> Path | None:
        if path is None:
            return None
        missing = check_mcap_installed()
        if missing:
            raise BadValue(f"recording to a file needs {missing}, which is not installed: {INSTALL}")
        if max_duration_s is not None:
            raise BadValue("a recording to a file keeps everything: leave out max_duration_s, or path")
        return save_path(path, self._replays_dir, self._roots, MCAP)

    def _begin_stream(self, path: Path) -> "McapStream":
        from urlab.recording.stream import McapStream

        return McapStream(path, self._recorder, self._metadata_now())

    def stop_recording(self) -> RecordingState:
        """End; the frames stay."""
        with self._engine.locked():
            self._recorder.stop()
            self._engine.post_step.remove(self._capture)
            self._metadata = self._metadata_now()
            if self._journal is not None:
                self._journal.finish()
            ended, stream = self.recording_state(), self._stream
        return replace(ended, warnings=self._finish_stream(stream))

    def _finish_stream(self, stream: "McapStream | None") -> tuple[str, ...]:
        """What is in a file whole needs no saving."""
        if stream is None:
            return ()
        if not stream.finish():
            kept = "recording_save writes the frames that memory holds"
            return (f"{stream.path} does not have every frame: {stream.problem}; {kept}",)
        self._unsaved = False
        log.info("%s is written: %d frames", stream.path, stream.frame_count)
        return ()

    def recording_state(self) -> RecordingState:
        """How far the recording is. Any thread, at once."""
        recorder, stream = self._recorder, self._stream
        frames = recorder.frame_count if stream is None else stream.frame_count
        timestep_s = float(self._engine.model.opt.timestep)
        return RecordingState(recorder.is_active, recorder.name, frames, frames * timestep_s)

    def save_recording(self, path: str | None) -> Path:
        """Write the running or the last recording, under its own name when none is given.

        Only the copy is made under the lock.
        """
        with self._engine.locked():
            recording, metadata = self._recorder.recording(), self._metadata_to_keep()
            self._unsaved = False
            journal = self._journal
            mark = journal.mark() if journal is not None else 0
        named = None if recording.name == LIVE else f"{legal_name(recording.name)}.json"
        try:
            where = save_path(path or named, self._replays_dir, self._roots)
            write_json(recording, where, metadata=metadata)
        except UrlabError:
            self._unsaved = True
            raise
        self._note_saved(journal, mark)
        return where

    def _note_saved(self, journal: Journal | None, mark: int) -> None:
        with self._engine.locked():
            if journal is None or journal is not self._journal:
                return
            if self._recorder.is_active:
                journal.saved(mark)
                return
            if self._unsaved:  # frames came after the copy, and then it was stopped
                return
            self._journal = None
        journal.discard()

    def clear_recording(self) -> None:
        """Forget the frames."""
        with self._engine.locked():
            if self._stream is not None and self._recorder.is_active:
                raise BadValue(f"recording {self._recorder.name!r} goes to {self._stream.path}: stop it first")
            self._stream = None
            self._recorder.clear()
            self._unsaved = False
            given_up, self._journal = self._journal, self._begin_journal() if self._recorder.is_active else None
        _discard(given_up)

    def autosave(self) -> Path | None:
        """Write unsaved frames to ``autosave-<time>.json``, when the simulation ends; those in a file are safe."""
        if self._recorder.is_active:
            self._finish_stream(self._stream)
        with self._engine.locked():
            journal, self._journal = self._journal, None
            wanted = self._unsaved and self._recorder.has_frames
            if wanted:
                recording, metadata = self._recorder.recording(), self._metadata_to_keep()
            self._unsaved = False
        if not wanted:
            _discard(journal)
            return None
        where = self._replays_dir / f"autosave-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06d}.json"
        try:
            write_json(recording, where, metadata=metadata)
        except FileError as failed:
            fate = "stays in its journal for the next server" if journal is not None and journal.leave() else "is lost"
            log.error("an unsaved recording of %d frames %s: %s", recording.frame_count, fate, failed.message)
            return None
        _discard(journal)
        log.info("unsaved recording of %d frames kept as %s", recording.frame_count, where)
        return where

    def _begin_journal(self) -> Journal | None:
        recorder = self._recorder
        if self._journal_dir is None:
            return None
        about = self._metadata_now()
        header = JournalHeader(recorder.name, recorder.joints, recorder.window_s, about, recorder.signals)
        return Journal(self._journal_dir, header, recorder.chunks)

    def _capture(self) -> None:
        data = self._engine.data
        self._recorder.capture(data.time, data.qpos, data.qvel, data.ctrl, data.sensordata)
        self._unsaved = True

    def _metadata_to_keep(self) -> dict[str, Any]:
        """What was true of the recording: a stopped one is not changed by later resets."""
        return self._metadata_now() if self._recorder.is_active else self._metadata

    def _metadata_now(self) -> dict[str, Any]:
        return {**_metadata(self._engine.model), **self._about()}

    # -- replay -------------------------------------------------------------------------------------------------

    @property
    def position(self) -> ReplayPosition | None:
        """Where the replay stands, while one runs: that frame is in the snapshot, or a later one.

        Any thread, at once.
        """
        return None if self._player.position is None else self._shown

    @property
    def replay(self) -> ReplayBlock | None:
        """The same, as replies of steps have it."""
        at = self.position
        if at is None:
            return None
        return ReplayBlock(active_session=at.name, frame=at.frame, total_frames=at.total_frames)

    def load(self, path: str) -> tuple[str, int]:
        """Read a recording; returns its name and how many frames it has."""
        where = load_path(path, self._replays_dir, self._roots)
        recording = read_recording(where)
        with self._engine.locked():
            session = self._player.load(recording, where.stem)
        return session.name, session.total_frames

    def names(self) -> list[str]:
        """What can be replayed. Any thread, at once."""
        return self._player.names()

    def set_active(self, name: str) -> None:
        """Choose what to replay."""
        with self._engine.locked():
            self._player.set_active(name)

    def start_replay(self, loop: bool) -> tuple[str, int]:
        """Show frame 0; returns what is played and how many frames it has."""
        with self._engine.locked():
            total = self._player.start(loop)
            self.is_playing = True
            self._jump()
            return self._player.active_name or "", total

    def seek(self, frame: int | None, time_s: float | None) -> ReplayPosition:
        """Show the frame of that index, or that of a time; where the replay stands now."""
        with self._engine.locked():
            self._player.seek(frame, time_s)
            self._jump()
            assert self._shown is not None
            return self._shown

    def stop_replay(self) -> None:
        """Go on simulating from the state shown."""
        with self._engine.locked():
            self.end_replay()

    def end_replay(self) -> None:
        """Like stop_replay; the caller holds the physics lock."""
        if not self.is_playing:
            return
        self._player.stop()
        self._shown = None
        self.is_playing = False
        self.on_jump()

    def show(self, frames: int) -> None:
        """Go on by that many recorded frames; the caller holds the physics lock."""
        self._player.advance(frames)
        self._show_current()

    def play_on(self) -> float | None:
        """In live mode: show the next frame, and say for how many simulated seconds; None when it is the last.

        Where the replay has just begun or gone elsewhere, the frame that is shown has its time first. The caller holds
        the physics lock.
        """
        if not self._has_just_jumped:
            self.show(1)
        self._has_just_jumped = False
        seconds = self._player.seconds_to_next()
        return None if seconds is None else seconds or float(self._engine.model.opt.timestep)

    def _jump(self) -> None:
        self._engine.jump()
        self._show_current()
        self._has_just_jumped = True
        self.on_jump()

    def _show_current(self) -> None:
        data, before = self._engine.data, self._engine.data.time
        data.time = self._player.current(data.qpos, data.qvel)
        if data.time < before:  # a loop begins again
            self._engine.jump()
        self._engine.forward()
        self._engine.publish()

    def _note_shown(self) -> None:
        self._shown = self._player.position


def _discard(journal: Journal | None) -> None:
    if journal is not None:
        journal.discard()


def _metadata(model: Any) -> dict[str, Any]:
    return {
        "mujoco_version": mujoco.__version__,
        "timestep": float(model.opt.timestep),
        "nq": model.nq,
        "nv": model.nv,
    }
