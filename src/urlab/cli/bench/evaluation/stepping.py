"""Control steps through HTTP beside their floors, and two workers beside one."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from urlab.cli.bench.evaluation.floors import Floors
from urlab.cli.bench.evaluation.plan import RUN_UP, TASKS, EvalPlan
from urlab.cli.bench.evaluation.results import CpuResult, MemoryResult, PairResult, StepsResult
from urlab.cli.bench.evaluation.server import EvalServer, Walk, evaluating
from urlab.cli.bench.evaluation.trail import Trail
from urlab.cli.bench.results import Timing
from urlab.cli.bench.stepping import Tick
from urlab.cli.bench.timing import summarize
from urlab.cli.bench.turns import Taken, Way, calls_per_block, in_turns

ALONE, TOGETHER = ("0",), ("1", "2")
"""The worker that is stepped alone and the two that share a request: three processes, of which at most two are busy."""

TWO_CORES = 1.8
"""Where two bare processes do less than this times the work of one, somebody else has a part of the second core."""

_MS = 1e3


@dataclass(slots=True)
class _Found:
    """What the rounds have found so far, by way."""

    taken: dict[str, Taken] = field(default_factory=lambda: defaultdict(Taken))
    rounds: dict[str, list[Taken]] = field(default_factory=lambda: defaultdict(list))
    same_state: bool = True

    def timing(self, way: str) -> Timing:
        return summarize(self.taken[way].durations_ns)

    def maybe(self, way: str) -> Timing | None:
        return self.timing(way) if way in self.taken else None

    def of_rounds(self, way: str, numbers: Sequence[int]) -> Timing:
        return summarize([one for number in numbers for one in self.rounds[way][number].durations_ns])

    def pair(self, numbers: Sequence[int], one: str = "http", two: str = "two") -> PairResult:
        return pair_of(self.of_rounds(one, numbers), self.of_rounds(two, numbers))

    def with_two_cores(self) -> list[int]:
        """The rounds in which two bare processes did almost twice the work of one."""
        every = range(len(self.rounds["http"]))
        return [number for number in every if self.pair([number], "bare_one", "bare_two").ratio >= TWO_CORES]


def measure_steps(plan: EvalPlan, scene: str, tick: Tick, *, cameras: bool) -> StepsResult:
    """All rounds of one robot, with one server."""
    task, block, found = TASKS[scene], plan.block(cameras=cameras), _Found()
    trail = Trail(task, calls_per_block(block, RUN_UP))
    tick("start")
    with evaluating(task, len(ALONE) + len(TOGETHER), cameras=cameras) as server:
        with Floors(trail, cameras=cameras) as floors:
            one = Walk(server, ALONE, trail)
            two = Walk(server, TOGETHER, trail)
            ways = [_walk("http", one, server), _walk("two", two, server), *floors.ways()]
            for number in range(plan.rounds):
                tick(f"round {number + 1}/{plan.rounds}")
                _take(ways, in_turns(block, ways, run_up=RUN_UP), found)
                found.same_state &= all(np.array_equal(one.joints("0"), other) for other in floors.joints())
        return _result(scene, found, server, one.first_reset_s, server.memory(), cameras=cameras)


def _walk(name: str, walk: Walk, server: EvalServer) -> Way:
    return Way(name, walk.reset, walk.once, far_cpu_s=lambda: server.cpu_s)


def _take(ways: list[Way], block: dict[str, Taken], found: _Found) -> None:
    for way in ways:
        found.taken[way.name].add(block[way.name])
        found.rounds[way.name].append(block[way.name])


def _result(
    scene: str, found: _Found, server: EvalServer, first_reset_s: float, memory: MemoryResult, *, cameras: bool
) -> StepsResult:
    http, episode = found.timing("http"), found.timing("episode")
    judged = [] if cameras else found.with_two_cores()
    return StepsResult(
        scene=scene,
        task=TASKS[scene],
        cameras=cameras,
        same_state=found.same_state,
        ready_s=server.ready_s,
        first_reset_s=first_reset_s,
        http=http,
        episode=episode,
        simulation=found.timing("simulation"),
        physics=found.timing("physics"),
        render=found.maybe("render"),
        bare_render=found.maybe("bare_render"),
        added_ms=(http.p50_us - episode.p50_us) / _MS,
        workers=pair_of(http, found.timing("two")),
        judged_rounds=len(judged),
        judged=found.pair(judged) if judged else None,
        bare_pair=None if cameras else pair_of(found.timing("bare_one"), found.timing("bare_two")),
        cpu_one=_cpu(found.taken["http"]),
        cpu_two=_cpu(found.taken["two"]),
        memory=memory,
        round_p50_us={way: _p50s_us(taken) for way, taken in found.rounds.items()},
    )


def _p50s_us(rounds: Sequence[Taken]) -> list[float]:
    return [summarize(one.durations_ns).p50_us for one in rounds]


def pair_of(one: Timing, two: Timing) -> PairResult:
    """``two`` are requests with two steps in each."""
    return PairResult(one=one, two=two, ratio=2 * two.rate_hz / one.rate_hz)


def _cpu(taken: Taken) -> CpuResult:
    count = len(taken.durations_ns)
    return CpuResult(client_ms=_MS * taken.own_cpu_s / count, server_ms=_MS * taken.far_cpu_s / count)
