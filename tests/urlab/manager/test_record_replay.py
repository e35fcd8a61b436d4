from pathlib import Path

import pytest

from urlab.errors import PathNotWritable
from urlab.manager import Manager, View
from urlab_wire.enums import ObservationLevel
from urlab_wire.ops.stepping import StepRequest


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
