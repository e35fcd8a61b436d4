"""What a server costs on this machine: step requests beside their floors, start, memory, live pacing, a soak."""

import time
from typing import Any

from benchmarks.live_child import RESULT_FILE, lateness, lateness_words
from benchmarks.measuring import Plan, SampleCounts, Tick, all_equal_bar, bar
from benchmarks.processes import Child, Server, child_module, connect
from benchmarks.reporting import Panel, PanelBar, Report, timing_bar
from benchmarks.scenes import SCENES
from benchmarks.stepping import (
    TRANSPORTS,
    CaseResult,
    client_table,
    floor_table,
    measure_soak,
    measure_steps,
    step_cases,
)
from urlab_client import URLabClient

_SCENES = ("arm", "quadruped", "demo")
FULL = Plan(_SCENES, 20, SampleCounts(300, 30, 100), watch_s=10.0, soak_steps=200_000)
QUICK = Plan(_SCENES, 3, SampleCounts(60, 15, 60), watch_s=2.0, soak_steps=5_000, quick=True)

MAX_FLOOR_RATIO = 1.35
MAX_READY_S = 3.0
MAX_RSS_MB = 300.0
MAX_REAL_TIME_ERROR = 0.01
_ALL_LEVELS = ("standard", "minimal", "full")
_TRANSPORTS = ("inprocess", "tcp")
_SETTLE_S = 0.5
_GRACE_S = 60.0


def measure(plan: Plan, tick: Tick) -> Report:
    """Everything; parts that need one scene only take the largest that was asked for."""
    scene = max(plan.scenes, key=list(SCENES).index)
    start = _measure_start(scene, 1 if plan.quick else 3, tick)
    levels = {one: _ALL_LEVELS if one == "arm" else ("standard",) for one in plan.scenes}
    cases, memory = measure_steps(plan, step_cases(levels), _TRANSPORTS, tick)
    pacing = _measure_pacing(scene, plan.watch_s, tick)
    soak = measure_soak(plan, scene, "tcp", tick)
    largest_mb = max([*start["rss_ready_mb"], *(value for pair in memory.values() for value in pair)])
    worst = max((case for case in cases if case.is_judged), key=CaseResult.floor_ratio)
    factor_error = abs(pacing["real_time_factor"] - 1)
    bars = [
        bar("raw step(1) / (echo + plain loop), p50", worst.floor_ratio(), at_most=MAX_FLOOR_RATIO, note=worst.label),
        all_equal_bar("cases whose states differ from the plain loop's", [case.same_state for case in cases]),
        bar("start to ready", max(start["ready_s"]), at_most=MAX_READY_S, unit=" s"),
        bar("memory of an idle server", largest_mb, at_most=MAX_RSS_MB, unit=" MB", digits=0),
        bar("live real-time factor, distance from 1", factor_error, at_most=MAX_REAL_TIME_ERROR, digits=5),
        *soak.bars(),
    ]
    stepped = ", ".join(f"{name} {before:.0f} to {after:.0f}" for name, (before, after) in memory.items())
    facts = {
        "start to ready": ", ".join(f"{seconds:.2f}" for seconds in start["ready_s"]) + f" s ({scene})",
        "memory": f"{start['rss_ready_mb'][0]:.0f} MB when ready; through all step requests {stepped} MB",
        "live": f"real-time factor {pacing['real_time_factor']:.5f} ({scene}); {lateness_words(pacing['lateness'])}",
        "CPU of one core": ", ".join(f"{value:.1f} % {name}" for name, value in pacing["cpu_percent"].items()),
        "soak": soak.words,
    }
    return Report(
        title="What a server costs on this machine",
        data={"start": start, "stepping": cases, "memory": memory, "pacing": pacing, "soak": soak},
        tables=[client_table(cases, _TRANSPORTS), floor_table(cases, _TRANSPORTS)],
        bars=bars,
        facts=facts,
        panels=_panels(cases),
        across=2,
    )


def _measure_start(scene: str, times: int, tick: Tick) -> dict[str, Any]:
    """From spawning `urlab serve` to its ready file, and the memory that it then holds (resident, MB)."""
    ready_s, rss_mb = [], []
    for number in range(times):
        tick(f"start {number + 1}/{times}")
        with Server(SCENES[scene]) as server:
            ready_s.append(server.ready_s)
            rss_mb.append(server.rss_mb)
    return {"scene": scene, "ready_s": ready_s, "rss_ready_mb": rss_mb}


def _measure_pacing(scene: str, seconds: float, tick: Tick) -> dict[str, Any]:
    """Watch a server from outside, then look at the lateness of the same scene's loop from inside another process.

    CPU is in percent of one core, over the server's whole process.
    """
    idle_s, cpu = min(seconds, 3.0), {}
    with Server(SCENES[scene]) as server, connect(server.step_endpoint, "live") as client:
        tick(f"live for {seconds:g} s")
        time.sleep(_SETTLE_S)
        wall_begin, sim_begin = _clocks(client)
        cpu["live"] = cpu_percent(server, seconds)
        wall_end, sim_end = _clocks(client)
        tick("idle")
        client.runtime.set_paused(True)
        cpu["paused"] = cpu_percent(server, idle_s)
        client.runtime.set_paused(False)
        client.runtime.set_mode("direct")
        cpu["direct without requests"] = cpu_percent(server, idle_s)
        timestep_s = float(client.model.opt.timestep)
    tick(f"lateness for {seconds:g} s")
    with Child(child_module("live_child", str(seconds), "{folder}", *SCENES[scene])) as child:
        found = child.read_file(RESULT_FILE, limit_s=seconds + _GRACE_S)
    return {
        "scene": scene,
        "timestep_s": timestep_s,
        "watched_s": seconds,
        "real_time_factor": (sim_end - sim_begin) / (wall_end - wall_begin),
        "lateness": lateness(found["late_ms"]),
        "cpu_percent": cpu,
    }


def _clocks(client: URLabClient) -> tuple[float, float]:
    """Wall clock and simulated time of one moment: that of the reply, give or take half a round trip."""
    before = time.perf_counter()
    sim_time = client.sim.status().sim_time
    return (before + time.perf_counter()) / 2, float(sim_time or 0.0)


def cpu_percent(child: Child, seconds: float) -> float:
    """Percent of one core that a process uses while nothing is done here."""
    begin, used = time.perf_counter(), child.cpu_s
    time.sleep(seconds)
    return 100 * (child.cpu_s - used) / (time.perf_counter() - begin)


def _panels(cases: list[CaseResult]) -> list[Panel]:
    floors = Panel("a step request against its floors", "us, p50; mark: floors on a processor that has just slept")
    floors.legend = ("plain mj_step loop", "bare echo", "step request over ZMQ")
    clients = Panel("client.step()", "us, p50 to p99")
    for case in cases:
        plain, echo = case.p50_us("plain"), case.p50_us("echo_tcp")
        woken = case.p50_us("echo_tcp") + case.p50_us("plain_woken")
        floors.bars.append(PanelBar(case.label, [plain, echo], f"{plain + echo:.0f}", mark=woken))
        floors.bars.append(PanelBar("", [case.p50_us("raw_tcp")], f"x {case.floor_ratio():.2f}", colour=2))
        clients.bars += [
            timing_bar(f"{case.label} {TRANSPORTS[name]}", case.timings[name], colour=row + 1)
            for row, name in enumerate(_TRANSPORTS)
        ]
    return [floors, clients]
