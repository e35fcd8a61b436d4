"""``urlab ping``: who answers, what it simulates, and how quickly."""

import statistics
import time
import warnings
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from urlab.cli import options as opt
from urlab.cli.console import CommandError, LogLevel, in_words, print_json, robot_counts, set_up_logging, stdout
from urlab.cli.options import connected
from urlab_wire.enums import PIEState

if TYPE_CHECKING:
    from urlab_client import URLabClient, ZmqTransport

ROUND_TRIPS = 20
_LOOK_AGAIN_S = 0.1
_READY = (PIEState.READY, PIEState.OFF)
_ON_ITS_WAY = (PIEState.COMPILING, PIEState.TIMEOUT)


def ping(
    address: opt.Address = opt.DEFAULT_ADDRESS,
    step_port: opt.StepPort = opt.DEFAULT_STEP_PORT,
    key: opt.Key = None,
    timeout_s: opt.TimeoutS = opt.DEFAULT_TIMEOUT_S,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """Ask a server what it is doing, without disturbing the client that drives it.

    Exit code 0: it is ready, that is, a client can step its scene (or edit, if it was started with --no-play). Exit
    code 1: no server answers, or it is not ready; one that is compiling is waited for, as long as --timeout says.

    Example: [bold]urlab ping --step-port 5559[/bold]; in a script: [bold]urlab ping --json | jq .state[/bold]
    """
    set_up_logging(log_level)
    opt.use_key(key)
    deadline = time.monotonic() + timeout_s
    with connected(address, step_port, timeout_s) as transport:
        report = {"endpoint": transport.step_endpoint, **_report(transport, deadline)}
    if as_json:
        print_json(report)
    else:
        _show(report)
    if not report["ready"]:
        reason = report["compile_error"] or f"its state is {report['state']}"
        raise CommandError(f"the server at {report['endpoint']} is not ready: {reason}")


def _report(transport: "ZmqTransport", deadline: float) -> dict[str, Any]:
    from urlab_client import URLabClient

    client = URLabClient(transport=transport, observer=True, mujoco_version_check=False, camera_streams=False)
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        client.discover()
    status = client.sim.status()
    while status.state in _ON_ITS_WAY and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)
        status = client.sim.status()
    return {
        "ready": status.state in _READY,
        "urlab_version": client.urlab_version,
        "mujoco_version": client.mujoco_version,
        "state": status.state.value,
        "compile_error": status.compile_error or None,
        "physics_error": status.physics_error,
        "level": status.level,
        "mode": status.mode,
        "paused": status.paused,
        "sim_time_s": status.sim_time,
        "robots": {prefix: robot_counts(one) for prefix, one in client.articulations.items()},
        "entities": [name for name in client.entities if name not in client.articulations],
        "global_cameras": list(client.global_cameras),
        "streams": client.streams,
        "round_trip_ms": _round_trips_ms(client),
        "warnings": [str(one.message) for one in noticed],
    }


def _round_trips_ms(client: "URLabClient") -> dict[str, float]:
    taken: list[float] = []
    for _ in range(ROUND_TRIPS):
        begin = time.perf_counter()
        client.sim.status()
        taken.append(1000 * (time.perf_counter() - begin))
    return {"p50": round(statistics.median(taken), 3), "max": round(max(taken), 3)}


def _show(report: dict[str, Any]) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    for label, value in _rows(report):
        if value:
            table.add_row(label, value)
    stdout().print(table)


def _rows(report: dict[str, Any]) -> list[tuple[str, Text | str | None]]:
    trips, sim_time_s, mode = report["round_trip_ms"], report["sim_time_s"], report["mode"]
    versions = f"  {report['urlab_version']}, MuJoCo {report['mujoco_version']}"
    return [
        ("server", Text.assemble((report["endpoint"], "green"), versions)),
        ("state", Text(report["state"], "bold")),
        ("reason", _plain(report["compile_error"] or report["physics_error"])),
        ("level", _plain(report["level"])),
        ("mode", f"{mode}, paused" if mode and report["paused"] else mode),
        ("sim time", None if sim_time_s is None else f"{sim_time_s:.3f} s"),
        *(("robot", Text.assemble((name, "bold"), "  ", in_words(one))) for name, one in report["robots"].items()),
        ("entities", _plain(", ".join(report["entities"]))),
        ("cameras", _plain(", ".join(report["global_cameras"]))),
        ("streams", _plain(_streams(report["streams"]))),
        ("answers in", f"{trips['p50']:.2f} ms (median of {ROUND_TRIPS}; slowest {trips['max']:.2f} ms)"),
        *(("warning", _plain(text)) for text in report["warnings"]),
    ]


def _streams(streams: dict[str, Any] | None) -> str | None:
    """Where they are, and how many messages of the control socket could not be used."""
    if not streams:
        return None
    where = [f"{name} {streams[name]}" for name in ("state", "control", "info") if streams.get(name)]
    control = (streams.get("counters") or {}).get("control") or {}
    refused = sum(count for name, count in control.items() if name not in ("received", "applied"))
    return ", ".join([*where, *([f"{refused} control messages not applied"] if refused else [])])


def _plain(text: str | None) -> Text | None:
    """Text from the server, in which square brackets mean nothing."""
    return Text(text) if text else None
