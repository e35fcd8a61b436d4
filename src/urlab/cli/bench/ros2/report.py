"""The summary for people."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table

from urlab.cli.bench.report import machine_text, verdict_table
from urlab.cli.bench.results import Timing
from urlab.cli.bench.ros2.plan import LOAD_TITLES, LOADS
from urlab.cli.bench.ros2.results import AgeResult, LoadResult, Ros2Result, Ros2Scene


def print_ros2(result: Ros2Result, console: Console) -> None:
    """What arrives, what it costs, and the bars."""
    console.print(
        Group(
            machine_text(result.machine),
            *(table for scene in result.scenes for table in (_loads(scene), _messages(scene))),
            verdict_table(result.verdicts),
        )
    )


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=index > 0)
    return table


def _loads(scene: Ros2Scene) -> Table:
    words = max(LOADS.values(), key=len)
    title = f"{scene.scene}, physics at {scene.physics_hz:g} Hz: what a subscriber in another process gets"
    table = _table(
        title, ["subscribed", "bridge CPU", "server CPU", *(f"{word} Hz" for word in words), "age ms", "direct"]
    )
    for load in scene.loads:
        table.add_row(
            LOAD_TITLES[load.load],
            f"{load.bridge_cpu_percent:.1f} %",
            f"{load.server_cpu_percent:.1f} %",
            *(_rate(load, word) for word in words),
            _age(load.age),
            _age(load.direct_age),
        )
    return table


def _rate(load: LoadResult, word: str) -> str:
    return f"{load.rates[word].rate_hz:.1f}" if word in load.rates else ""


def _age(age: AgeResult | None) -> str:
    return "" if age is None else f"{age.p50_ms:.2f} / {age.p99_ms:.2f}"


def _messages(scene: Ros2Scene) -> Table:
    title = f"{scene.scene}: one message, p50 / p99 in microseconds"
    table = _table(title, ["message", "bytes", "converted and published", "bytes published", "ours"])
    for one in scene.messages:
        ours_us = one.whole.p50_us - one.bare.p50_us
        table.add_row(one.what, f"{one.size_bytes:,}", _pair(one.whole), _pair(one.bare), f"{ours_us:.0f}")
    table.add_row("state decoded, once for all", "", _pair(scene.decode), "", "")
    return table


def _pair(timing: Timing) -> str:
    return f"{timing.p50_us:.0f} / {timing.p99_us:.0f}"
