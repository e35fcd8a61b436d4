"""What a policy is, and what can be wrong with one."""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment

Observation = dict[str, Any]
"""An observation of the protocol: its keys are in docs/evaluation.md; arrays are NumPy arrays that may be read-only."""

Action = dict[str, Any]
"""An action of the protocol: ``control_type``, ``action`` and, if wanted, ``is_rel``."""


class PolicyError(Exception):
    """A policy cannot go on; the message says why and what to do."""


class PolicyNotFound(PolicyError):
    """There is no such policy, or it cannot be made from these words: the caller has to name another."""


@runtime_checkable
class Policy(Protocol):
    """One policy drives one robot, episode after episode, on a thread of its own.

    A class may state ``needs_cameras`` and ``needs_privileged`` (bool); without them a policy gets pictures and nothing
    that a robot could not know. ``cameras`` says which pictures it looks at, as a list of names or with their sizes,
    ``{"obs_camera": (224, 224)}``, and ``depth = False`` that it needs colours only: `urlab eval run` draws no others.

    It may have ``reset(observation)``, called when a new episode begins with this observation, perhaps with another
    task and another robot; and ``close()``, called after the last episode.
    """

    def act(self, observation: Observation) -> Action | list[Action]:
        """The next action, or several to be carried out before the next observation."""


def optional_method(policy: Policy, name: str) -> Callable[..., object]:
    """The policy's ``reset`` or ``close``; one that does nothing if it has none."""
    method = getattr(policy, name, None)
    return method if callable(method) else lambda *_: None


def embodiment_of(observation: Observation) -> Embodiment:
    """The robot that an observation is about."""
    robot_id = observation.get("robot_id")
    for embodiment in EMBODIMENTS.values():
        if embodiment.robot_id == robot_id:
            return embodiment
    known = ", ".join(sorted(one.robot_id for one in EMBODIMENTS.values()))
    raise PolicyError(f"the observation is of the robot {robot_id!r}, which is not known here; known are: {known}")


def episode_of(observation: Observation) -> tuple[str, int]:
    """Task and seed of the episode, from ``episode_id``, which is benchmark/run/task/seed."""
    parts = str(observation.get("episode_id", "")).split("/")
    if len(parts) < 2 or not parts[-1].isdecimal():
        raise PolicyError(f"episode_id {observation.get('episode_id')!r} is not benchmark/run/task/seed")
    return parts[-2], int(parts[-1])
