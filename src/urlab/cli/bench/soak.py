"""Very many requests in lockstep: none may fail, and memory must not grow."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zmq

from urlab.cli.bench.paths import restart
from urlab.cli.bench.plan import SCENES, Plan
from urlab.cli.bench.raw import RawClient, connect, step_frame
from urlab.cli.bench.results import SoakResult
from urlab.cli.bench.spawn import serving
from urlab.cli.bench.stepping import Tick
from urlab_client import URLabRPCError

Ask = Callable[[], Mapping[str, Any]]
"""Asks for one step and returns the reply, or raises."""

SAMPLES = 40
SERVER = "server"
_WARM_SHARE = 10
_MAX_ERRORS = 100


@dataclass(slots=True)
class SoakLog:
    """What has happened so far; ``failed`` is what went wrong, one text each, ``rss_mb`` the memory by process."""

    answered: int = 0
    failed: list[str] = field(default_factory=list)
    rss_steps: list[int] = field(default_factory=list)
    rss_mb: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    duration_s: float = 0.0


def measure_soak(plan: Plan, tick: Tick) -> SoakResult:
    """`Plan.soak_steps` requests of step(1), each sent when the one before it was answered."""
    scene = plan.main_scene
    with serving(SCENES[scene]) as server, connect(server.step_endpoint) as client:
        restart(client)
        raw = RawClient(server.step_endpoint)
        raw.frame = step_frame(client, 1, "standard")
        try:
            log = soak(plan.soak_steps, raw.ask, {SERVER: lambda: server.rss_mb}, tick)
        finally:
            raw.close()
    return soak_result(scene, plan.soak_steps, log)


def soak(steps: int, ask: Ask, rss_mb: Mapping[str, Callable[[], float]], tick: Tick) -> SoakLog:
    """Ask for a step again and again; ``rss_mb`` tells the resident memory of the processes that are watched."""
    log, begin = SoakLog(), time.perf_counter()
    for size in _portions(steps):
        if not all(_request(ask, log) for _ in range(size)):
            break
        log.rss_steps.append(log.answered)
        for process, look in rss_mb.items():
            log.rss_mb[process].append(look())
        tick(f"{log.answered:,} of {steps:,} requests")
    log.duration_s = time.perf_counter() - begin
    return log


def _request(ask: Ask, log: SoakLog) -> bool:
    """One request; False when there is no point in going on."""
    try:
        reply = ask()
    except (zmq.ZMQError, URLabRPCError) as silent:
        log.failed.append(f"request {log.answered + 1} was not answered: {silent}")
        return False
    log.answered += 1
    wrong = _what_is_wrong(reply, log.answered)
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


def soak_result(scene: str, asked: int, log: SoakLog) -> SoakResult:
    """A finished soak, with the server's memory."""
    growth_mb, per_100k = growth(log, SERVER)
    return SoakResult(
        scene=scene,
        asked=asked,
        answered=log.answered,
        errors=len(log.failed),
        first_error=log.failed[0] if log.failed else None,
        duration_s=log.duration_s,
        rate_hz=log.answered / log.duration_s,
        rss_steps=log.rss_steps,
        rss_mb=log.rss_mb[SERVER],
        growth_mb=growth_mb,
        growth_mb_per_100k=per_100k,
    )


def growth(log: SoakLog, process: str) -> tuple[float, float]:
    """From the end of the first tenth on: the difference in MB, and the slope of a straight line per 100,000 steps."""
    warm = len(log.rss_steps) // _WARM_SHARE
    steps, rss = np.asarray(log.rss_steps[warm:], dtype=np.float64), np.asarray(log.rss_mb[process][warm:])
    if len(steps) < 2 or steps[-1] == steps[0]:
        return 0.0, 0.0
    slope = float(np.polyfit(steps - steps.mean(), rss, 1)[0])
    return float(rss[-1] - rss[0]), slope * 100_000
