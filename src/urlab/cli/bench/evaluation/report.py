"""The summary for people."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table

from urlab.cli.bench.evaluation.results import CpuResult, EvalResult, StepsResult, WholeResult
from urlab.cli.bench.report import machine_text, verdict_table
from urlab.cli.bench.results import Timing

_STEP_COLUMNS = ("robot", "steps/s", "HTTP", "in process", "simulation", "physics", "pictures", "bare", "HTTP adds")
_PAIR_COLUMNS = ("robot", "one", "two together", "ratio", "with two cores", "bare pair", "client CPU", "server CPU")


def print_eval(result: EvalResult, console: Console) -> None:
    """Steps, pairs, the whole evaluation, and the bars."""
    console.print(
        Group(
            machine_text(result.machine),
            _steps(result.steps),
            _pairs(result.steps),
            _tasks(result.whole),
            _facts(result),
            verdict_table(result.verdicts),
        )
    )


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=True)
    return table


def label(steps: StepsResult) -> str:
    """For people."""
    return f"{steps.scene}, cameras" if steps.cameras else steps.scene


def _steps(found: Sequence[StepsResult]) -> Table:
    table = _table("one worker: a control step, p50 / p99 in ms", _STEP_COLUMNS)
    for one in found:
        table.add_row(
            label(one),
            f"{one.http.rate_hz:.0f}",
            *(_pair(timing) for timing in (one.http, one.episode, one.simulation, one.physics)),
            _pair(one.render),
            _pair(one.bare_render),
            f"{one.added_ms:.2f}",
        )
    return table


def _pairs(found: Sequence[StepsResult]) -> Table:
    table = _table("two workers in one request: control steps per second; CPU in ms per request", _PAIR_COLUMNS)
    for one in found:
        workers = one.workers
        table.add_row(
            label(one),
            f"{workers.one.rate_hz:.0f}",
            f"{2 * workers.two.rate_hz:.0f}",
            f"{workers.ratio:.2f}",
            *("" if pair is None else f"{pair.ratio:.2f}" for pair in (one.judged, one.bare_pair)),
            *_cpu(one.cpu_one, one.cpu_two),
        )
    return table


def _cpu(one: CpuResult, two: CpuResult) -> tuple[str, str]:
    return f"{one.client_ms:.2f} / {two.client_ms:.2f}", f"{one.server_ms:.2f} / {two.server_ms:.2f}"


def _pair(timing: Timing | None) -> str:
    return "" if timing is None else f"{timing.p50_us / 1000:.2f} / {timing.p99_us / 1000:.2f}"


def _tasks(whole: WholeResult) -> Table:
    table = _table("oracles without cameras", ("task", "succeeded", "score", "steps"))
    for one in whole.tasks:
        told = f"{one.successes} of {one.episodes}"
        table.add_row(one.task, told, f"{one.mean_score:.2f}", f"{one.mean_steps:.0f}")
    return table


def _facts(result: EvalResult) -> Table:
    table = Table.grid(padding=(0, 2))
    for name, fact in (
        ("evaluation", _whole(result.whole)),
        ("start to ready", ", ".join(f"{one.ready_s:.2f}" for one in result.steps) + " s"),
        ("first reset", ", ".join(f"{one.first_reset_s:.2f}" for one in result.steps) + " s, with a worker's start"),
        ("memory", "; ".join(_memory(one) for one in result.steps)),
        ("pictures", result.renderer),
    ):
        table.add_row(name, fact)
    return table


def _whole(whole: WholeResult) -> str:
    ended = "" if whole.is_complete else f"; it ended early: {whole.problem}"
    return (
        f"{whole.episodes} episodes of {len(whole.tasks)} tasks in {whole.took_s:.0f} s with {whole.workers} "
        f"workers, {whole.steps_per_s:.0f} control steps/s{ended}"
    )


def _memory(steps: StepsResult) -> str:
    memory = steps.memory
    return (
        f"{label(steps)} {max(memory.worker_mb):.0f} MB a worker ({max(memory.worker_own_mb):.0f} its own), "
        f"{memory.server_mb:.0f} the server"
    )
