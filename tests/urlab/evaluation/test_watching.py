"""What the page of a watched run shows, read as the page reads it."""

import os
import pickle
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.episode_result import EpisodeResult
from urlab.evaluation.simulation.actions import Action
from urlab.evaluation.tasks.task import Task
from urlab.evaluation.watching import RunWatch, tasks_of
from urlab.evaluation.workers.live import read_live
from urlab.evaluation.workers.messages import Begin, Step, WorkerFrame, WorkerSettings
from urlab.evaluation.workers.worker import Worker
from urlab_wire.ops.viewport import ChoiceBlock

STEPS = 3


@pytest.fixture
def watch(panda_task: Task) -> Iterator[RunWatch]:
    """A page that nobody opens; the test itself says when it looks."""
    opened = RunWatch([panda_task], web=False)
    yield opened
    opened.close()


@pytest.fixture
def actions(act: Callable[..., Action]) -> tuple[Action, ...]:
    """A few steps."""
    home = np.array(FRANKA_PANDA.home)
    return tuple(act(FRANKA_PANDA, "joint_position", (home + 0.02 * n).tolist(), is_rel=False) for n in range(STEPS))


def worked(task: Task, folder: Path, actions: tuple[Action, ...], live: Path | None) -> tuple[Worker, Any]:
    """A worker in an episode of that task, and the state that it has come to."""
    worker = Worker(WorkerSettings(False, False, False, live_folder=None if live is None else str(live)))
    begin = Begin(7, 50, "urlab/run/block_and_drawer/007", str(folder), BodyFormat.MSGPACK)
    worker.answer(WorkerFrame(begin, pickle.dumps(task)))
    for action in actions:
        worker.answer(WorkerFrame(Step((action,), BodyFormat.MSGPACK, 50)))
    assert worker._simulation is not None
    return worker, worker._simulation.state()


def test_the_page_shows_the_world_and_the_goal_of_the_episode_that_is_simulated(
    watch: RunWatch, panda_task: Task, actions: tuple[Action, ...], tmp_path: Path
):
    worker, (_, *state) = worked(panda_task, tmp_path, actions, watch.folder)
    watch.begin("run-1", total=4, completed=1, solved=1)
    watch.episode(EpisodeResult("block_and_drawer", "006", 0.5, False, steps=100, reason="step_limit"))
    (live,) = read_live(watch.folder)
    watch.look()
    view = watch.client.viewport.read()
    assert view.texts["top_left"].splitlines() == [
        "run run-1: 2 of 4 episodes, 1 solved",
        f"> block_and_drawer 007  franka_panda  step {live.step}/100  score {live.score:.2f}",
        "    Put the block on the tin.",
    ]
    assert view.texts["bottom_left"] == "failed  block_and_drawer 006  score 0.50  100 steps  step_limit"
    numbers = np.frombuffer(view.state, "<f8")
    model = view.load_model()
    told = live.arrays()
    np.testing.assert_array_equal(numbers[: model.nq], told[0])
    np.testing.assert_array_equal(watch.client.runtime.read_mocap_pose("cabinet_cabinet").pos, state[3][0, :3])
    worker.close()
    assert read_live(watch.folder) == []


def test_who_watches_chooses_the_worker_and_one_that_is_replaced_keeps_its_number(
    watch: RunWatch, panda_task: Task, actions: tuple[Action, ...], tmp_path: Path
):
    worker, _ = worked(panda_task, tmp_path, actions, watch.folder)
    (live,) = read_live(watch.folder)
    qpos = live.arrays()[0] + 0.01
    other = msgspec.structs.replace(live, pid=os.getppid(), seed=8, qpos=qpos.tobytes())
    watch.look()
    assert watch.client.viewport.read().choices == {}
    (watch.folder / f"{other.pid}.live").write_bytes(msgspec.msgpack.encode(other))
    watch.look()
    (choice,) = watch.client.viewport.read().choices.items()
    assert choice == ("Watch", ChoiceBlock(["worker 1", "worker 2"], "worker 1"))
    watch.client.debug.set_overlay_choice("Watch", chosen="worker 2")
    watch.look()
    view = watch.client.viewport.read()
    assert [line[:30] for line in view.texts["top_left"].splitlines()[1::2]] == [
        "  worker 1  block_and_drawer 0", "> worker 2  block_and_drawer 0"
    ]  # fmt: skip
    np.testing.assert_array_equal(np.frombuffer(view.state, "<f8")[: len(qpos)], qpos)
    (watch.folder / f"{other.pid}.live").unlink()
    with subprocess.Popen("cat", stdin=subprocess.PIPE) as process:
        replaced = msgspec.structs.replace(other, pid=process.pid)
        (watch.folder / f"{process.pid}.live").write_bytes(msgspec.msgpack.encode(replaced))
        watch.look()
        assert "> worker 2" in watch.client.viewport.read().texts["top_left"]
        worker.close()
        watch.look()
        assert watch.client.viewport.read().choices == {}
        assert "> block_and_drawer 008" in watch.client.viewport.read().texts["top_left"]


def test_an_episode_that_is_watched_comes_to_the_same_state(
    panda_task: Task, actions: tuple[Action, ...], tmp_path: Path
):
    folder = tmp_path / "live"
    folder.mkdir()
    for_itself, alone = worked(panda_task, tmp_path, actions, None)
    told, watched = worked(panda_task, tmp_path, actions, folder)
    assert read_live(folder)
    for one, other in zip(alone, watched, strict=True):
        np.testing.assert_array_equal(one, other)
    for_itself.close()
    told.close()


def test_the_first_task_is_one_that_was_asked_for():
    assert tasks_of(["franka_robotiq"])[0].embodiment == "franka_robotiq"
    assert tasks_of(["panda_cube_on_plate"])[0].name == "panda_cube_on_plate"
    assert len(tasks_of(["all"])) == len(tasks_of(["aloha"]))
