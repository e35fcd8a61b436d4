"""One policy at one worker: episode after episode until nothing is left."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from urlab.evaluation.policies import Action, Observation, Policy, PolicyError
from urlab.evaluation.policies.registry import in_a_line

Reply = dict[str, Any]


@dataclass(frozen=True)
class EpisodeDone:
    """An episode has ended. ``seed`` is as the server spells it."""

    task: str
    seed: str
    score: float
    success: bool
    steps: int | None
    reason: str | None


class WorkerLink(Protocol):
    """The worker, seen through HTTP: every call gives its reply of ``obs``, ``metric`` and ``episode_result``."""

    def reset(self) -> Reply:
        """Begin the next episode."""

    def act(self, actions: list[Action]) -> Reply:
        """Carry out actions, up to the end of the episode."""


class Driver:
    """Runs on a thread of its own until the job is done or ``stop`` is set. ``tell`` hears of every episode."""

    def __init__(
        self, link: WorkerLink, policy: Policy, stop: threading.Event, tell: Callable[[EpisodeDone], None]
    ) -> None:
        self._link, self._policy, self._stop, self._tell = link, policy, stop, tell

    def drive(self) -> None:
        """PolicyError when the policy fails; what the link raises is passed on."""
        observation: Observation | None = self._link.reset()["obs"]
        while observation is not None and not self._stop.is_set():
            if observation["reset"]:
                self._asked(self._policy.reset, observation)
            reply = self._link.act(self._actions(observation))
            if reply.get("episode_result"):
                self._tell(episode_done(reply["episode_result"]))
            observation = reply["obs"]

    def _actions(self, observation: Observation) -> list[Action]:
        made: object = self._asked(self._policy.act, observation)
        actions: list[Any] = made if isinstance(made, list) else [made]
        if actions and all(isinstance(one, dict) for one in actions):
            return actions
        raise PolicyError(
            f"the policy's act() returned {_kind(made)} {_where(observation)}; an action is a dict such as "
            "{'control_type': 'joint_position', 'action': [...]}, a chunk is a list of them"
        )

    def _asked(self, method: Callable[[Observation], object], observation: Observation) -> object:
        try:
            return method(observation)
        except PolicyError:
            raise
        except (Exception, SystemExit) as failed:
            name = getattr(method, "__name__", "call")
            raise PolicyError(f"the policy's {name}() failed {_where(observation)}: {in_a_line(failed)}") from failed


def episode_done(result: dict[str, Any]) -> EpisodeDone:
    """From the ``episode_result`` of a reply; older servers say less."""
    steps = result.get("steps")
    return EpisodeDone(
        task=str(result["task_name"]),
        seed=str(result["seed"]),
        score=float(result["score"]),
        success=float(result["sr"]) > 0.5,
        steps=None if steps is None else int(steps),
        reason=result.get("termination_reason"),
    )


def _where(observation: Observation) -> str:
    return f"at step {observation.get('timestep')} of {observation.get('episode_id')}"


def _kind(made: object) -> str:
    if isinstance(made, list):
        return f"a list of {type(made[0]).__name__}" if made else "an empty list"
    return "nothing" if made is None else f"a {type(made).__name__}"
