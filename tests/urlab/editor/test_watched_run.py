"""A watched evaluation on its page, in a real browser."""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.tasks.task import find_task
from urlab.evaluation.watching import RunWatch
from urlab.evaluation.workers.live import read_live
from urlab.evaluation.workers.messages import Begin, WorkerFrame, WorkerSettings
from urlab.evaluation.workers.worker import Worker

pytestmark = pytest.mark.page

TASK = "panda_cube_on_plate"


@pytest.fixture
def watch() -> Iterator[RunWatch]:
    """The page of a run."""
    with RunWatch([find_task(TASK)]) as opened:
        yield opened


def test_the_page_of_a_run_shows_its_episode_and_its_goal_and_lets_a_worker_be_chosen(
    watch: RunWatch, open_page: Callable[..., Any], tmp_path: Path
):
    worker = Worker(WorkerSettings(False, False, False, live_folder=str(watch.folder)))
    begin = Begin(3, 50, f"urlab/run/{TASK}/003", str(tmp_path), BodyFormat.MSGPACK)
    worker.answer(WorkerFrame(begin, pickle.dumps(find_task(TASK))))
    watch.begin("run-1", total=5, completed=2, solved=1)
    page = open_page(size=(600, 420), url=watch.url)
    page.until(lambda: page.says("run run-1: 2 of 5 episodes, 1 solved"))
    assert page.says(f"> {TASK} 003  franka_panda  step 0/")
    page.until(lambda: page.tab.pixels()[:, :300].std() > 10)
    (live,) = read_live(watch.folder)
    other = msgspec.structs.replace(live, pid=os.getppid(), seed=4)
    (watch.folder / f"{other.pid}.live").write_bytes(msgspec.msgpack.encode(other))
    page.until(lambda: page.says(f"> worker 1  {TASK} 003"))
    page.choose("Watch", "worker 2")
    page.until(lambda: page.says(f"> worker 2  {TASK} 004"))
    worker.close()
    page.until(lambda: not page.says(f"{TASK} 003"))
    page.until(lambda: not page.says("Watch"))
