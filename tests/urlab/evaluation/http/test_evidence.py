"""The files of an episode, and our own client."""

import json
import pickle
import time
from typing import Any

import numpy as np
import pytest

from urlab.evaluation.runs.client import EvalClient, InvalidRequest, ServerUnreachable
from urlab.evaluation.runs.results import Run

FILES = {"result_info.json", "meta_record.pkl", "trace.jsonl", "states.npz", "terminal_observation.npz"}
HOLD = {"action": [0.0] * 7 + [0.04, 0.04], "control_type": "joint_position"}


@pytest.fixture(scope="module")
def filmed(tmp_path_factory: pytest.TempPathFactory, server: Any) -> Any:
    """A server with cameras whose run "films" has one episode."""
    made = type(server)(tmp_path_factory.mktemp("filmed"), cameras=True, run_id="films", episodes=1)
    yield made
    made.stop()


def test_an_episode_leaves_its_evidence(filmed: Any) -> None:
    with EvalClient(filmed.url) as client:
        first = client.reset()["0"]["obs"]
        assert first["camera_data"]["obs_camera"]["rgb"].shape == (480, 640, 3)
        assert np.array_equal(first["video.obs_camera_view"], first["camera_data"]["obs_camera"]["rgb"])
        for _ in range(12):
            reply = client.step({"0": HOLD})["0"]
        assert reply["episode_result"]["task_name"] == "short"
    folder = filmed.results / "urlab" / "films" / "short" / "000"
    names = {path.name for path in folder.iterdir()}
    films = {f"{camera}.mp4" for camera in first["camera_data"]}
    assert names == films | FILES
    info = json.loads((folder / "result_info.json").read_text())
    assert (info["score"], info["success_rate"], info["termination_reason"]) == (0.0, 0, "step_limit")
    assert info["log_info"].keys() == {"episode_start_time", "episode_end_time", "metric_score"}
    _check_records(folder, films)


def test_a_run_of_a_server_tells_what_its_pictures_were_drawn_by(filmed: Any) -> None:
    job = json.loads((filmed.results / "urlab" / "films" / "job.json").read_text())
    assert job["render_profile"] == "fast"
    assert job["renderer"] not in ("", "none, as there are no cameras")
    assert {"mujoco", "numpy", "urlab-headless"} <= job["versions"].keys()
    assert job["camera_sizes"]["short"]["obs_camera"] == "640 x 480 and depth"
    run = Run("films", filmed.results, job, ())
    assert run.drawing == f"{job['renderer']}, render profile fast"


def _check_records(folder: Any, films: set[str]) -> None:
    meta = pickle.loads((folder / "meta_record.pkl").read_bytes())
    assert np.shape(meta["joint_positions"]) == (13, 7)
    assert np.shape(meta["gripper_positions"]) == (13, 2)
    assert np.shape(meta["base_positions"]) == (13, 3)
    assert all(one.ndim == 1 for key in ("joint_positions", "gripper_positions", "base_positions") for one in meta[key])
    assert np.shape([one["base_motion"] for one in meta["model_output"]]) == (12, 3)
    assert meta["instruction"] == "Put the grey cube on the grey plate."
    assert meta.keys() == {
        *("joint_positions", "gripper_positions", "base_positions"),
        *("instruction", "model_output", "robot_id"),
    }
    assert meta["robot_id"] == "manip/franka/panda_hand"
    rows = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    assert [row["timestep"] for row in rows] == list(range(13))
    np.testing.assert_array_equal([row["joints"][:7] for row in rows], meta["joint_positions"])
    commanded = [row["commanded_joints"] for row in rows[1:]]
    np.testing.assert_array_equal(commanded, [one["arm_action"] for one in meta["model_output"]])
    with np.load(folder / "terminal_observation.npz") as terminal:
        assert int(terminal["timestep"]) == 12
        assert terminal["camera_data/obs_camera/depth"].shape == (480, 640)
        assert terminal["joint_position_state"] == pytest.approx(np.float32(rows[-1]["joints"]))
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    assert [imageio_ffmpeg.count_frames_and_secs(str(folder / film))[0] for film in sorted(films)] == [13] * len(films)


def test_without_ffmpeg_there_are_no_films_and_one_word_about_it(
    make_server: Any, make_raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/there/is/no/ffmpeg")
    server = make_server(cameras=True, run_id="unfilmed", episodes=1)
    raw = make_raw(server.url)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    for steps in (12, 150):
        reply = raw.pickled("/step_chunk", [{"0": HOLD}] * steps)["obs"]["0"]
    assert (reply["obs"], reply["metric"].keys()) == (None, {"(1/1)short", "(1/1)easy"})
    (problem,) = raw.status()["problems"]
    assert "ffmpeg cannot begin the video of obs_camera" in problem
    names = {path.name for path in (server.results / "urlab" / "unfilmed" / "short" / "000").iterdir()}
    assert names == FILES


def test_our_client_gets_the_job_done(server: Any) -> None:
    with EvalClient(server.url.removeprefix("http://"), ("0", "1")) as client:
        client.submit(["short"], run_id="ours", episodes=2, seed=5)
        replies = client.reset()
        assert replies["0"]["obs"]["joint_position_state"].dtype == np.float32
        replies = client.step({"1": HOLD})
        assert replies.keys() == {"1"}
        with pytest.raises(InvalidRequest, match="control_type"):
            client.step({"0": {}})
        replies = client.step_chunk([{"0": HOLD, "1": HOLD}] * 50)
        assert client.executed_steps == 12
        assert replies["1"]["episode_result"]["seed"] == "006"
        assert replies["0"]["episode_result"]["steps"] == 12
        assert replies["0"]["metric"] == {"short": {"score": 0.0, "sr": 0.0}}
        assert client.status()["status"] == "complete"
    assert EvalClient(server.url).status()["active_workers"] == []


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ServerUnreachable, match=r"no answer from http://127\.0\.0\.1:9"):
        EvalClient("127.0.0.1:9").status()
    with pytest.raises(ServerUnreachable, match="is not the address of a server"):
        EvalClient("ftp://x")


def test_the_same_seed_and_actions_give_the_same_numbers(server: Any) -> None:
    def run(run_id: str) -> Any:
        with EvalClient(server.url) as client:
            client.submit(["short"], run_id=run_id, episodes=1)
            client.reset()
            client.step_chunk([{"0": {**HOLD, "action": [0.01] * 7 + [0.0, 0.0]}}] * 12)
        folder = server.results / "urlab" / run_id / "short" / "000"
        until = time.monotonic() + 10
        while not (folder / "trace.jsonl").exists() and time.monotonic() < until:
            time.sleep(0.01)
        return (folder / "trace.jsonl").read_bytes()

    assert run("one") == run("two")
