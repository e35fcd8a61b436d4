"""Short turns: whatever is to be compared is measured in turns of a few calls, so that it meets the same machine."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from urlab.cli.bench.timing import repeat, time_calls


class Amounts(Protocol):
    """How much is measured: blocks of ``samples`` calls after ``warm_up`` untimed ones, in turns of ``turn``."""

    @property
    def samples(self) -> int: ...
    @property
    def warm_up(self) -> int: ...
    @property
    def turn(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Way:
    """One thing to take the time of, from a start; ``before`` precedes every call and is not timed.

    ``far_cpu_s`` tells the CPU seconds of the process at the far end, where there is one.
    """

    name: str
    reset: Callable[[], object]
    call: Callable[[], object]
    before: Callable[[], object] | None = None
    far_cpu_s: Callable[[], float] | None = None


@dataclass(slots=True)
class Taken:
    """What some calls took: nanoseconds of each; seconds of all, of this process's CPU and of the far end's."""

    durations_ns: list[int] = field(default_factory=list)
    wall_s: float = 0.0
    own_cpu_s: float = 0.0
    far_cpu_s: float = 0.0

    def add(self, other: "Taken") -> None:
        """Count those as well."""
        self.durations_ns += other.durations_ns
        self.wall_s += other.wall_s
        self.own_cpu_s += other.own_cpu_s
        self.far_cpu_s += other.far_cpu_s


def in_turns(amounts: Amounts, ways: Sequence[Way], *, run_up: int = 0) -> dict[str, Taken]:
    """A block of each way, by name. ``run_up`` calls at the begin of every turn are not timed."""
    for way in ways:
        way.reset()
        repeat(way.call, amounts.warm_up)
    taken = {way.name: Taken() for way in ways}
    for begin in range(0, amounts.samples, amounts.turn):
        for way in ways:
            repeat(way.call, run_up)
            taken[way.name].add(_take_turn(way, min(amounts.turn, amounts.samples - begin)))
    return taken


def calls_per_block(amounts: Amounts, run_up: int = 0) -> int:
    """How often `in_turns` calls each way, untimed calls included."""
    turns = -(-amounts.samples // amounts.turn)
    return amounts.warm_up + turns * run_up + amounts.samples


def _take_turn(way: Way, count: int) -> Taken:
    far = way.far_cpu_s or _nobody
    far_s, own_s, wall_s = far(), time.process_time(), time.perf_counter()
    durations_ns = time_calls(way.call, count, before=way.before)
    return Taken(durations_ns, time.perf_counter() - wall_s, time.process_time() - own_s, far() - far_s)


def _nobody() -> float:
    return 0.0
