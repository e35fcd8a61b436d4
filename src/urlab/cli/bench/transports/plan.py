"""What a comparison of the transports measures, and how much of it."""

from dataclasses import dataclass, replace
from pathlib import Path

from urlab.cli.bench.plan import SCENES, STEP_COUNTS, Case
from urlab.cli.bench.transports.hundred import write_hundred

TRANSPORTS = {
    "inprocess": "in process",
    "shm": "shared memory",
    "ipc": "ZMQ ipc",
    "tcp": "ZMQ tcp",
}
"""Every way that a client reaches a server, and what people call it."""

ECHOES = ("shm", "ipc", "tcp")
"""The transports that lead to another process, and so have a bare echo beside them."""

SCENE_NAMES = ("arm", "quadruped", "hundred")
LEVELS = ("minimal", "standard", "full")


def scene_targets(scene: str, folder: Path) -> tuple[str, ...]:
    """What `urlab serve` is told to open; ``folder`` is for a model that is not shipped."""
    return (str(write_hundred(folder)),) if scene == "hundred" else SCENES[scene]


@dataclass(frozen=True, slots=True)
class TransportsPlan:
    """Amounts. Every case takes ``rounds`` blocks of ``samples`` calls of each way, after ``warm_up`` untimed ones, in
    turns of ``turn``, each after ``run_up`` untimed ones: the first call after a pause is another story.

    ``idle_s`` is how long each of the two idle states is watched, ``soak_steps`` the number of steps of the soak.
    """

    scenes: tuple[str, ...] = SCENE_NAMES
    rounds: int = 12
    samples: int = 400
    warm_up: int = 20
    turn: int = 100
    run_up: int = 5
    idle_s: float = 5.0
    soak_steps: int = 1_000_000

    def cases(self) -> list[Case]:
        """Every scene at every level, one step and ten."""
        return [Case(scene, level, count) for scene in self.scenes for level in LEVELS for count in STEP_COUNTS]

    @property
    def main_scene(self) -> str:
        """The scene of the idle watch and of the soak: the first that was asked for."""
        return self.scenes[0]


FULL = TransportsPlan()
QUICK = TransportsPlan(rounds=3, samples=100, warm_up=10, idle_s=3.0, soak_steps=5_000)


def make_transports_plan(
    *, quick: bool, scenes: tuple[str, ...], rounds: int | None, steps: int | None
) -> TransportsPlan:
    """The plan for a command line; None keeps what full or quick says."""
    plan = replace(QUICK if quick else FULL, scenes=scenes)
    plan = replace(plan, rounds=rounds) if rounds is not None else plan
    return replace(plan, soak_steps=steps) if steps is not None else plan
