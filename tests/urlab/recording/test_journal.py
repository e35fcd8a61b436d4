"""Frames on disk while they are recorded, and what is made of them when the process is gone."""

import contextlib
import logging
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.recording import Journal, JournalHeader, Recorder, read_recording
from urlab.recording import journal as journals
from urlab.recording.journal import read_journal, recover
from urlab.recording.recorder import new_frames

PATIENCE_S = 20.0


class Recording:
    """A recorder of one joint with its journal; the frame of time t has position t and velocity -t."""

    def __init__(self, recorder: Recorder, folder: Path, max_duration_s: float | None = None) -> None:
        recorder.start("ep", max_duration_s)
        self.recorder, self.folder = recorder, folder
        header = JournalHeader("ep", recorder.joints, recorder.window_s, {"timestep": 1.0})
        self.journal = Journal(folder, header, recorder.chunks)
        self.frames = 0

    def capture(self, count: int) -> None:
        for time_s in np.arange(self.frames, self.frames + count, dtype=float):
            self.recorder.capture(time_s, np.array([time_s]), np.array([-time_s]))
        self.frames += count

    def on_disk(self) -> list[float]:
        """The times of the frames that a reader would find now."""
        (entry,) = self.folder.iterdir()
        found = read_journal(entry)
        assert found is not None
        assert np.array_equal(found[0].qpos[:, 0], found[0].times)
        assert np.array_equal(found[0].qvel[:, 0], -found[0].times)
        return found[0].times.tolist()

    def wait_for(self, *times: float) -> None:
        """A folder without a dot is complete; one with a dot may get its name, and a segment may go, at any moment."""

        def has_come() -> bool:
            with contextlib.suppress(FileNotFoundError):
                return any(self.folder.glob("[!.]*/*.frames")) and self.on_disk() == list(times)
            return False

        wait_until(has_come)


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


@pytest.fixture
def record(hinges: Any, tmp_path: Path) -> Any:
    started: list[Recording] = []

    def begin(max_duration_s: float | None = None, **limits: int) -> Recording:
        started.append(Recording(Recorder(hinges("r_hip"), **limits), tmp_path / "Journal", max_duration_s))
        return started[-1]

    yield begin
    for one in started:
        one.journal.discard()


def left_by_a_killed_server(recording: Recording) -> Path:
    """A copy of the journal, of which no process holds the lock."""
    (entry,) = recording.folder.iterdir()
    copied = recording.folder.parent / "Killed" / entry.name
    shutil.copytree(entry, copied)
    return copied.parent


def test_frames_are_on_disk_while_the_recording_goes_on(record: Any) -> None:
    recording = record()
    recording.capture(3)
    recording.wait_for(0.0, 1.0, 2.0)
    recording.capture(2)
    recording.wait_for(0.0, 1.0, 2.0, 3.0, 4.0)


def test_what_a_killed_server_recorded_is_made_a_recording_once(record: Any, tmp_path: Path, caplog: Any) -> None:
    recording = record()
    recording.capture(5)
    recording.wait_for(*range(5))
    folder = left_by_a_killed_server(recording)
    (path,) = recover(folder, tmp_path / "Replays")
    assert path.name.startswith("recovered-")
    assert read_recording(path).times.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert "recorded 'ep': 5 frames are kept as" in caplog.text
    assert recover(folder, tmp_path / "Replays") == []
    assert list(folder.iterdir()) == []


def test_the_journal_of_a_server_that_lives_is_left_alone(record: Any, tmp_path: Path) -> None:
    recording = record()
    recording.capture(5)
    recording.wait_for(*range(5))
    assert recover(recording.folder, tmp_path / "Replays") == []
    recording.wait_for(*range(5))


@pytest.mark.parametrize("lost_bytes", [1, 7, 8 * 4 * 2 + 19])
def test_a_block_that_was_half_written_costs_that_block_only(
    record: Any, tmp_path: Path, lost_bytes: int, monkeypatch: Any
) -> None:
    turn = threading.Lock()

    def frames_in_turn(*asked: Any) -> list[Any]:
        with turn:
            return list(new_frames(*asked))

    monkeypatch.setattr(journals, "new_frames", frames_in_turn)
    recording = record()
    recording.capture(3)
    recording.wait_for(*range(3))
    with turn:  # both are in one block
        recording.capture(2)
    recording.wait_for(*range(5))
    folder = left_by_a_killed_server(recording)
    (segment,) = folder.glob("*/*.frames")
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - lost_bytes)
    (path,) = recover(folder, tmp_path / "Replays")
    assert read_recording(path).times.tolist() == [0.0, 1.0, 2.0]


def test_bytes_that_are_no_journal_are_taken_away_with_a_word(tmp_path: Path, caplog: Any) -> None:
    folder = tmp_path / "Journal" / "odd"
    folder.mkdir(parents=True)
    (folder / "about.json").write_text("[1]")
    (folder / "00000000.frames").write_bytes(b"URJ1" + b"\xff" * 400)
    assert recover(folder.parent, tmp_path / "Replays") == []
    assert "cannot be read" in caplog.text
    assert not folder.exists()


def test_a_recording_that_was_discarded_leaves_no_files(record: Any) -> None:
    recording = record()
    recording.capture(5)
    recording.wait_for(*range(5))
    recording.journal.discard()
    assert list(recording.folder.iterdir()) == []


def test_after_a_save_only_later_frames_are_in_the_journal(record: Any) -> None:
    recording = record()
    recording.capture(5)
    recording.wait_for(*range(5))
    mark = recording.journal.mark()
    recording.capture(2)
    recording.journal.saved(mark)
    recording.wait_for(5.0, 6.0)


def test_what_was_saved_whole_is_not_recovered(record: Any, tmp_path: Path) -> None:
    recording = record()
    recording.capture(5)
    recording.wait_for(*range(5))
    recording.journal.saved(recording.journal.mark())
    recording.wait_for()
    folder = left_by_a_killed_server(recording)
    assert recover(folder, tmp_path / "Replays") == []
    assert list(folder.iterdir()) == []


def test_a_rolling_window_holds_for_what_is_recovered(record: Any) -> None:
    recording = record(max_duration_s=10.0)
    recording.capture(1000)
    recording.wait_for(*range(989, 1000))


def test_segments_whose_frames_were_dropped_are_taken_away(record: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(journals, "_SEGMENT_BYTES", 1)
    recording = record(max_duration_s=10.0, max_bytes=8 * 32 * 4)
    for end in range(100, 1001, 100):
        recording.capture(100)
        recording.wait_for(*range(end - 11, end))
    wait_until(lambda: len(list(recording.folder.glob("*/*.frames"))) <= 3)


def test_frames_after_a_reset_of_time_keep_their_order(record: Any) -> None:
    recording = record()
    for time_s in (5.0, 6.0, 0.0, 1.0):
        recording.recorder.capture(time_s, np.array([time_s]), np.array([-time_s]))
    recording.wait_for(5.0, 6.0, 0.0, 1.0)


def test_a_disk_that_refuses_costs_a_warning_and_what_was_missed_is_written_later(
    record: Any, monkeypatch: Any, caplog: Any, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO, "urlab.recording")
    monkeypatch.setattr(journals, "_RETRY_S", 0.01)
    (tmp_path / "Journal").write_text("in the way")
    recording = record()
    recording.capture(3)
    wait_until(lambda: "goes on in memory only" in caplog.text)
    recording.capture(3)
    (tmp_path / "Journal").unlink()
    recording.wait_for(*range(6))
    wait_until(lambda: "is written again" in caplog.text)
    assert caplog.text.count("goes on in memory only") == 1


def test_frames_that_came_before_the_end_are_written_before_it(record: Any) -> None:
    recording = record()
    recording.capture(5)
    assert recording.journal.leave()
    assert recording.on_disk() == [0.0, 1.0, 2.0, 3.0, 4.0]
