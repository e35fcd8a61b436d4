"""The policy: it carries out a task's script, one control step at a time, and holds still at the end."""

from collections.abc import Sequence
from pathlib import Path

from urlab.evaluation.policies.base import Action, Observation, PolicyError, embodiment_of
from urlab.evaluation.policies.oracle.hand import Motion
from urlab.evaluation.policies.oracle.skills import SKILLS
from urlab.evaluation.policies.oracle.world import OracleWorld
from urlab.evaluation.tasks.task import Task, TaskError, find_task, load_task


class OraclePolicy:
    """Drives any robot at any task whose file has ``[[oracle]]`` steps.

    Tasks that are not shipped are given by their files: ``OraclePolicy(task_files=["my_task.toml"])``.
    """

    needs_cameras = False
    needs_privileged = True

    def __init__(self, task_files: Sequence[str | Path] = ()) -> None:
        self._tasks = {task.name: task for task in map(load_task, task_files)}

    def reset(self, observation: Observation) -> None:
        """See which task it is, and begin its script."""
        task = self._task(observation)
        if not task.oracle:
            raise PolicyError(f"task {task.name} has no [[oracle]] steps, so there is nothing to carry out")
        self._world = OracleWorld(task, embodiment_of(observation), observation)
        self._script = _script(self._world, task)

    def act(self, observation: Observation) -> Action:
        """One control step of the script; once it is over, hold still."""
        self._world.see(observation)
        next(self._script, None)
        return self._world.action()

    def close(self) -> None:
        """Nothing to close."""

    def _task(self, observation: Observation) -> Task:
        privileged = observation.get("privileged")
        if privileged is None:
            raise PolicyError("the oracle needs privileged observations: start the server with --privileged")
        name = str(privileged["task"])
        try:
            return self._tasks.get(name) or find_task(name)
        except TaskError as unknown:
            raise PolicyError(f"{unknown}; the oracle takes files of yours as task_files") from unknown


def _script(world: OracleWorld, task: Task) -> Motion:
    for step in task.oracle:
        yield from SKILLS[type(step)](world, step)
