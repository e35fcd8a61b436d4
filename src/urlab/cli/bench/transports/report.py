"""The summary for people."""

from collections.abc import Callable, Sequence

from rich.console import Console, Group
from rich.table import Table

from urlab.cli.bench.plan import Case
from urlab.cli.bench.report import machine_text, verdict_table
from urlab.cli.bench.results import Timing
from urlab.cli.bench.transports.plan import ECHOES, TRANSPORTS
from urlab.cli.bench.transports.results import ClientResult, RawRequest, TransportsCase, TransportsResult


def print_transports(result: TransportsResult, console: Console) -> None:
    """Latencies, what they cost, the floors, and the bars."""
    console.print(
        Group(
            machine_text(result.machine),
            _clients("client.step(): p50 / p99 / p99.9 in microseconds", result.cases, _latency),
            _clients("steps per second, and CPU of client + server (1 = a core)", result.cases, _cost),
            _floors(result.cases),
            _raw(result.cases),
            _facts(result),
            verdict_table(result.verdicts),
        )
    )


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=True)
    return table


def _label(case: TransportsCase) -> str:
    return Case(case.scene, case.observations, case.n_steps).label


def _clients(title: str, cases: Sequence[TransportsCase], cell: Callable[[ClientResult], str]) -> Table:
    table = _table(title, ["request", *TRANSPORTS.values()])
    for case in cases:
        table.add_row(_label(case), *(cell(case.clients[name]) for name in TRANSPORTS))
    return table


def _latency(client: ClientResult) -> str:
    step = client.step
    return f"{step.p50_us:.0f} / {step.p99_us:.0f} / {step.p999_us:.0f}"


def _cost(client: ClientResult) -> str:
    server = "" if client.server_cpu is None else f" + {client.server_cpu:.2f}"
    return f"{client.steps_per_s:,.0f}  {client.client_cpu:.2f}{server}"


def _floors(cases: Sequence[TransportsCase]) -> Table:
    echoes = [f"echo {TRANSPORTS[name]}" for name in ECHOES]
    title = "floors: p50 / p99 in microseconds, of frames of the same sizes"
    table = _table(title, ["request", "bytes", "plain loop", *echoes, "raw ZMQ tcp"])
    for case in cases:
        timings = [case.plain, *(case.echoes[name] for name in ECHOES), case.raw_tcp_unplaced.request]
        table.add_row(_label(case), f"{case.request_bytes:,} + {case.reply_bytes:,}", *map(_pair, timings))
    return table


def _raw(cases: Sequence[TransportsCase]) -> Table:
    title = "raw request over ZMQ tcp and its floors: p50 in microseconds"
    table = _table(title, ["request", "a core each", "of its floor", "where the system likes", "of its floor"])
    for case in cases:
        cells = [
            cell for raw in (case.raw_tcp, case.raw_tcp_unplaced) for cell in (_against_floors(raw), f"{raw.ratio:.2f}")
        ]
        table.add_row(_label(case), *cells)
    return table


def _against_floors(raw: RawRequest) -> str:
    return f"{raw.request.p50_us:.0f} / ({raw.echo.p50_us:.0f} + {raw.plain.p50_us:.0f})"


def _pair(timing: Timing) -> str:
    return f"{timing.p50_us:.0f} / {timing.p99_us:.0f}"


def _facts(result: TransportsResult) -> Table:
    idle, soak, lockstep = result.idle, result.soak, result.soak.lockstep
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "idle",
        f"server {idle.paused_server_percent:.2f} % of a core paused, {idle.direct_server_percent:.2f} % direct; "
        f"client in shared memory {idle.paused_client_percent:.2f} % and {idle.direct_client_percent:.2f} %",
    )
    table.add_row(
        "soak",
        f"{lockstep.answered:,} steps over shm, {lockstep.errors} errors, {lockstep.rate_hz:,.0f}/s ({lockstep.scene});"
        f" memory per 100,000: server {lockstep.growth_mb_per_100k:+.3f} MB, "
        f"client {soak.client_growth_mb_per_100k:+.3f} MB",
    )
    table.add_row("run", f"{result.duration_s:.0f} s, {lockstep.duration_s:.0f} s of it the soak")
    return table
