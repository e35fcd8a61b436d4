"""Live mode: does simulated time keep up with the clock, and what does it cost; what does doing nothing cost."""

import time
from collections.abc import Sequence

import numpy as np

from urlab.cli.bench.lateness_child import RESULT_FILE
from urlab.cli.bench.plan import SCENES, Plan
from urlab.cli.bench.raw import connect
from urlab.cli.bench.results import LatenessResult, PacingResult
from urlab.cli.bench.spawn import LATENESS, Server, running, serving
from urlab.cli.bench.stepping import Tick
from urlab_client import URLabClient

_SETTLE_S = 0.5
_GRACE_S = 60.0


def measure_pacing(plan: Plan, tick: Tick) -> PacingResult:
    """Watch a server from outside, then look at the lateness of the same scene's loop from inside another process."""
    scene = plan.main_scene
    with serving(SCENES[scene]) as server, connect(server.step_endpoint, "live") as client:
        tick(f"live for {plan.live_s:g} s")
        time.sleep(min(_SETTLE_S, plan.idle_s))
        cpu_live, factor = _watch_live(server, client, plan.live_s)
        tick(f"paused for {plan.idle_s:g} s")
        client.runtime.set_paused(True)
        cpu_paused = _cpu_percent(server, plan.idle_s)
        tick(f"direct without requests for {plan.idle_s:g} s")
        client.runtime.set_paused(False)
        client.runtime.set_mode("direct")
        cpu_direct = _cpu_percent(server, plan.idle_s)
        timestep_s = float(client.model.opt.timestep)
    tick(f"lateness for {plan.live_s:g} s")
    return PacingResult(
        scene=scene,
        timestep_s=timestep_s,
        watched_s=plan.live_s,
        real_time_factor=factor,
        lateness=_measure_lateness(scene, plan.live_s),
        cpu_live_percent=cpu_live,
        cpu_paused_percent=cpu_paused,
        cpu_direct_idle_percent=cpu_direct,
    )


def _watch_live(server: Server, client: URLabClient, seconds: float) -> tuple[float, float]:
    """CPU percent, and simulated seconds per second of the wall clock."""
    wall_begin, sim_begin = _clocks(client)
    cpu = _cpu_percent(server, seconds)
    wall_end, sim_end = _clocks(client)
    return cpu, (sim_end - sim_begin) / (wall_end - wall_begin)


def _clocks(client: URLabClient) -> tuple[float, float]:
    """Wall clock and simulated time of one moment: that of the reply, give or take half a round trip."""
    before = time.perf_counter()
    sim_time = client.sim.status().sim_time
    return (before + time.perf_counter()) / 2, float(sim_time or 0.0)


def _cpu_percent(server: Server, seconds: float) -> float:
    begin, used = time.perf_counter(), server.cpu_s
    time.sleep(seconds)
    return 100 * (server.cpu_s - used) / (time.perf_counter() - begin)


def _measure_lateness(scene: str, seconds: float) -> LatenessResult:
    with running([*LATENESS, str(seconds), *SCENES[scene]]) as (child, folder):
        found, _ = child.wait_for_file(folder / RESULT_FILE, limit_s=seconds + _GRACE_S)
    return summarize_lateness(found["late_ms"])


def summarize_lateness(late_ms: Sequence[float]) -> LatenessResult:
    """Percentiles."""
    quantiles = np.percentile(np.asarray(late_ms, dtype=np.float64), range(101)).tolist()
    return LatenessResult(
        steps=len(late_ms),
        p50_ms=quantiles[50],
        p99_ms=quantiles[99],
        max_ms=quantiles[100],
        quantiles_ms=quantiles,
    )
