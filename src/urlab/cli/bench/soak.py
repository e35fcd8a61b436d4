"""Very many requests in lockstep: none may fail, and memory must not grow."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zmq

from urlab.cli.bench.paths import restart
from urlab.cli.bench.plan import SCENES, Plan
from urlab.cli.bench.raw import RawClient, connect, step_frame
from urlab.cli.bench.results import SoakResult
from urlab.cli.bench.spawn import Server, serving
from urlab.cli.bench.stepping import Tick

SAMPLES = 40
_WARM_SHARE = 10
_MAX_ERRORS = 100


@dataclass(slots=True)
class SoakLog:
    """What has happened so far; ``failed`` is what went wrong, one text each."""

    answered: int = 0
    failed: list[str] = field(default_factory=list)
    rss_steps: list[int] = field(default_factory=list)
    rss_mb: list[float] = field(default_factory=list)


def measure_soak(plan: Plan, tick: Tick) -> SoakResult:
    """`Plan.soak_steps` requests of step(1), each sent when the one before it was answered."""
    scene, log = plan.main_scene, SoakLog()
    with serving(SCENES[scene]) as server, connect(server.step_endpoint) as client:
        restart(client)
        raw = RawClient(server.step_endpoint)
        raw.frame = step_frame(client, 1, "standard")
        begin = time.perf_counter()
        try:
            _soak(plan.soak_steps, raw, server, log, tick)
        finally:
            raw.close()
        duration_s = time.perf_counter() - begin
    return _result(scene, plan.soak_steps, log, duration_s)


def _soak(steps: int, raw: RawClient, server: Server, log: SoakLog, tick: Tick) -> None:
    for size in _portions(steps):
        for _ in range(size):
            if not _request(raw, log):
                return
        log.rss_steps.append(log.answered)
        log.rss_mb.append(server.rss_mb)
        tick(f"{log.answered:,} of {steps:,} requests")


def _request(raw: RawClient, log: SoakLog) -> bool:
    """One request; False when there is no point in going on."""
    try:
        raw.once()
    except zmq.ZMQError as silent:
        log.failed.append(f"request {log.answered + 1} was not answered: {silent}")
        return False
    log.answered += 1
    wrong = _what_is_wrong(raw.reply, log.answered)
    if wrong:
        log.failed.append(f"request {log.answered}: {wrong}")
    return len(log.failed) < _MAX_ERRORS


def _what_is_wrong(reply: Mapping[str, Any], expected_step: int) -> str:
    if reply.get("op") != "step_ok":
        return f"{reply.get('code')}: {reply.get('message')}"
    if reply["step"] != expected_step:
        return f"the server counts {reply['step']} steps instead of {expected_step}"
    return f"warnings {reply['warnings']}" if reply.get("warnings") else ""


def _portions(steps: int) -> Iterator[int]:
    """As many portions as memory is sampled; they add up to ``steps``."""
    size, rest = divmod(steps, SAMPLES)
    for number in range(SAMPLES):
        yield size + (number < rest)


def _result(scene: str, asked: int, log: SoakLog, duration_s: float) -> SoakResult:
    growth_mb, per_100k = _growth(log)
    return SoakResult(
        scene=scene,
        asked=asked,
        answered=log.answered,
        errors=len(log.failed),
        first_error=log.failed[0] if log.failed else None,
        duration_s=duration_s,
        rate_hz=log.answered / duration_s,
        rss_steps=log.rss_steps,
        rss_mb=log.rss_mb,
        growth_mb=growth_mb,
        growth_mb_per_100k=per_100k,
    )


def _growth(log: SoakLog) -> tuple[float, float]:
    """From the end of the first tenth on: the difference in MB, and the slope of a straight line per 100,000 steps."""
    warm = len(log.rss_mb) // _WARM_SHARE
    steps, rss = np.asarray(log.rss_steps[warm:], dtype=np.float64), np.asarray(log.rss_mb[warm:])
    if len(steps) < 2 or steps[-1] == steps[0]:
        return 0.0, 0.0
    slope = float(np.polyfit(steps - steps.mean(), rss, 1)[0])
    return float(rss[-1] - rss[0]), slope * 100_000
