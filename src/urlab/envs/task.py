"""What a task is: a scene, where episodes begin, what is observed, and what counts.

A task is written once, over arrays with a row per simulation. `URLabEnv` uses it with one row, `URLabVectorEnv` with
many, and both give the same numbers to the last bit. It keeps nothing between steps: a goal is part of the state (the
place of a marker, say). A task registers by being declared, in a module of ``tasks/``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from urlab.envs.scene_states import Array, SceneLayout, States, joined

LEVELS = Path(__file__).resolve().parent / "levels"

TASKS: dict[str, type["EnvTask"]] = {}
"""Every declared task by its name, such as ``PandaReach-v0``."""

BOUND = 1e10
"""The bounds of what is observed: MuJoCo resets a simulation whose state goes beyond."""


class Outcome(NamedTuple):
    """What a step of n simulations led to, (n,) each; ``success`` is None in a task that has no such thing."""

    reward: Array
    terminated: NDArray[np.bool_]
    success: NDArray[np.bool_] | None = None


class EnvTask(ABC):
    """One task on one scene. All arrays have a row per simulation."""

    scene: ClassVar[str | Path]
    n_steps: ClassVar[int] = 1
    max_episode_steps: ClassVar[int | None] = None

    def __init_subclass__(cls, *, name: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if name is None:
            return
        if name in TASKS:
            raise TypeError(f"the task {name!r} is already {TASKS[name].__qualname__}")
        TASKS[name] = cls

    @abstractmethod
    def __init__(self, layout: SceneLayout) -> None:
        """Find what the task needs in the scene; KeyError where it is not there."""

    @abstractmethod
    def observe(self, states: States) -> dict[str, Array]:
        """The parts of the observation by name, (n, width) each, as copies."""

    @abstractmethod
    def place(self, states: States, rows: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        """Begin episodes: change ``qpos``, ``qvel`` and mocap poses of some rows, each by its own generator.

        The rows are at the scene's start. A row's draws must not depend on the other rows.
        """

    @abstractmethod
    def judge(self, states: States, setpoints: Array) -> Outcome:
        """Reward and end of the step that led here with these ``setpoints``, (n, number of setpoints)."""


class PlainTask(EnvTask):
    """No task at all: the observation is qpos, qvel and sensors of each robot, and nothing is rewarded or ends."""

    def __init__(self, layout: SceneLayout) -> None:
        empty = np.zeros(layout.model.nsensordata)
        self._robots = [(one, empty[one.sensors].size > 0) for one in layout.robots]
        self._seen: States | None = None
        self._views: dict[str, list[Array]] = {}

    def observe(self, states: States) -> dict[str, Array]:
        """By robot: qpos, qvel, sensors."""
        if states is not self._seen:
            self._views, self._seen = self._views_of(states)
        return {name: joined(fields) for name, fields in self._views.items()}

    def _views_of(self, states: States) -> tuple[dict[str, list[Array]], States | None]:
        """What is observed of each robot, and the states for which that holds: all of it must be views to be kept."""
        found, places = {}, []
        for one, has_sensors in self._robots:
            fields = [(states.qpos, one.qpos), (states.qvel, one.qvel)]
            fields += [(states.sensordata, one.sensors)] if has_sensors else []
            found[one.prefix] = [array[:, at] for array, at in fields]
            places += [at for _, at in fields]
        return found, states if all(isinstance(at, slice) for at in places) else None

    def place(self, states: States, rows: Sequence[int], rngs: Sequence[np.random.Generator]) -> None:
        """Every episode begins at the scene's start."""

    def judge(self, states: States, setpoints: Array) -> Outcome:  # noqa: ARG002
        """Reward 0, and no end."""
        count = len(states.time)
        return Outcome(np.zeros(count), np.zeros(count, dtype=np.bool_))


def find_task(name: str) -> type[EnvTask]:
    """The task of that name, with or without ``urlab/``; ValueError lists those that exist."""
    found = TASKS.get(name.removeprefix("urlab/"))
    if found is None:
        raise ValueError(f"there is no task {name!r}; there are: {', '.join(sorted(TASKS))}")
    return found


def widths(task: EnvTask, layout: SceneLayout) -> Mapping[str, int]:
    """The width of each part of a task's observation."""
    model = layout.model
    empty = States(*(np.zeros((1, *shape)) for shape in (
        (), (model.nq,), (model.nv,), (model.nsensordata,), (model.nmocap, 3), (model.nmocap, 4),
    )))  # fmt: skip
    return {name: part.shape[1] for name, part in task.observe(empty).items()}
