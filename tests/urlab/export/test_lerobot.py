"""LeRobot datasets: what they replace, and going on after a kill."""

import json
import shutil

import numpy as np
import pytest

from urlab.compile.compiled_scene import JointSlot
from urlab.errors import BadValue, PathNotWritable
from urlab.export import Clip, ExportSource, LeRobot, RecordedEpisode
from urlab.export.episodes import check_samples, split_at_resets
from urlab.recording import RecordedJoint, RecordedSignals, Recording, fitted


@pytest.fixture
def make_source(pictures):
    """Episodes of six frames of a robot with one joint and one control."""

    def make(episodes=2, controls=("push",)):
        count = 6
        numbers = np.arange(count * episodes, dtype=float)[:, None]
        recording = Recording(
            "ep", (RecordedJoint("hip", 1, 1),), np.tile(np.arange(count) * 0.1, episodes), numbers, numbers,
            RecordedSignals(controls, ()), numbers[:, : len(controls)], np.empty((len(numbers), 0)),
        )  # fmt: skip
        playable = fitted("ep", recording, [JointSlot(0, "hip", "hip", 3, slice(0, 1), slice(0, 1))])
        clip = Clip(playable, 0, len(numbers) - 1, 1, np.zeros(1), np.zeros((0, 3)), np.zeros((0, 4)))
        parts = [RecordedEpisode(one, one.sampled(10), "push it") for one in split_at_resets(clip)]
        return ExportSource(None, parts, {"eye": pictures})

    return make


def drawn_by(pictures):
    """Count the pictures that are drawn."""
    seen, draw = [], pictures.draw
    pictures.draw = lambda state: seen.append(state.frame_id) or draw(state)
    return seen


def test_resets_part_episodes(make_source):
    assert [one.frames.tolist() for one in make_source().episodes] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_an_export_that_was_killed_goes_on_after_the_last_whole_episode(make_source, pictures, tmp_path):
    out, kept = tmp_path / "dataset", tmp_path / "kept"
    seen = drawn_by(pictures)

    def be_killed():
        if seen[-1] == 9:  # in the middle of the second episode
            (work,) = tmp_path.glob(".dataset.*.part")
            shutil.copytree(work, kept / work.name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LeRobot(10).write(make_source(), out, be_killed)
    assert [one.name for one in tmp_path.iterdir()] == ["kept"], "what is cancelled leaves nothing"
    for work in kept.iterdir():
        work.rename(tmp_path / work.name)
    seen.clear()
    advanced = []
    LeRobot(10).write(make_source(), out, lambda: advanced.append(1))
    assert (seen, len(advanced)) == ([1, 7, 8, 9, 10, 11], 12), "the first is how it is known that all looks the same"
    assert json.loads((out / "meta/info.json").read_bytes())["total_frames"] == 10
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dataset", "kept"]


def test_an_export_does_not_go_on_with_episodes_that_looked_otherwise(make_source, pictures, tmp_path):
    plans = [LeRobot(10)._plan(make_source())]
    draw = pictures.draw
    pictures.draw = lambda state: draw(state) + 1
    plans.append(LeRobot(10)._plan(make_source()))
    pictures.draw = draw
    assert LeRobot(10)._plan(make_source()) == plans[0] != plans[1]


def test_work_that_was_begun_for_another_export_is_not_gone_on_with(make_source, pictures, tmp_path):
    (tmp_path / ".dataset.0123456789abcdef.part").mkdir()
    LeRobot(10).write(make_source(1), tmp_path / "dataset", lambda: None)
    LeRobot(10).write(make_source(2), tmp_path / "dataset", lambda: None)
    assert json.loads((tmp_path / "dataset/meta/info.json").read_bytes())["total_episodes"] == 2
    assert [one.name for one in tmp_path.iterdir()] == ["dataset"]


def test_a_folder_that_is_not_ours_is_kept(tmp_path):
    (tmp_path / "notes.txt").write_text("precious")
    with pytest.raises(PathNotWritable, match="is not a LeRobot dataset of ours, so it is kept"):
        LeRobot.check_target(tmp_path)


def test_what_learners_cannot_use_is_refused_before_anything_is_written(make_source):
    with pytest.raises(BadValue, match="has no controls, which learners need as actions"):
        check_samples(make_source(controls=()).episodes)
    with pytest.raises(BadValue, match="a whole number of samples per second"):
        LeRobot(12.5)
