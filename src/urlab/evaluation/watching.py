"""A run on the page of the browser editor: the world of an episode that is simulated, and how all of them stand.

The page belongs to a server in this process, which simulates nothing: it has the scene of the task as its level, and is
shown the states that a worker tells of its own (puppet mode). What is written over the picture are overlay texts, and
which worker is shown is an overlay choice, as any client can set them. The workers never wait for it, and it tells them
nothing.
"""

import contextlib
import logging
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from urlab.app import launch, open_project
from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.episode_result import EpisodeResult, seed_text
from urlab.evaluation.goals import sample_layout
from urlab.evaluation.simulation.scene import task_level
from urlab.evaluation.tasks.objects import TABLE_POSE_W
from urlab.evaluation.tasks.task import Task, find_task, own_tasks, task_names
from urlab.evaluation.workers.live import LiveEpisode, read_live
from urlab.files import owned_name
from urlab_client import URLabClient
from urlab_wire.enums import StepMode

log = logging.getLogger("urlab.evaluation")

WORK = "watch-"
"""What the name of its temporary folder has behind its process."""

_PERIOD_S = 1 / 30
_CHOICE = "Watch"
_FIRST_VIEW: Mapping[str, Any] = {"rotation_euler": (0.0, 20.0, 203.0), "fov": 65.0}
_AWAY_M = (1.4, 1.0, 0.9)
_MOST_RUNNING, _MOST_RESULTS = 8, 8
_FAILURES = (RuntimeError, LookupError, ValueError, OSError)


def tasks_of(words: Sequence[str]) -> list[Task]:
    """The tasks that words of `--tasks` can mean, those first that they name: names, files, robots, ``all``."""
    own = own_tasks(word for word in words if word.endswith(".toml"))
    tasks = [*own, *map(find_task, task_names())]
    return sorted(tasks, key=lambda one: one not in own and one.name not in words and one.embodiment not in words)


class RunWatch:
    """Shows a run; it is the run's observer as well. Leaving the context ends the page.

    ``tasks`` are those that may come, the first is shown until an episode begins. ``folder`` is where the workers of
    the run tell what they simulate; ``url`` is the page. ``begin`` and ``episode`` may be called on any thread,
    ``look`` on one at a time.
    """

    def __init__(self, tasks: Sequence[Task], *, web: bool = True) -> None:
        self._tasks = {task.name: task for task in tasks}
        self._task = tasks[0].name
        with contextlib.ExitStack() as opened:
            root = Path(opened.enter_context(_temporary_folder()))
            self.folder = root / "live"
            self.folder.mkdir()
            self._models, self._project = root / "models", open_project(root / "project")
            self._save_level(self._task)
            self.client: URLabClient = opened.enter_context(
                launch(self._task, step_mode=StepMode.PUPPET, project=self._project.folder, web=web)
            )
            x, y, z = _AWAY_M
            self.client.viewport.set_camera((x, y, TABLE_POSE_W.pos[2] + z), **_FIRST_VIEW)
            self.url = self.client.viewport.editor_url() if web else None
            self._opened = opened.pop_all()
        self._fixed: bytes | None = None
        """Where what stands still was put last."""
        self._shown: LiveEpisode | None = None
        self._workers: list[int | None] = []
        """The process of each worker, in the order of their numbers; None where one has gone."""
        self._lock = threading.Lock()
        self._heading = "the run starts"
        self._total = self._done = self._solved = 0
        self._results: deque[EpisodeResult] = deque(maxlen=_MOST_RESULTS)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="urlab-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_closed.set()
        self._thread.join(10.0)
        self.close()

    def close(self) -> None:
        """End the page, and remove what was written for it."""
        self._opened.close()

    # -- what the run tells -----------------------------------------------------------------------------------------

    def begin(self, run_id: str, total: int, completed: int, solved: int) -> None:
        """The run starts."""
        with self._lock:
            self._heading, self._total, self._done, self._solved = f"run {run_id}", total, completed, solved

    def episode(self, result: EpisodeResult) -> None:
        """An episode has ended."""
        with self._lock:
            self._done += 1
            self._solved += result.success
            self._results.appendleft(result)

    # -- what is shown ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Show what the workers tell now."""
        live = self._named(read_live(self.folder))
        names = list(live)
        chosen = self.client.debug.set_overlay_choice(_CHOICE, names if len(names) > 1 else [])
        if chosen is None and names:
            chosen = names[0]
        if chosen is not None and live[chosen] != self._shown:
            self._show(live[chosen])
            self._shown = live[chosen]
        top, bottom = self._texts(live, chosen)
        self.client.debug.set_overlay_text(top, anchor="top_left")
        self.client.debug.set_overlay_text(bottom, anchor="bottom_left")

    def _named(self, live: Sequence[LiveEpisode]) -> dict[str, LiveEpisode]:
        """What the workers simulate by their names; one that takes the place of another gets its number."""
        by_pid = {one.pid: one for one in live}
        new = iter([pid for pid in by_pid if pid not in self._workers])
        self._workers = [pid if pid in by_pid else next(new, None) for pid in self._workers]
        self._workers += new
        return {f"worker {number}": by_pid[pid] for number, pid in enumerate(self._workers, 1) if pid is not None}

    def _show(self, episode: LiveEpisode) -> None:
        client = self.client
        if episode.task != self._task:
            self._save_level(episode.task)
            client.sim.start(episode.task, step_mode=StepMode.PUPPET)
            self._task, self._fixed = episode.task, None
        model, data = client.model, client.data
        qpos, qvel, ctrl, fixed = episode.arrays()
        if episode.fixed != self._fixed:
            for body, mocap in enumerate(model.body_mocapid.tolist()):
                if mocap >= 0:
                    pose = fixed[mocap].tolist()
                    client.runtime.set_mocap_pose(model.body(body).name, pos=pose[:3], quat=pose[3:])
            self._fixed = episode.fixed
        data.qpos[:], data.qvel[:], data.ctrl[:], data.time = qpos, qvel, ctrl, episode.time_s
        client.step(0, observations="minimal")

    def _save_level(self, name: str) -> None:
        """The level of a task, with its objects where the first seed puts them."""
        if self._project.has_level(name):
            return
        task = self._tasks[name]
        folder = self._models / name
        folder.mkdir(parents=True)
        level, poses = task_level(task, EMBODIMENTS[task.embodiment], folder), sample_layout(task, 0).poses
        actors = tuple(replace(one, pose=poses.get(one.name, one.pose)) for one in level.actors)
        self._project.save_level(replace(level, actors=actors))

    def _texts(self, live: Mapping[str, LiveEpisode], shown: str | None) -> tuple[str, str]:
        """The episodes that run, that which is shown among them, and the results, the newest first."""
        with self._lock:
            top = [f"{self._heading}: {self._done} of {self._total} episodes, {self._solved} solved"]
            bottom = [_result_line(one) for one in self._results]
        listed = list(live)[:_MOST_RUNNING]
        if shown is not None and shown not in listed:
            listed[-1] = shown
        for name in listed:
            top += _episode_lines(live[name], f"{name}  " if len(live) > 1 else "", is_shown=name == shown)
        if len(live) > _MOST_RUNNING:
            top.append(f"and {len(live) - _MOST_RUNNING} more")
        return "\n".join(top), "\n".join(bottom)

    def _run(self) -> None:
        while not self._is_closed.wait(_PERIOD_S):
            try:
                self.look()
            except _FAILURES as failed:
                self._again(failed)

    def _again(self, failed: Exception) -> None:
        """A page may have stopped the level, or opened another: the task's own comes back with the next state."""
        log.debug("the page shows nothing new: %s", failed)
        self._task, self._shown = "", None
        self._is_closed.wait(0.5)


def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix=f"{owned_name()}{WORK}", ignore_cleanup_errors=True)


def _episode_lines(episode: LiveEpisode, worker: str, *, is_shown: bool) -> list[str]:
    mark, state = ">" if is_shown else " ", "  done" if episode.is_done else ""
    where = f"{episode.task} {seed_text(episode.seed)}  {episode.robot}"
    how = f"step {episode.step}/{episode.num_steps}  score {episode.score:.2f}{state}"
    return [f"{mark} {worker}{where}  {how}", f"    {episode.instruction}"]


def _result_line(result: EpisodeResult) -> str:
    steps = "" if result.steps is None else f"  {result.steps} steps"
    reason = "" if result.success or result.reason is None else f"  {result.reason}"
    word = "solved" if result.success else "failed"
    return f"{word}  {result.task} {result.seed}  score {result.score:.2f}{steps}{reason}"
