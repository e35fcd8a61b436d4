"""The whole run, part by part."""

import time
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime

from urlab.cli.bench.authoring import measure_authoring
from urlab.cli.bench.cameras import MODES, SIZES, measure_cameras
from urlab.cli.bench.floors import echoing
from urlab.cli.bench.machine import describe_machine, load
from urlab.cli.bench.pacing import measure_pacing
from urlab.cli.bench.paths import ScenePaths
from urlab.cli.bench.plan import SCENES, STEP_COUNTS, Plan
from urlab.cli.bench.progress import Watcher
from urlab.cli.bench.results import BenchResult, MemoryResult, StartResult, StepResult
from urlab.cli.bench.soak import SAMPLES, measure_soak
from urlab.cli.bench.spawn import serving, terminated_like_interrupted
from urlab.cli.bench.stepping import Tick, measure_stepping
from urlab.cli.bench.streaming import measure_streaming
from urlab.cli.bench.verdicts import judge

_PACING_PARTS = 4


def run(plan: Plan, watcher: Watcher) -> BenchResult:
    """Measure everything; whatever was started has ended when this returns or raises."""
    started, begin, load_before = datetime.now(UTC), time.perf_counter(), load()
    with terminated_like_interrupted():
        start = measure_start(plan, watcher.part("start", plan.starts))
        stepping, memory = _measure_scenes(plan, watcher.part("step requests", len(plan.cases()) * plan.rounds))
        pacing = measure_pacing(plan, watcher.part("live pacing", _PACING_PARTS))
        authoring = measure_authoring(plan, watcher.part("authoring", len(plan.grids)))
        cameras = measure_cameras(plan, watcher.part("cameras", len(SIZES) * len(MODES)))
        streaming = measure_streaming(plan, watcher.part("camera streams", 1))
        soak = measure_soak(plan, watcher.part("soak", SAMPLES))
    verdicts = judge(start, stepping, memory, pacing, authoring, cameras, streaming, soak)
    return BenchResult(
        started=started.isoformat(timespec="seconds"),
        duration_s=time.perf_counter() - begin,
        plan=asdict(plan),
        machine=describe_machine(load_before),
        start=start,
        stepping=stepping,
        memory=memory,
        pacing=pacing,
        authoring=authoring,
        cameras=cameras,
        streaming=streaming,
        soak=soak,
        verdicts=verdicts,
        passed=all(one.passed for one in verdicts),
    )


def measure_start(plan: Plan, tick: Tick) -> StartResult:
    """Start the server several times, one after the other."""
    result = StartResult(scene=plan.main_scene, ready_s=[], rss_ready_mb=[])
    for number in range(plan.starts):
        tick(f"start {number + 1} of {plan.starts}")
        with serving(SCENES[plan.main_scene]) as server:
            result.ready_s.append(server.ready_s)
            result.rss_ready_mb.append(server.rss_mb)
    return result


def _measure_scenes(plan: Plan, tick: Tick) -> tuple[list[StepResult], list[MemoryResult]]:
    """All scenes' servers stay up together; those whose turn it is not are in direct mode and sleep."""
    longest = (plan.warm_up + plan.samples) * max(STEP_COUNTS)
    with ExitStack() as opened:
        echo = opened.enter_context(echoing())
        scenes = {scene: opened.enter_context(ScenePaths(scene, longest)) for scene in plan.scenes}
        stepping = measure_stepping(plan, scenes, echo, tick)
        memory = [
            MemoryResult(scene=scene, rss_ready_mb=paths.rss_ready_mb, rss_stepped_mb=paths.server.rss_mb)
            for scene, paths in scenes.items()
        ]
    return stepping, memory
