"""The whole comparison, part by part."""

import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime

from urlab.cli.bench.floors import echoing
from urlab.cli.bench.machine import describe_machine, load
from urlab.cli.bench.plan import STEP_COUNTS
from urlab.cli.bench.progress import Watcher
from urlab.cli.bench.soak import SAMPLES
from urlab.cli.bench.spawn import terminated_like_interrupted
from urlab.cli.bench.stepping import Tick
from urlab.cli.bench.transports.idle import measure_idle
from urlab.cli.bench.transports.paths import RoundTrip, TransportPaths
from urlab.cli.bench.transports.plan import TransportsPlan
from urlab.cli.bench.transports.results import TransportsCase, TransportsResult
from urlab.cli.bench.transports.shm_echo import echoing_in_shm
from urlab.cli.bench.transports.soak import measure_shm_soak
from urlab.cli.bench.transports.stepping import measure_transports
from urlab.cli.bench.transports.verdicts import judge_transports
from urlab.cli.bench.turns import calls_per_block

_IDLE_STATES = 2


def run_transports(plan: TransportsPlan, watcher: Watcher) -> TransportsResult:
    """Measure everything; whatever was started has ended when this returns or raises."""
    started, begin, load_before = datetime.now(UTC), time.perf_counter(), load()
    with terminated_like_interrupted():
        cases = _measure_scenes(plan, watcher.part("transports", len(plan.cases()) * plan.rounds))
        idle = measure_idle(plan, watcher.part("idle", _IDLE_STATES))
        soak = measure_shm_soak(plan, watcher.part("soak", SAMPLES))
    verdicts = judge_transports(cases, idle, soak)
    return TransportsResult(
        started=started.isoformat(timespec="seconds"),
        duration_s=time.perf_counter() - begin,
        plan=asdict(plan),
        machine=describe_machine(load_before),
        cases=cases,
        idle=idle,
        soak=soak,
        verdicts=verdicts,
        passed=all(one.passed for one in verdicts),
    )


def _measure_scenes(plan: TransportsPlan, tick: Tick) -> list[TransportsCase]:
    """All scenes' servers stay up together; those whose turn it is not are in direct mode and sleep."""
    longest = calls_per_block(plan, plan.run_up) * max(STEP_COUNTS)
    with ExitStack() as opened:
        echoes: dict[str, RoundTrip] = {"shm": opened.enter_context(echoing_in_shm())}
        for scheme in ("ipc", "tcp"):
            echoes[scheme] = opened.enter_context(echoing(scheme))
        scenes = {scene: opened.enter_context(TransportPaths(scene, longest)) for scene in plan.scenes}
        return measure_transports(plan, scenes, echoes, tick)
