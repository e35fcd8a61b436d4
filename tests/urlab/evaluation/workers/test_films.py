"""Films of a worker: as long as the episode, however many actions come at a time."""

import pickle
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.simulation.actions import Action, ControlType
from urlab.evaluation.tasks.task import load_task
from urlab.evaluation.workers.evidence import EpisodeVideos
from urlab.evaluation.workers.messages import Begin, Flush, Step, WorkerAnswer, WorkerFrame, WorkerSettings
from urlab.evaluation.workers.worker import Worker

TASK = Path(__file__).parents[1] / "cube_on_plate.toml"
STEPS = 29
CHUNK = 13
SWING = Action(ControlType.JOINT_POSITION, is_rel=True, joints=(0.04, 0.04, *(0.0,) * 5, 0.04, 0.04))
imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")


def record(folder: Path, chunk: int) -> Path:
    """The folder of an episode whose actions come in chunks of that many."""
    task = replace(load_task(TASK), num_steps=STEPS)
    worker = Worker(WorkerSettings(cameras=True, privileged=False, videos=True))
    begin = Begin(0, 50, "urlab/a/b/000", str(folder), BodyFormat.PICKLE)
    worker.answer(WorkerFrame(begin, pickle.dumps(task)))
    answer = WorkerAnswer()
    while answer.result is None:
        answer = worker.answer(WorkerFrame(Step((SWING,) * chunk, BodyFormat.PICKLE, 50))).message
    assert worker.answer(WorkerFrame(Flush())).message.problems == ()
    worker.close()
    assert answer.result.steps == STEPS
    return folder


@pytest.fixture(scope="module")
def single_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An episode of single actions: the policy sees every step."""
    return record(tmp_path_factory.mktemp("steps"), 1)


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same episode in chunks: the policy sees three of its steps."""
    return record(tmp_path_factory.mktemp("chunks"), CHUNK)


def frames_of(film: Path) -> Any:
    """(frames, height, width), as ffmpeg decodes them, in grey."""
    words = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(film), "-f", "rawvideo", "-pix_fmt", "gray", "-"]
    raw = subprocess.run(words, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, 480, 640).astype(float)


@pytest.mark.parametrize("camera", ["obs_camera", "obs_camera_2", "realsense"])
def test_a_film_of_chunks_is_as_long_as_the_episode(chunks: Path, camera: str) -> None:
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(chunks / f"{camera}.mp4"))
    assert frames == STEPS + 1
    assert seconds == pytest.approx(STEPS / 30, abs=1 / 30 + 0.005)


def test_every_third_frame_of_the_overview_is_that_of_its_control_step(chunks: Path, single_steps: Path) -> None:
    ours, expected = (frames_of(folder / "obs_camera.mp4") for folder in (chunks, single_steps))
    assert len(ours) == len(expected) == STEPS + 1
    for step in range(6, STEPS, 3):
        nearest = int(np.argmin([np.abs(ours[step] - other).mean() for other in expected]))
        assert abs(nearest - step) <= 1, f"frame {step} shows step {nearest}"


def test_the_other_cameras_show_each_picture_until_the_next(chunks: Path, single_steps: Path) -> None:
    ours, expected = (frames_of(folder / "realsense.mp4") for folder in (chunks, single_steps))
    assert np.abs(expected[CHUNK] - expected[0]).mean() > 3
    for shown, seen in ((0, 0), (12, 0), (13, 13), (25, 13), (26, 26), (STEPS, STEPS)):
        assert np.abs(ours[shown] - expected[seen]).mean() < 1


def test_a_film_follows_no_link_that_was_laid_in_its_way(tmp_path: Path) -> None:
    """By another user who may write in the folder of results."""
    kept = tmp_path / "kept"
    kept.write_text("mine")
    folder = tmp_path / "episode"
    folder.mkdir()
    for name in ("obs_camera.mp4", ".obs_camera.part.mp4", "result_info.json", "trace.jsonl"):
        (folder / name).symlink_to(kept)
    videos = EpisodeVideos(folder)
    videos.add({"obs_camera": np.zeros((32, 32, 3), np.uint8)}, 0)
    videos.close()
    assert kept.read_text() == "mine"
    assert not (folder / "obs_camera.mp4").is_symlink()


def test_parts_of_films_that_a_killed_worker_left_are_removed(tmp_path: Path) -> None:
    picture = {"obs_camera": np.zeros((32, 32, 3), np.uint8)}
    left = tmp_path / ".urlab-4194304-1-0123456789abcdef.part"  # no process has this number
    left.write_bytes(b"half a film")
    videos = EpisodeVideos(tmp_path)
    videos.add(picture, 0)
    videos.close()
    assert [one.name for one in tmp_path.iterdir()] == ["obs_camera.mp4"]
