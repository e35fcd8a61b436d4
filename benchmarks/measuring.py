"""How things are measured: subjects that take short turns in many rounds, percentiles of samples, and bars to pass.

A machine is not the same from one second to the next. So whatever is to be compared is measured in one run, in turns of
a few calls, over many rounds.
"""

import contextlib
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter_ns

import msgspec
import numpy as np

Tick = Callable[[str], None]
"""Is told what is measured next, between measurements."""

_NS_PER_S = 1e9


class BenchmarkError(Exception):
    """A benchmark cannot go on; the message says why."""


# -- how much is measured -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """A block: ``samples`` timed calls after ``warm_up`` untimed ones, in turns of ``turn``, each of them after
    ``run_up`` untimed ones: the first call after a pause is another story."""

    samples: int
    warm_up: int
    turn: int
    run_up: int = 0

    @property
    def calls(self) -> int:
        """How often a block calls its subject, untimed calls included."""
        turns = -(-self.samples // self.turn)
        return self.warm_up + turns * self.run_up + self.samples


@dataclass(frozen=True, slots=True)
class Plan:
    """What one benchmark measures, and how much of it.

    Each case takes ``rounds`` blocks of ``counts``. ``watch_s`` is how long something is watched that runs by itself,
    ``soak_steps`` the number of lockstep requests of a soak; both are 0 in benchmarks without such a part.
    """

    scenes: tuple[str, ...]
    rounds: int
    counts: SampleCounts
    watch_s: float = 0.0
    soak_steps: int = 0
    quick: bool = False

    def changed(self, scenes: Sequence[str] | None, rounds: int | None, steps: int | None) -> "Plan":
        """This plan with what a command line asked for; None keeps what is there. BenchmarkError when it cannot be."""
        unknown = [name for name in scenes or () if name not in self.scenes]
        if unknown:
            raise BenchmarkError(f"there is no scene {', '.join(unknown)}; there are: {', '.join(self.scenes)}")
        if steps is not None and not self.soak_steps:
            raise BenchmarkError("--steps is the length of a soak, and this benchmark has none")
        plan = replace(self, scenes=tuple(scenes)) if scenes else self
        plan = replace(plan, rounds=rounds) if rounds else plan
        return replace(plan, soak_steps=steps) if steps else plan


# -- samples ------------------------------------------------------------------------------------------------------


class Timing(msgspec.Struct, kw_only=True):
    """Many durations of one thing, in microseconds; ``rate_hz`` is how often it could be done in a row."""

    count: int
    p50_us: float
    p99_us: float
    p999_us: float
    max_us: float
    rate_hz: float

    @property
    def pair(self) -> str:
        """p50 / p99 in microseconds, for a table."""
        return f"{self.p50_us:.0f} / {self.p99_us:.0f}"

    @property
    def pair_ms(self) -> str:
        """The same in milliseconds."""
        return f"{self.p50_us / 1e3:.2f} / {self.p99_us / 1e3:.2f}"


def summarize(durations_ns: Sequence[int]) -> Timing:
    """Percentiles, interpolated linearly between samples."""
    values = np.asarray(durations_ns, dtype=np.float64) / 1e3
    p50, p99, p999 = np.percentile(values, [50, 99, 99.9]).tolist()
    return Timing(
        count=len(values),
        p50_us=p50,
        p99_us=p99,
        p999_us=p999,
        max_us=float(values.max()),
        rate_hz=len(values) * _NS_PER_S / float(np.sum(durations_ns)),
    )


def time_calls(call: Callable[[], object], count: int, before: Callable[[], object] | None = None) -> list[int]:
    """Nanoseconds of each of ``count`` calls; ``before`` is called before each, outside the time taken."""
    durations = []
    for _ in range(count):
        if before is not None:
            before()
        begin = perf_counter_ns()
        call()
        durations.append(perf_counter_ns() - begin)
    return durations


def repeat(call: Callable[[], object], count: int) -> None:
    """Call it ``count`` times, without a clock."""
    for _ in range(count):
        call()


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing to take the time of. ``reset`` precedes a block, ``before`` every call; neither is timed.

    ``server_cpu_s`` tells the CPU seconds of the process at the other end, where there is one.
    """

    name: str
    call: Callable[[], object]
    reset: Callable[[], object] | None = None
    before: Callable[[], object] | None = None
    server_cpu_s: Callable[[], float] | None = None


@dataclass(slots=True)
class Samples:
    """What some calls took: nanoseconds of each; seconds of all, of this process's CPU and of the server's."""

    durations_ns: list[int] = field(default_factory=list)
    wall_s: float = 0.0
    client_cpu_s: float = 0.0
    server_cpu_s: float = 0.0

    def add(self, other: "Samples") -> None:
        """Count those as well."""
        self.durations_ns += other.durations_ns
        self.wall_s += other.wall_s
        self.client_cpu_s += other.client_cpu_s
        self.server_cpu_s += other.server_cpu_s

    @property
    def timing(self) -> Timing:
        """Their percentiles."""
        return summarize(self.durations_ns)


def alternate(counts: SampleCounts, subjects: Sequence[Subject]) -> dict[str, Samples]:
    """A block of each subject, by name; the subjects take turns."""
    for one in subjects:
        if one.reset is not None:
            one.reset()
        repeat(one.call, counts.warm_up)
    blocks = {one.name: Samples() for one in subjects}
    for begin in range(0, counts.samples, counts.turn):
        for one in subjects:
            repeat(one.call, counts.run_up)
            blocks[one.name].add(_take_turn(one, min(counts.turn, counts.samples - begin)))
    return blocks


def _take_turn(subject: Subject, count: int) -> Samples:
    server = subject.server_cpu_s or (lambda: 0.0)
    server_s, client_s, wall_s = server(), time.process_time(), time.perf_counter()
    durations_ns = time_calls(subject.call, count, subject.before)
    return Samples(durations_ns, time.perf_counter() - wall_s, time.process_time() - client_s, server() - server_s)


class Rounds:
    """The blocks of all rounds, by subject."""

    def __init__(self) -> None:
        self._blocks: dict[str, list[Samples]] = defaultdict(list)

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    def measure(self, counts: SampleCounts, subjects: Sequence[Subject], prefix: str = "") -> None:
        """One more round of these subjects, whose names get that prefix."""
        for name, block in alternate(counts, subjects).items():
            self._blocks[prefix + name].append(block)

    def samples(self, name: str, rounds: Sequence[int] | None = None) -> Samples:
        """All samples of a subject, or those of some rounds."""
        total = Samples()
        for number, block in enumerate(self._blocks[name]):
            if rounds is None or number in rounds:
                total.add(block)
        return total

    def timing(self, name: str, rounds: Sequence[int] | None = None) -> Timing:
        """Their percentiles."""
        return self.samples(name, rounds).timing

    @property
    def p50_us(self) -> dict[str, list[float]]:
        """The median of each round alone: how far they lie apart tells how steady the machine was."""
        return {name: [block.timing.p50_us for block in blocks] for name, blocks in self._blocks.items()}


# -- bars ---------------------------------------------------------------------------------------------------------


class Bar(msgspec.Struct, kw_only=True):
    """Something that must hold: ``limit`` in words, the value found, and whether it passes."""

    name: str
    limit: str
    value: float
    shown: str
    passed: bool


def bar(
    name: str,
    value: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    unit: str = "",
    digits: int = 2,
    note: str = "",
    valid: bool = True,
) -> Bar:
    """A bar with one limit, or two. ``note`` stands beside the value; what is not ``valid`` does not pass."""
    limits = [f"<= {at_most:g}{unit}"] if at_most is not None else []
    limits += [f">= {at_least:g}{unit}"] if at_least is not None else []
    above = at_least is None or value >= at_least
    below = at_most is None or value <= at_most
    shown = f"{value:.{digits}f}{unit}" + (f" ({note})" if note else "")
    return Bar(name=name, limit=" and ".join(limits), value=value, shown=shown, passed=valid and above and below)


def all_equal_bar(name: str, equal: Sequence[bool]) -> Bar:
    """The bar of bit-equal states: none of the cases may differ."""
    return bar(name, equal.count(False), at_most=0, digits=0, note=f"of {len(equal)} cases")


# -- placing processes --------------------------------------------------------------------------------------------


def can_place() -> bool:
    """Whether this system lets processes be placed, and has a core for each of two."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


@contextlib.contextmanager
def a_core_each(*server_pids: int) -> Iterator[None]:
    """This process on one core, those on another, while the block runs; where that cannot be, as the system likes.

    Two processes in lockstep may share a core or have one each, and the system moves them at will. That decides more
    than what is measured: a bare echo whose four threads share a core takes half the time of one on two cores.
    """
    if not can_place():
        yield
        return
    cores = os.sched_getaffinity(0)
    near, far = sorted(cores)[:2]
    try:
        _place(os.getpid(), {near})
        for pid in server_pids:
            _place(pid, {far})
        yield
    finally:
        for pid in (os.getpid(), *server_pids):
            _place(pid, cores)


def _place(pid: int, cores: set[int]) -> None:
    """Every thread of a process: those that are there have a placement of their own."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
            os.sched_setaffinity(int(thread.name), cores)
