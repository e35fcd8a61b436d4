"""Step requests against their floors.

A machine is not the same from one second to the next: how fast it wakes a sleeping thread depends on what it has been
doing. So rounds go over all cases, and within a case, whatever is to be compared takes short turns.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from urlab.cli.bench.floors import Echo
from urlab.cli.bench.paths import ScenePaths, restart
from urlab.cli.bench.plan import Case, Plan
from urlab.cli.bench.results import StepResult
from urlab.cli.bench.timing import summarize
from urlab.cli.bench.turns import Way, in_turns

Tick = Callable[[str], None]
"""Told what comes next, between blocks."""


@dataclass(slots=True)
class CaseSamples:
    """What the rounds of one case have found: nanoseconds by way, one list per round."""

    request_bytes: int = 0
    reply_bytes: int = 0
    contacts: int = 0
    same_state: bool = True
    rounds: dict[str, list[list[int]]] = field(default_factory=lambda: defaultdict(list))

    def timing_inputs(self, way: str) -> list[int]:
        """All rounds of one way."""
        return [duration for durations in self.rounds[way] for duration in durations]


def measure_stepping(plan: Plan, scenes: Mapping[str, ScenePaths], echo: Echo, tick: Tick) -> list[StepResult]:
    """All rounds of all cases."""
    found = {case: CaseSamples() for case in plan.cases()}
    for number in range(plan.rounds):
        for case, samples in found.items():
            tick(f"round {number + 1}/{plan.rounds}: {case.label}")
            measure_case(plan, case, scenes[case.scene], echo, samples)
    return [_result(case, samples) for case, samples in found.items()]


def measure_case(plan: Plan, case: Case, paths: ScenePaths, echo: Echo, samples: CaseSamples) -> None:
    """One block of each way, all from the same start."""
    samples.request_bytes, samples.reply_bytes = paths.use(case, echo)
    for ways in (_the_request_and_its_floors(paths, echo), _the_rest(case, paths, echo)):
        for name, taken in in_turns(plan, ways).items():
            samples.rounds[name].append(taken.durations_ns)
    samples.same_state &= paths.same_state()
    samples.contacts = int(paths.plain.data.ncon)


def _the_request_and_its_floors(paths: ScenePaths, echo: Echo) -> list[Way]:
    return [
        Way("raw_zmq", lambda: restart(paths.client), paths.raw.once),
        Way("echo", lambda: None, echo.once),
        Way("plain", paths.plain.reset, paths.plain.once),
    ]


def _the_rest(case: Case, paths: ScenePaths, echo: Echo) -> list[Way]:
    """A processor that has just slept is slow at first; the woken loop shows what that costs the plain one."""
    count, level = case.n_steps, case.observations
    client, embedded = paths.client, paths.embedded
    return [
        Way("plain_woken", paths.plain.reset, paths.plain.once, before=echo.once),
        Way("client_inprocess", lambda: restart(embedded), lambda: embedded.step(count, observations=level)),
        Way("client_zmq", lambda: restart(client), lambda: client.step(count, observations=level)),
    ]


def _result(case: Case, samples: CaseSamples) -> StepResult:
    timings = {way: summarize(samples.timing_inputs(way)) for way in samples.rounds}
    return StepResult(
        scene=case.scene,
        observations=case.observations,
        n_steps=case.n_steps,
        request_bytes=samples.request_bytes,
        reply_bytes=samples.reply_bytes,
        contacts=samples.contacts,
        ratio=_ratio({way: timing.p50_us for way, timing in timings.items()}),
        ratio_woken=_ratio({way: timing.p50_us for way, timing in timings.items()}, loop="plain_woken"),
        ratio_of_rounds=_ratios_of_rounds(samples),
        same_state=samples.same_state,
        **timings,
    )


def _ratios_of_rounds(samples: CaseSamples) -> list[float]:
    medians = [
        {way: summarize(durations[number]).p50_us for way, durations in samples.rounds.items()}
        for number in range(len(samples.rounds["echo"]))
    ]
    return [_ratio(one) for one in medians]


def _ratio(p50_us: Mapping[str, float], loop: str = "plain") -> float:
    return p50_us["raw_zmq"] / (p50_us["echo"] + p50_us[loop])
