"""The same steps in process, in shared memory, over ipc and over TCP; what an idle server costs; a soak."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import Bar, Plan, SampleCounts, Tick, all_equal_bar, bar, can_place, repeat
from benchmarks.processes import Server
from benchmarks.reporting import Panel, Report, timing_bar
from benchmarks.scenes import scene_targets
from benchmarks.stepping import (
    PLACED,
    TRANSPORTS,
    CaseResult,
    check_attached,
    client_table,
    connect_shm,
    floor_table,
    measure_soak,
    measure_steps,
    step_cases,
)

_SCENES = ("arm", "quadruped", "hundred")
FULL = Plan(_SCENES, 12, SampleCounts(400, 20, 100, 5), watch_s=5.0, soak_steps=1_000_000)
QUICK = Plan(_SCENES, 3, SampleCounts(100, 10, 100, 5), watch_s=3.0, soak_steps=5_000, quick=True)

MAX_SHM_SHARE = 0.3
MAX_SHM_EXTRA_US = 50.0
MAX_SHM_TAIL = 4.0
MAX_RAW_RATIO = 1.25
MAX_IDLE_PERCENT = 2.0
MAX_GROWTH_MB = 1.0
_LEVELS = ("minimal", "standard", "full")
_SMALLEST_US = 0.1
_BURST = 200
_SETTLE_S = 0.5


def measure(plan: Plan, tick: Tick) -> Report:
    """All scenes at all levels; the idle watch and the soak take the first scene."""
    names = tuple(TRANSPORTS)
    cases, _ = measure_steps(plan, step_cases(dict.fromkeys(plan.scenes, _LEVELS)), names, tick)
    idle = _measure_idle(plan.scenes[0], plan.watch_s, tick)
    soak = measure_soak(plan, plan.scenes[0], "shm", tick)
    judged = [case for case in cases if case.is_judged]
    words = "server {:.2f} % paused, {:.2f} % direct; client in shared memory {:.2f} % and {:.2f} %"
    return Report(
        title="What one step costs a client, by transport",
        data={"cases": cases, "idle_percent": idle, "soak": soak},
        tables=[client_table(cases, names), floor_table(cases, names)],
        bars=[
            *(one for case in judged for one in _latency_bars(case)),
            all_equal_bar(
                "cases in which a transport's state differs from the plain loop's", [c.same_state for c in cases]
            ),
            *(
                bar(f"CPU of an idle {who}, of one core", max(used), at_most=MAX_IDLE_PERCENT, unit=" %")
                for who, used in idle.items()
            ),
            *soak.bars(MAX_GROWTH_MB),
        ],
        facts={"idle": words.format(*idle["server"], *idle["client in shared memory"]), "soak": soak.words},
        panels=[_panel(case) for case in judged],
    )


def _latency_bars(case: CaseResult) -> list[Bar]:
    shm, tcp = (case.p50_us(name) - case.p50_us("inprocess") for name in ("shm", "tcp"))
    share = shm / max(tcp, _SMALLEST_US)
    step, placed = case.timings["shm"], ", a core each" if can_place() else ""
    parts = [case.p50_us(PLACED + name) for name in ("raw_tcp", "echo_tcp", "plain")]
    what = f"{case.scene}: what shm adds to a step in process"
    return [
        bar(f"{what} / what ZMQ tcp adds, p50", share, at_most=MAX_SHM_SHARE, note=f"{shm:.0f} of {tcp:.0f} us"),
        bar(f"{what}, p50", shm, at_most=MAX_SHM_EXTRA_US, unit=" us", digits=1),
        bar(f"{case.scene}: shm p99 / p50", step.p99_us / step.p50_us, at_most=MAX_SHM_TAIL, note=step.pair),
        bar(
            f"{case.scene}: raw request over ZMQ tcp / (bare echo + plain loop){placed}, p50",
            case.floor_ratio(PLACED), at_most=MAX_RAW_RATIO, note="{:.0f} / {:.0f} + {:.0f} us".format(*parts),
        ),
    ]  # fmt: skip


def _measure_idle(scene: str, seconds: float, tick: Tick) -> dict[str, list[float]]:
    """Percent of a core of a server and of a client in shared memory, while nothing is asked: paused, then direct."""
    found: dict[str, list[float]] = {"server": [], "client in shared memory": []}
    with TemporaryDirectory(prefix="urlab-bench-") as folder, Server(scene_targets(scene, Path(folder))) as server:
        # It says direct and does not ask for it: a client that is in live mode subscribes to the state.
        client, transport = connect_shm(server.step_endpoint, auto_promote_step_mode=False)
        with client:
            for state in ("paused", "direct"):
                tick(f"idle, {state}, for {seconds:g} s")
                client.runtime.set_paused(state == "paused")
                if state == "direct":
                    client.runtime.set_mode("direct")
                    repeat(client.step, _BURST)
                time.sleep(_SETTLE_S)
                begin, server_s, own_s = time.perf_counter(), server.cpu_s, time.process_time()
                time.sleep(seconds)
                took = time.perf_counter() - begin
                found["server"].append(100 * (server.cpu_s - server_s) / took)
                found["client in shared memory"].append(100 * (time.process_time() - own_s) / took)
            check_attached(transport)
    return found


def _panel(case: CaseResult) -> Panel:
    """A bar per transport; the first is the plain loop, which has neither server nor client."""
    panel = Panel("100 bodies" if case.scene == "hundred" else case.scene, "us, p50 to p99; mark: echo + mj_step loop")
    panel.bars.append(timing_bar("mj_step loop", case.timings["plain"], colour=0))
    for row, (name, words) in enumerate(TRANSPORTS.items(), 1):
        mark = None if name == "inprocess" else case.p50_us(f"echo_{name}") + case.p50_us("plain")
        panel.bars.append(timing_bar(words, case.timings[name], mark=mark, colour=row))
    return panel
