"""What a run measures, and how much of it."""

from dataclasses import dataclass, replace

SCENES: dict[str, tuple[str, ...]] = {
    "arm": ("panda",),
    "quadruped": ("quadruped", "floor"),
    "demo": ("demo",),
}
"""Scene -> what `urlab serve` is told to open. The quadruped gets a floor: without one it would fall for ever."""

LEVELS: dict[str, tuple[str, ...]] = {"arm": ("standard", "minimal", "full")}
"""The observation levels to measure, where they are more than the standard one."""

STEP_COUNTS = (1, 10)


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of step request."""

    scene: str
    observations: str
    n_steps: int

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.scene} {self.observations} step({self.n_steps})"


@dataclass(frozen=True, slots=True)
class Plan:
    """Amounts. Every case takes ``rounds`` blocks of ``samples`` requests, each after ``warm_up`` untimed ones,
    in turns of ``turn`` with whatever they are compared with.

    ``soak_steps`` is the number of lockstep requests of the soak; ``live_s`` and ``idle_s`` are how long the server is
    watched in live mode, and in each of the two idle states. ``grids`` are numbers of robots to build scenes of.
    Every camera takes ``frame_rounds`` turns of ``frames`` pictures.
    """

    scenes: tuple[str, ...] = tuple(SCENES)
    rounds: int = 20
    samples: int = 300
    warm_up: int = 30
    turn: int = 100
    starts: int = 3
    live_s: float = 10.0
    idle_s: float = 3.0
    soak_steps: int = 200_000
    grids: tuple[int, ...] = (16, 128, 1024)
    frame_rounds: int = 8
    frames: int = 25

    def cases(self) -> list[Case]:
        """Every case of every scene."""
        return [
            Case(scene, level, count)
            for scene in self.scenes
            for level in LEVELS.get(scene, ("standard",))
            for count in STEP_COUNTS
        ]

    @property
    def main_scene(self) -> str:
        """The scene of everything that is measured on one scene only: the largest that was asked for."""
        return max(self.scenes, key=list(SCENES).index)


FULL = Plan()
QUICK = Plan(
    rounds=3,
    samples=60,
    warm_up=15,
    starts=1,
    live_s=2.0,
    idle_s=1.0,
    soak_steps=5_000,
    grids=(128, 1024),
    frame_rounds=2,
    frames=10,
)


def make_plan(*, quick: bool, scenes: tuple[str, ...], rounds: int | None, steps: int | None) -> Plan:
    """The plan for a command line; None keeps what full or quick says."""
    plan = replace(QUICK if quick else FULL, scenes=scenes)
    plan = replace(plan, rounds=rounds) if rounds is not None else plan
    return replace(plan, soak_steps=steps) if steps is not None else plan
