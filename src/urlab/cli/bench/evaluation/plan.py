"""What is measured of policy evaluation, and how much of it."""

from dataclasses import dataclass, replace

from urlab.evaluation.embodiments import EMBODIMENTS

TASKS = {
    "franka_panda": "panda_cube_on_plate",
    "franka_robotiq": "robotiq_align_bar",
    "aloha": "aloha_lift_tray",
}
"""The task in which each robot's steps are measured."""

EVAL_SCENES = tuple(EMBODIMENTS)
"""A scene is a robot at its task."""

RUN_UP = 2
"""Calls at the begin of every turn that are not timed."""


@dataclass(frozen=True, slots=True)
class Block:
    """``samples`` calls after ``warm_up`` untimed ones, in turns of ``turn``."""

    samples: int
    warm_up: int
    turn: int


@dataclass(frozen=True, slots=True)
class EvalPlan:
    """Amounts. Every robot takes ``rounds`` blocks of ``steps`` without cameras and as many of ``frames`` with them.

    The whole evaluation runs ``episodes`` seeds of every task of these robots, or of ``most_tasks`` of them.
    """

    scenes: tuple[str, ...] = EVAL_SCENES
    rounds: int = 8
    steps: Block = Block(samples=200, warm_up=20, turn=20)
    frames: Block = Block(samples=20, warm_up=2, turn=5)
    episodes: int = 5
    most_tasks: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the whole evaluation is that of all tasks, so that its time can be judged."""
        return self.most_tasks is None and set(self.scenes) == set(EVAL_SCENES) and self.episodes >= FULL.episodes

    def block(self, *, cameras: bool) -> Block:
        """The amounts with or without cameras."""
        return self.frames if cameras else self.steps


FULL = EvalPlan()
QUICK = EvalPlan(
    rounds=1,
    steps=Block(samples=60, warm_up=10, turn=20),
    frames=Block(samples=6, warm_up=2, turn=3),
    episodes=1,
    most_tasks=2,
)


def make_eval_plan(*, quick: bool, scenes: tuple[str, ...], rounds: int | None) -> EvalPlan:
    """The plan for a command line; None keeps what full or quick says."""
    plan = replace(QUICK if quick else FULL, scenes=scenes)
    return replace(plan, rounds=rounds) if rounds is not None else plan
