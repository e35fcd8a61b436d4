"""Tasks as ids of Gymnasium: ``gymnasium.make("urlab/PandaReach-v0")``, and ``make_vec`` for many in one process."""

import math
from typing import Any

import gymnasium

from urlab.envs.single_env import URLabEnv
from urlab.envs.task import TASKS, EnvTask
from urlab.envs.vector_env import URLabVectorEnv

_HERE = "urlab.envs.registration"


def register_tasks() -> None:
    """Give every declared task its id, ``urlab/`` and its name. Again after a task was declared elsewhere."""
    for name, task in TASKS.items():
        if f"urlab/{name}" not in gymnasium.registry:
            _register(name, task)


def _register(name: str, task: type[EnvTask]) -> None:
    gymnasium.register(
        f"urlab/{name}",
        entry_point=f"{_HERE}:make_single",
        vector_entry_point=f"{_HERE}:make_vector",
        max_episode_steps=task.max_episode_steps,
        kwargs={"task": name},
    )


def make_single(**options: Any) -> URLabEnv:
    """For `gymnasium.make`, whose own wrapper counts the steps of an episode."""
    return URLabEnv(**{"max_episode_steps": math.inf, **options})


def make_vector(num_envs: int, **options: Any) -> URLabVectorEnv:
    """For `gymnasium.make_vec` with ``vectorization_mode="vector_entry_point"``."""
    scene = options.pop("scene", None)
    return URLabVectorEnv(scene, num_envs, **options)
