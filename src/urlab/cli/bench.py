"""``urlab bench``: what a step costs on this machine over each transport, live pacing, and pictures, in half a minute.

Measurements for developers, against floors and in more detail, are in the folder ``benchmarks`` of the source.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from urlab.child_process import ServerProcess
from urlab.cli.console import CommandError, LogLevel, print_json, set_up_logging, stderr, stdout
from urlab.cli.options import AsJson

if TYPE_CHECKING:
    from urlab_client import URLabClient

DEFAULT_SECONDS = 20.0
MODEL = "panda"
_TRANSPORTS = {"in_process": "in process", "shm": "shared memory", "zmq": "ZeroMQ, tcp"}
_PLAIN = "plain"
_TURN_S = 0.05
"""Subjects take turns this long: a machine is not the same from one second to the next."""

_STEP_SHARE, _LIVE_SHARE, _CAMERA_SHARE = 0.5, 0.25, 0.25
_WARM_UP = 20
_POLL_S = 0.05
_LIVE_LIMIT_S = 10.0
_CAMERAS = {"224x224": "eye_small", "640x480": "eye_large"}
_CAMERA_MODEL = """<mujoco model="eye"><worldbody>
  <camera name="small" pos="1.6 -1.2 1.1" xyaxes="0.6 0.8 0 -0.33 0.25 0.91" resolution="224 224"/>
  <camera name="large" pos="1.6 -1.2 1.1" xyaxes="0.6 0.8 0 -0.33 0.25 0.91" resolution="640 480"/>
</worldbody></mujoco>"""

Seconds = Annotated[
    float, typer.Option("--seconds", min=0.1, help="How long to measure; starting and ending come on top.")
]


def bench(as_json: AsJson = False, seconds: Seconds = DEFAULT_SECONDS) -> None:
    """Measure this machine: a step over each transport beside a plain mj_step loop, live pacing, camera rates.

    It takes about half a minute. Leave the machine alone meanwhile.

    Example: [bold]urlab bench[/bold]; in a script: [bold]urlab bench --json | jq .steps.shm.p50_us[/bold]
    """
    set_up_logging(LogLevel.WARNING)
    console = stderr() if as_json else stdout()
    busy = os.getloadavg()[0]
    with console.status("measuring; leave the machine alone"), ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="urlab-bench-")))
        server = opened.enter_context(ServerProcess(MODEL, "--project", str(folder / "server")))
        report: dict[str, Any] = {
            "model": MODEL,
            "load_before": busy,
            "start_to_ready_s": server.seconds_to_ready,
            "steps": _measure_steps(server, folder, _STEP_SHARE * seconds),
            "live": _measure_live(server, _LIVE_SHARE * seconds),
            "cameras": _measure_cameras(folder, _CAMERA_SHARE * seconds),
        }
    if as_json:
        print_json(report)
    else:
        _show(report)


# -- steps --------------------------------------------------------------------------------------------------------


def _measure_steps(server: ServerProcess, folder: Path, seconds: float) -> dict[str, dict[str, float]]:
    """One `client.step()` over each transport in turns, and the same physics in a plain loop, microseconds."""
    from urlab.app import launch

    taken: dict[str, list[float]] = {}
    with ExitStack() as opened:
        embedded = opened.enter_context(launch(MODEL, project=folder / "embedded"))
        # One server, one session: the clients of the two transports follow one another.
        calls: dict[str, Callable[[], object]] = {_PLAIN: _plain_loop(embedded), "in_process": embedded.step}
        _take_turns(calls, 0.5 * seconds, taken)
    for transport in ("shm", "zmq"):
        with _connect(server, "direct", transport=transport) as client:
            client.reset()
            _take_turns({transport: client.step}, 0.25 * seconds, taken)
    return {name: _percentiles(taken[name]) for name in (_PLAIN, *_TRANSPORTS)}


def _take_turns(calls: Mapping[str, Callable[[], object]], seconds: float, taken: dict[str, list[float]]) -> None:
    """Microseconds of each call, by name."""
    for call in calls.values():
        for _ in range(_WARM_UP):
            call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            durations = taken.setdefault(name, [])
            turn_end = time.perf_counter() + _TURN_S
            while (begin := time.perf_counter()) < turn_end:
                call()
                durations.append(1e6 * (time.perf_counter() - begin))


def _plain_loop(client: "URLabClient") -> Callable[[], object]:
    """The floor: one ``mj_step`` of the same model, and its state read into lists as a reply needs it."""
    import copy

    import mujoco

    model = copy.copy(client.model)
    data = mujoco.MjData(model)

    def step() -> object:
        mujoco.mj_step(model, data)
        return data.qpos.tolist(), data.qvel.tolist(), data.sensordata.tolist()

    return step


def _percentiles(durations_us: list[float]) -> dict[str, float]:
    ordered = sorted(durations_us)
    return {
        "count": len(ordered),
        "p50_us": round(statistics.median(ordered), 2),
        "p99_us": round(ordered[int(0.99 * (len(ordered) - 1))], 2),
        "per_second": round(1e6 * len(ordered) / sum(ordered), 1),
    }


def _connect(server: ServerProcess, step_mode: str, **options: Any) -> "URLabClient":
    from urlab_client import URLabClient

    base, _, port = str(server.endpoints["step"]).rpartition(":")
    client = URLabClient(base, step_port=int(port), step_mode=step_mode, camera_streams=False, **options)
    client.discover()
    return client


# -- live ---------------------------------------------------------------------------------------------------------


def _measure_live(server: ServerProcess, seconds: float) -> dict[str, float]:
    """Real-time factor, and how late states are published, by the simulated clock of the most punctual one."""
    from urlab_client import ZmqTransport

    stamps: list[tuple[float, float]] = []
    endpoints = server.endpoints
    transport = ZmqTransport(str(endpoints["step"]), state_endpoint=str(endpoints["state"]))
    try:
        transport.start_state_stream(lambda state: stamps.append((_seconds(state["wall_time"]), state["time"])))
        give_up = time.perf_counter() + seconds + _LIVE_LIMIT_S
        while len(stamps) < 2 or stamps[-1][0] - stamps[0][0] < seconds:
            if time.perf_counter() > give_up:
                raise CommandError(f"the server published {len(stamps)} states in {seconds + _LIVE_LIMIT_S:g} s")
            time.sleep(_POLL_S)
    finally:
        transport.close()
    behind_ms = [1e3 * (wall - simulated) for wall, simulated in stamps]
    late_ms = sorted(one - min(behind_ms) for one in behind_ms)
    wall_s, simulated_s = (last - first for first, last in zip(stamps[0], stamps[-1], strict=True))
    return {
        "watched_s": round(wall_s, 3),
        "real_time_factor": round(simulated_s / wall_s, 5),
        "late_p50_ms": round(statistics.median(late_ms), 3),
        "late_p99_ms": round(late_ms[int(0.99 * (len(late_ms) - 1))], 3),
        "late_max_ms": round(late_ms[-1], 3),
    }


def _seconds(clock: Mapping[str, int]) -> float:
    return clock["sec"] + 1e-9 * clock["nsec"]


# -- cameras ------------------------------------------------------------------------------------------------------


def _measure_cameras(folder: Path, seconds: float) -> dict[str, Any]:
    """A step with its picture, in process; where nothing can be drawn, why."""
    from urlab.app import launch
    from urlab_client import URLabRPCError

    (folder / "eye.xml").write_text(_CAMERA_MODEL, encoding="utf-8")
    found: dict[str, Any] = {"renderer": None, "problem": None, "sizes": {}}
    with launch([folder / "eye.xml", MODEL, "table", "floor"], project=folder / "cameras") as client:
        try:
            for size, camera in _CAMERAS.items():
                taken: dict[str, list[float]] = {}
                call = partial(client.step, include_cameras={camera: "sync"})
                _take_turns({size: call}, seconds / len(_CAMERAS), taken)
                found["sizes"][size] = _percentiles(taken[size])
        except URLabRPCError as refused:
            found["problem"] = str(refused)
        client.discover()
        found["renderer"] = client.rendering.get("renderer")
    return found


# -- for people ---------------------------------------------------------------------------------------------------


def _show(report: Mapping[str, Any]) -> None:
    console = stdout()
    steps, live, cameras = report["steps"], report["live"], report["cameras"]
    table = Table(title=f"one step of {report['model']}, microseconds", title_justify="left")
    for name in ("", "p50", "p99", "steps/s", "of a plain loop"):
        table.add_column(name, justify="right" if name else "left")
    for name, words in {_PLAIN: "plain mj_step loop", **_TRANSPORTS}.items():
        one = steps[name]
        ratio = f"{one['p50_us'] / steps[_PLAIN]['p50_us']:.1f} x"
        table.add_row(words, f"{one['p50_us']:.0f}", f"{one['p99_us']:.0f}", f"{one['per_second']:,.0f}", ratio)
    console.print(table)
    facts = Table.grid(padding=(0, 2))
    late = "p50 {late_p50_ms:.2f}, p99 {late_p99_ms:.2f}, max {late_max_ms:.2f} ms".format(**live)
    facts.add_row("live", f"real-time factor {live['real_time_factor']:.4f}; late by {late}")
    for size, one in cameras["sizes"].items():
        facts.add_row(
            f"camera {size}", f"{one['per_second']:.0f} steps with a picture a second ({cameras['renderer']})"
        )
    if cameras["problem"]:
        facts.add_row("cameras", cameras["problem"])
    facts.add_row("start", f"{report['start_to_ready_s']:.2f} s to a server that answers")
    cores = os.cpu_count() or 1
    if report["load_before"] > cores / 4:
        facts.add_row(
            "note", f"the machine was busy before it began (load {report['load_before']:.1f} on {cores} cores)"
        )
    console.print(facts)
