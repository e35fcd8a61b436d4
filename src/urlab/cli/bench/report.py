"""The summary for people."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from urlab.cli.bench.results import BenchResult, Machine, StepResult, Timing, Verdict
from urlab.cli.bench.verdicts import MAX_RATIO

_STEP_COLUMNS = (
    "request",
    "raw ZMQ",
    "rate",
    "echo",
    "plain loop",
    "ratio",
    "woken",
    "ratio",
    "client ZMQ",
    "client in process",
)


def print_report(result: BenchResult, console: Console) -> None:
    """Everything that matters, on one screen."""
    console.print(
        Group(machine_text(result.machine), _stepping(result), _facts(result), verdict_table(result.verdicts))
    )


def machine_text(machine: Machine) -> Text:
    """What it was measured on."""
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    busy = machine.load_before > machine.cores / 4
    warning = "; the machine was busy before it began: expect noise" if busy else ""
    return Text(
        f"{machine.cpu}, {machine.cores} cores, load {machine.load_before:.2f} before and {machine.load_after:.2f} "
        f"after{warning}\n{versions}"
    )


def _stepping(result: BenchResult) -> Table:
    table = Table(title="step requests: p50 / p99 in microseconds", title_justify="left")
    for index, name in enumerate(_STEP_COLUMNS):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=True)
    for case in result.stepping:
        table.add_row(*_step_row(case))
    return table


def _step_row(case: StepResult) -> list[RenderableType]:
    colour = "green" if case.ratio <= MAX_RATIO else "red"
    return [
        f"{case.scene} {case.observations} step({case.n_steps})",
        _pair(case.raw_zmq),
        f"{case.raw_zmq.rate_hz:,.0f}/s",
        _pair(case.echo),
        _pair(case.plain),
        Text(f"{case.ratio:.2f}", style=colour),
        _pair(case.plain_woken),
        f"{case.ratio_woken:.2f}",
        _pair(case.client_zmq),
        _pair(case.client_inprocess),
    ]


def _pair(timing: Timing) -> str:
    return f"{timing.p50_us:.0f} / {timing.p99_us:.0f}"


def _facts(result: BenchResult) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, fact in (
        ("start to ready", _start(result)),
        ("memory", _memory(result)),
        ("live", _live(result)),
        ("CPU of one core", _cpu(result)),
        ("authoring", _authoring(result)),
        ("cameras", _cameras(result)),
        ("streaming", _streaming(result)),
        ("soak", _soak(result)),
    ):
        table.add_row(name, fact)
    return table


def _start(result: BenchResult) -> str:
    start = result.start
    return f"{', '.join(f'{seconds:.2f}' for seconds in start.ready_s)} s ({start.scene})"


def _memory(result: BenchResult) -> str:
    ready = ", ".join(f"{rss:.0f}" for rss in result.start.rss_ready_mb)
    stepped = ", ".join(f"{one.scene} {one.rss_ready_mb:.0f} to {one.rss_stepped_mb:.0f}" for one in result.memory)
    return f"{ready} MB when ready; through all step requests {stepped} MB"


def _live(result: BenchResult) -> str:
    pacing, late = result.pacing, result.pacing.lateness
    return (
        f"real-time factor {pacing.real_time_factor:.5f} at {1000 * pacing.timestep_s:g} ms ({pacing.scene}); "
        f"late by p50 {late.p50_ms:.2f}, p99 {late.p99_ms:.2f}, max {late.max_ms:.2f} ms"
    )


def _cpu(result: BenchResult) -> str:
    pacing = result.pacing
    return (
        f"{pacing.cpu_live_percent:.1f} % live, {pacing.cpu_paused_percent:.1f} % paused, "
        f"{pacing.cpu_direct_idle_percent:.1f} % in direct without requests"
    )


def _authoring(result: BenchResult) -> str:
    return "; ".join(
        f"{one.cells} robots {one.spawn_s + one.play_s:.2f} s, bare {one.bare_s:.2f} s, {one.ratio:.1f} x, "
        f"ours {one.own_us_per_cell:.0f} us each"
        for one in result.authoring
    )


def _cameras(result: BenchResult) -> str:
    return "; ".join(
        f"{one.width}x{one.height} {one.mode} {_ms(one.inprocess)} ms, over ZMQ {_ms(one.zmq)}, bare {_ms(one.bare)}, "
        f"with MuJoCo's default settings {_ms(one.default)}"
        for one in result.cameras
    )


def _ms(timing: Timing) -> str:
    return f"{timing.p50_us / 1000:.1f}"


def _streaming(result: BenchResult) -> str:
    streaming, late = result.streaming, result.streaming.lateness
    rates = " and ".join(f"{rate:.1f}" for rate in streaming.frames_hz)
    return (
        f"two cameras at {rates} Hz: real-time factor {streaming.real_time_factor:.5f}; "
        f"late by p50 {late.p50_ms:.2f}, p99 {late.p99_ms:.2f}, max {late.max_ms:.2f} ms"
    )


def _soak(result: BenchResult) -> str:
    soak = result.soak
    return (
        f"{soak.answered:,} requests, {soak.errors} errors, {soak.rate_hz:,.0f}/s ({soak.scene}); "
        f"memory {soak.growth_mb:+.2f} MB, {soak.growth_mb_per_100k:+.2f} MB per 100,000"
    )


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Every bar, and what was found."""
    table = Table(title="bars", title_justify="left")
    for name in ("what", "bar", "found", ""):
        table.add_column(name)
    for one in verdicts:
        table.add_row(one.name, one.bar, one.shown, "[green]pass[/]" if one.passed else "[red]fail[/]")
    return table
