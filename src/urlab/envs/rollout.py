"""Rollouts: a policy acts for many episodes of a task, here or on the actors of a Ray cluster, with the same result.

What happens in an episode depends on its seed alone, and its seed on the job's and the episode's number. So it does not
matter how many actors there are, which of them runs it, or how often it has to begin again.
"""

import hashlib
import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np

from urlab import ray_actors
from urlab.envs.baselines import make_baseline
from urlab.envs.single_env import URLabEnv
from urlab.envs.task import TASKS

MakePolicy = Callable[[URLabEnv], "RolloutPolicy"]
"""Called once per environment."""


class RolloutPolicy(Protocol):
    """Acts in one environment."""

    def reset(self, seed: int) -> None:
        """An episode begins. A policy that draws numbers draws them from this seed."""

    def act(self, observation: Any) -> Any:
        """The action for an observation."""


@dataclass(frozen=True, slots=True)
class RolloutJob:
    """``episodes`` episodes of a task, with seeds that follow from ``seed``; ``options`` are those of `URLabEnv`."""

    task: str
    make_policy: MakePolicy
    episodes: int
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()

    def episode_seed(self, episode: int) -> int:
        """The seed of an episode."""
        return int(np.random.SeedSequence([self.seed, episode]).generate_state(1, np.uint32)[0])


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """What came of an episode. ``success`` is None in a task that has no such thing.

    ``digest`` is that of all observations, actions and rewards: two episodes with the same one are the same to the last
    bit.
    """

    episode: int
    seed: int
    steps: int
    reward_sum: float
    success: bool | None
    terminated: bool
    digest: str

    def as_dict(self) -> dict[str, Any]:
        """As it is written to a file."""
        return asdict(self)


class RolloutWorker:
    """An environment and a policy; runs episodes of a job by their numbers. One thread."""

    def __init__(self, job: RolloutJob) -> None:
        importlib.import_module("urlab.envs.tasks")
        if job.task not in TASKS:
            raise ValueError(f"there is no task {job.task!r}; there are: {', '.join(sorted(TASKS))}")
        self._job = job
        self._env = URLabEnv(task=job.task, **dict(job.options))
        self._policy = job.make_policy(self._env)

    def run(self, episode: int) -> EpisodeRow:
        """One episode, from its seed to its end."""
        seed = self._job.episode_seed(episode)
        observation, info = self._env.reset(seed=seed)
        self._policy.reset(seed)
        digest = hashlib.sha256(_bytes_of(observation))
        steps, rewards, ended, terminated = 0, [], False, False
        while not ended:
            action = self._policy.act(observation)
            observation, reward, terminated, truncated, info = self._env.step(action)
            digest.update(_bytes_of(action) + _bytes_of(observation) + np.float64(reward).tobytes())
            rewards.append(float(reward))
            steps, ended = steps + 1, terminated or truncated
        success = info.get("is_success")
        return EpisodeRow(episode, seed, steps, math.fsum(rewards), success, terminated, digest.hexdigest())

    def close(self) -> None:
        """End the simulation."""
        self._env.close()


def roll_out(job: RolloutJob, *, actors: int | None = None) -> Iterator[EpisodeRow]:
    """The rows of a job as its episodes end: in this process, or with ``actors`` on the cluster that is connected.

    Sorted by their ``episode`` they are the same, however many actors there are.
    """
    if actors is not None:
        for _, row in ray_actors.run_on_actors(lambda: RolloutWorker(job), range(job.episodes), actors):
            yield row
        return
    worker = RolloutWorker(job)
    try:
        for episode in range(job.episodes):
            yield worker.run(episode)
    finally:
        worker.close()


class _ScriptedPolicy:
    """The task's baseline, which draws nothing."""

    def __init__(self, env: URLabEnv) -> None:
        task = next(name for name, kind in TASKS.items() if isinstance(env.task, kind))
        self._baseline = make_baseline(task, env.interface)

    def reset(self, seed: int) -> None:  # noqa: ARG002 - it draws nothing
        self._baseline.reset()

    def act(self, observation: Any) -> Any:
        return self._baseline.act(observation)


class _RandomPolicy:
    def __init__(self, env: URLabEnv) -> None:
        self._space: gymnasium.Space[Any] = env.action_space

    def reset(self, seed: int) -> None:
        self._space.seed(seed)

    def act(self, observation: Any) -> Any:  # noqa: ARG002 - it looks at nothing
        return self._space.sample()


POLICIES: dict[str, MakePolicy] = {"baseline": _ScriptedPolicy, "random": _RandomPolicy}
"""Those that need no code of a user's."""


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"".join(_bytes_of(value[name]) for name in sorted(value))
    return np.ascontiguousarray(value).tobytes()
