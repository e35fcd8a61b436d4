"""Whole runs of a tiny task, with servers of their own."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import msgpack
import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

from websockets.sync.server import ServerConnection, serve

from urlab.errors import ChildFailed
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.policies import PolicyError, find_policy
from urlab.evaluation.report import read_run
from urlab.evaluation.runs.plan import RunPlan
from urlab.evaluation.runs.results import RunFolder
from urlab.evaluation.runs.runner import EvalServerProcess, run_plan
from urlab.evaluation.settings import VideoChoice

TASK = (Path(__file__).parents[1] / "cube_on_plate.toml").read_text().replace("num_steps = 12", "num_steps = 24")


class Notes:
    """Keeps what it gets to know; may do something at every episode."""

    def __init__(self, at_episode: Callable[[], object] = lambda: None) -> None:
        self.begun: tuple[str, int, int, int] | None = None
        self.done: list[EpisodeResult] = []
        self._at_episode = at_episode

    def begin(self, run_id: str, total: int, completed: int, solved: int) -> None:
        self.begun = (run_id, total, completed, solved)

    def episode(self, done: EpisodeResult) -> None:
        self.done.append(done)
        self._at_episode()


def make_plan(folder: Path) -> RunPlan:
    task = folder / "hurried.toml"
    task.write_text(TASK)
    return RunPlan(
        policy=find_policy("random"),
        tasks=(str(task),),
        episodes=2,
        seed=0,
        workers=2,
        cameras=False,
        videos=VideoChoice.NONE,
        results=folder / "results",
        run_id="one",
    )


@pytest.fixture
def plan(tmp_path: Path) -> RunPlan:
    """Two short episodes with a server of their own."""
    return make_plan(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunPlan]:
    """The same episodes at a server that runs already, for the tests that do not end it."""
    plan = make_plan(tmp_path_factory.mktemp("served"))
    with EvalServerProcess(plan, "served") as server:
        yield replace(plan, tasks=("hurried",), run_id=None, workers=1, url=server.url, token=server.token)


@pytest.fixture
def policy_server() -> Iterator[str]:
    """An openpi policy server that always moves the hand to its left, and the address where it is."""

    def answer(connection: ServerConnection) -> None:
        connection.send(msgpack.packb({}))
        for frame in connection:
            asked = msgpack.unpackb(frame, strict_map_key=False)
            assert asked["observation/image"][b"shape"] == [224, 224, 3]
            rows = np.tile([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0], (5, 1))
            array = {b"__ndarray__": True, b"data": rows.tobytes(), b"dtype": rows.dtype.str, b"shape": rows.shape}
            connection.send(msgpack.packb({"actions": array}))

    with serve(answer, "127.0.0.1", 0, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def steps(folder: Path, seed: str) -> bytes:
    return (folder / "hurried" / seed / "trace.jsonl").read_bytes()


def test_the_same_seeds_give_the_same_episodes_whatever_the_number_of_workers(plan: RunPlan, served: RunPlan):
    notes = Notes()
    first = run_plan(plan, notes, threading.Event())
    second = run_plan(served, Notes(), threading.Event())
    assert notes.begun == ("one", 2, 0, 0)
    assert sorted((one.task, one.seed, one.steps) for one in notes.done) == [
        ("hurried", "000", 24),
        ("hurried", "001", 24),
    ]
    assert first.is_complete
    assert steps(first.folder, "000") == steps(second.folder, "000")
    assert steps(first.folder, "001") == steps(second.folder, "001")
    assert steps(first.folder, "000") != steps(first.folder, "001")
    info = json.loads((first.folder / "run_info.json").read_text())
    assert (info["policy"], info["workers"], info["total_episodes"]) == ("random", 2, 2)
    assert info["ended"] >= info["started"]


def test_an_openpi_server_drives_the_robot(plan: RunPlan, policy_server: str):
    pytest.importorskip("imageio_ffmpeg")
    seeing = replace(
        plan, policy=find_policy(policy_server), cameras=True, workers=1, episodes=1, videos=VideoChoice.FAILURES
    )
    outcome = run_plan(seeing, Notes(), threading.Event())
    assert outcome.problem is None
    assert outcome.is_complete
    rows = [json.loads(line) for line in steps(outcome.folder, "000").splitlines()]
    first_y = rows[1]["action"]["action"][0][1]
    last_y = np.load(outcome.folder / "hurried/000/terminal_observation.npz")["ee_pose_state/0"][1]
    assert last_y > first_y + 0.1
    (episode,) = read_run(outcome.folder).episodes
    assert set(episode.videos) == {"obs_camera", "obs_camera_2", "realsense"}


@pytest.fixture
def unsteady_server() -> Iterator[str]:
    """An openpi policy server whose first connection breaks at its second question."""
    connections = 0

    def answer(connection: ServerConnection) -> None:
        nonlocal connections
        connections += 1
        connection.send(msgpack.packb({}))
        for number, _ in enumerate(connection):
            if connections == 1 and number == 1:
                return
            rows = np.zeros((5, 7))
            array = {b"__ndarray__": True, b"data": rows.tobytes(), b"dtype": rows.dtype.str, b"shape": rows.shape}
            connection.send(msgpack.packb({"actions": array}))

    with serve(answer, "127.0.0.1", 0, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def test_a_policy_server_that_is_lost_costs_an_episode_and_is_connected_to_again(plan: RunPlan, unsteady_server: str):
    seeing = replace(plan, policy=find_policy(unsteady_server), cameras=True, workers=1)
    outcome = run_plan(seeing, Notes(), threading.Event())
    assert outcome.problem is None
    assert outcome.is_complete
    lost, well = read_run(outcome.folder).episodes
    assert (lost.reason, lost.score, well.reason) == ("policy_failed", 0.0, "step_limit")
    assert lost.detail is not None
    assert "has gone" in lost.detail
    (complaint,) = outcome.complaints
    assert "that the policy failed in, and that count as failed: 1" in complaint


class Looking:
    """Notes what it sees; it looks through one camera, and needs no depth."""

    cameras: ClassVar = {"realsense": (64, 48)}
    depth = False
    seen: ClassVar[list[Any]] = []

    def act(self, observation: dict[str, Any]) -> list[dict[str, Any]]:
        Looking.seen.append({name: (view["rgb"].shape, view.get("depth")) for name, view in _views(observation)})
        return [{"control_type": "joint_position", "action": [0.0] * 9, "is_rel": True}] * 24


def _views(observation: dict[str, Any]) -> Any:
    return observation["camera_data"].items()


def test_only_what_a_policy_looks_at_is_drawn(plan: RunPlan):
    policy = replace(find_policy("random"), make=Looking, cameras=Looking.cameras, depth=Looking.depth)
    outcome = run_plan(replace(plan, policy=policy, cameras=True, workers=1, episodes=1), Notes(), threading.Event())
    assert outcome.problem is None
    assert Looking.seen == [{"realsense": ((48, 64, 3), None)}]


class Fragile:
    """Fails at the first step of the episodes that it is told to fail in; it has ``act`` alone."""

    def __init__(self, *seeds: str) -> None:
        self._seeds = seeds

    def act(self, observation: dict[str, Any]) -> list[dict[str, Any]]:
        if observation["episode_id"].rpartition("/")[2] in self._seeds:
            raise RuntimeError("CUDA out of memory")
        return [{"control_type": "joint_position", "action": [0.0] * 9, "is_rel": True}] * 24


def _with(served: RunPlan, *seeds: str) -> RunPlan:
    policy = replace(find_policy("random"), make=lambda: Fragile(*seeds))
    return replace(served, policy=policy, episodes=5)


def test_a_policy_that_fails_in_an_episode_costs_that_episode(served: RunPlan):
    notes = Notes()
    outcome = run_plan(_with(served, "001", "002", "004"), notes, threading.Event())
    assert (outcome.problem, outcome.is_complete) == (None, True)
    failed, ran = "policy_failed", "step_limit"
    assert [one.reason for one in notes.done] == [ran, failed, failed, ran, failed]
    assert outcome.complaints[0].startswith("episodes that the policy failed in, and that count as failed: 3; the last")


def test_a_policy_that_fails_again_and_again_ends_the_run(served: RunPlan):
    outcome = run_plan(_with(served, "001", "002", "003", "004"), Notes(), threading.Event())
    assert isinstance(outcome.problem, PolicyError)
    assert str(outcome.problem).startswith(
        "the policy failed in 3 episodes one after the other, the last time: the policy's act() failed at step 0 of "
    )
    assert "CUDA out of memory" in str(outcome.problem)
    assert [one.reason for one in outcome.finished] == ["step_limit", *["policy_failed"] * 3]
    patient = replace(_with(served, "001", "002", "003", "004"), max_policy_failures=5)
    assert run_plan(patient, Notes(), threading.Event()).is_complete


def test_a_run_that_the_policy_failed_in_everywhere_has_a_problem(served: RunPlan):
    outcome = run_plan(replace(_with(served, "000", "001"), episodes=2), Notes(), threading.Event())
    assert isinstance(outcome.problem, PolicyError)
    assert len(outcome.finished) == 2


def test_a_stop_keeps_what_is_done(served: RunPlan):
    stop = threading.Event()
    outcome = run_plan(replace(served, episodes=500), Notes(stop.set), stop)
    assert outcome.was_stopped
    assert outcome.problem is None
    assert not outcome.is_complete
    assert len(read_run(outcome.folder).episodes) >= len(outcome.finished) >= 1


def children() -> set[int]:
    """The processes that this one's main thread has, but for the one that forks them (tests/preloaded.py)."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(pid) for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() != "preloaded"}


def test_a_server_that_dies_is_what_ended_the_run(plan: RunPlan):
    before = children()

    def kill() -> None:
        for pid in children() - before:
            os.kill(pid, signal.SIGKILL)

    outcome = run_plan(replace(plan, episodes=500, workers=1), Notes(kill), threading.Event())
    assert isinstance(outcome.problem, ChildFailed)
    assert "urlab eval serve was ended by SIGKILL" in str(outcome.problem)
    assert outcome.finished


def test_a_server_that_cannot_start_says_why(plan: RunPlan, tmp_path: Path):
    blocked = tmp_path / "blocked"
    blocked.write_text("not a folder")
    with pytest.raises(ChildFailed, match=r"urlab eval serve ended with exit code 2: .*blocked"):
        run_plan(replace(plan, results=blocked), Notes(), threading.Event())


class Second:
    """The first of its kind works; the second cannot be made."""

    needs_cameras = False
    made = 0

    def __init__(self) -> None:
        Second.made += 1
        if Second.made > 1:
            raise PolicyError("there is only one")

    def reset(self, observation: dict[str, Any]) -> None: ...

    def act(self, observation: dict[str, Any]) -> dict[str, Any]:
        return {"control_type": "joint_position", "action": [0.0] * 9}

    def close(self) -> None: ...


def test_a_worker_without_a_policy_ends_the_run(served: RunPlan):
    policy = replace(find_policy("random"), make=Second)
    outcome = run_plan(replace(served, policy=policy, episodes=500, workers=2), Notes(), threading.Event())
    assert str(outcome.problem) == "there is only one"
    assert not outcome.was_stopped


def test_results_of_a_far_server_are_kept_unless_the_server_wrote_them_here(tmp_path: Path):
    done = EpisodeResult("stack", "003", 0.5, False, 40, "step_limit")
    folder = RunFolder(tmp_path, "far")
    folder.keep_result(done)
    assert json.loads((folder.path / "stack/003/result.json").read_text())["score"] == 0.5
    (folder.path / "sort/003").mkdir(parents=True)
    (folder.path / "sort/003/result_info.json").write_text("{}")
    folder.keep_result(replace(done, task="sort"))
    assert not (folder.path / "sort/003/result.json").exists()


def test_only_the_videos_of_what_was_solved_are_removed(tmp_path: Path):
    folder = RunFolder(tmp_path, "near")
    for seed in ("000", "001"):
        folder.episode("stack", seed).mkdir(parents=True)
        (folder.episode("stack", seed) / "obs_camera.mp4").write_bytes(b"video")
        (folder.episode("stack", seed) / "result_info.json").write_text("{}")
    folder.remove_videos([EpisodeResult("stack", "000", 1.0, True, 40, "success")])
    left = sorted(path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file())
    assert left == ["stack/000/result_info.json", "stack/001/obs_camera.mp4", "stack/001/result_info.json"]
