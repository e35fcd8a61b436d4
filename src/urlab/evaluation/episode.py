"""One attempt at a task: a layout, actions until the goal is reached or time is up, a result."""

from typing import Any

from urlab.evaluation.actions import Action
from urlab.evaluation.episode_result import STEP_LIMIT, SUCCESS, EpisodeResult
from urlab.evaluation.goals.scoring import GoalTracker, sample_layout
from urlab.evaluation.guard import StateGuard
from urlab.evaluation.observation import observe
from urlab.evaluation.simulation import Simulation
from urlab.evaluation.tasks.task import Task

Observation = dict[str, Any]


class Episode:
    """`reset` comes first; the simulation belongs to the episode until it is done. One thread.

    ``hold_steps`` is how long a subgoal must hold to count, ``num_steps`` the most control steps. The first observation
    has timestep 0 and ``reset`` True.
    """

    def __init__(
        self,
        task: Task,
        seed: int,
        simulation: Simulation,
        *,
        hold_steps: int,
        num_steps: int,
        episode_id: str = "",
        cameras: bool = False,
        privileged: bool = False,
    ) -> None:
        self.task, self.seed, self.simulation = task, seed, simulation
        self.hold_steps, self.episode_id = hold_steps, episode_id
        self.timestep = 0
        self._num_steps = num_steps
        self._cameras, self._privileged = cameras, privileged
        self._layout = sample_layout(task, seed)
        self._tracker = GoalTracker(task, hold_steps)
        self._guard = StateGuard(simulation.embodiment)
        self._reason: str | None = None

    @property
    def instruction(self) -> str:
        """What the robot is told to do."""
        return self._layout.instruction

    def reset(self) -> Observation:
        """Set the scene and look at it."""
        self.simulation.reset(self._layout)
        self._guard.reset(self.simulation.joints)
        self._tracker = GoalTracker(self.task, self.hold_steps)
        self.timestep, self._reason = 0, None
        return self.observe()

    def step(self, action: Action) -> Observation:
        """One control step, and what is seen after it."""
        self.advance(action)
        return self.observe()

    def advance(self, action: Action) -> None:
        """One control step without looking. Nothing may follow once the episode is done."""
        simulation = self.simulation
        simulation.step(action)
        self.timestep += 1
        self._reason = self._guard.check(simulation.joints, is_stable=simulation.is_stable)
        if self._reason is None:
            self._tracker.update(self.timestep, simulation.objects, simulation.object_joints)
            self._reason = self._ending()

    def observe(self) -> Observation:
        """The observation of now."""
        return observe(
            self.simulation,
            instruction=self.instruction,
            timestep=self.timestep,
            episode_id=self.episode_id,
            cameras=self._cameras,
            privileged=self._privileged,
        )

    @property
    def score(self) -> float:
        """The score so far, 0 to 1."""
        return self._tracker.score

    @property
    def done(self) -> bool:
        """True once there is a result."""
        return self._reason is not None

    @property
    def result(self) -> EpisodeResult | None:
        """How it ended; None while it goes on. An invalid state scores nothing."""
        if self._reason is None:
            return None
        is_valid = self._reason in (SUCCESS, STEP_LIMIT)
        return EpisodeResult(
            score=self._tracker.score if is_valid else 0.0,
            success=self._reason == SUCCESS,
            nested=self._tracker.nested,
            termination_reason=self._reason,
            steps=self.timestep,
        )

    def _ending(self) -> str | None:
        if self._tracker.is_success:
            return SUCCESS
        return STEP_LIMIT if self.timestep >= self._num_steps else None
