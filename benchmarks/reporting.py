"""What became of a measurement, the same way for all benchmarks: tables, a JSON document, a picture of bars."""

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
import psutil
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from benchmarks.measuring import Bar, Plan, Tick, Timing

LIBRARIES = ("urlab-headless", "mujoco", "numpy", "pyzmq")
FORMAT = 2
_INK, _FAINT, _GRID, _RED = "#22303c", "#5f7181", "#e3e8ec", "#c0392b"
COLOURS = ("#7d8fa0", "#1f6f8b", "#e0a458", "#5a9e6f", "#c46a3b", "#b8c4ce")
_HEIGHT = 0.5
_LONGEST_WHISKER = 2.0
"""Of the longest bar: beyond that a whisker is cut, so that one bad percentile does not flatten all bars."""


@dataclass(slots=True)
class Table:
    """Rows of words below a title; the first column is the row's name."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)


@dataclass(slots=True)
class PanelBar:
    """A row of a picture: values one after the other, a whisker up to p99, a mark (a floor), and words at the end."""

    label: str
    values: Sequence[float]
    text: str
    whisker: float | None = None
    mark: float | None = None
    colour: int | None = None


@dataclass(slots=True)
class Panel:
    """Bars below a title; ``legend`` names the values of a bar, ``limit`` is a line to stay on one side of."""

    title: str
    unit: str
    bars: list[PanelBar] = field(default_factory=list)
    legend: Sequence[str] = ()
    limit: float | None = None


@dataclass(slots=True)
class Report:
    """What a benchmark found: ``data`` goes into the document, the rest is shown. ``across`` is panels in a row."""

    title: str
    data: dict[str, Any]
    tables: list[Table]
    bars: list[Bar]
    facts: dict[str, str] = field(default_factory=dict)
    panels: list[Panel] = field(default_factory=list)
    across: int = 3
    libraries: Sequence[str] = ()


# -- running ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished run: its report, and the document that is written."""

    name: str
    report: Report
    document: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether every bar was."""
        return all(one.passed for one in self.report.bars)


def run(name: str, measure: Callable[[Plan, Tick], Report], plan: Plan, console: Console) -> Outcome:
    """Measure, with what is being measured on the console; it is drawn between measurements only."""
    started, begin, load_before = datetime.now(UTC), time.perf_counter(), os.getloadavg()[0]
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(None),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
        task = progress.add_task(name, total=None, now="")
        report = measure(plan, lambda now: progress.update(task, now=now, refresh=True))
    document = {
        "format": FORMAT,
        "benchmark": name,
        "started": started.isoformat(timespec="seconds"),
        "duration_s": time.perf_counter() - begin,
        "plan": asdict(plan),
        "machine": describe_machine(load_before, report.libraries),
        **report.data,
        "bars": report.bars,
        "passed": all(one.passed for one in report.bars),
    }
    return Outcome(name, report, document)


def describe_machine(load_before: float, libraries: Sequence[str] = ()) -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "cpu": _cpu_model(),
        "cores": psutil.cpu_count() or 1,
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
        "versions": {"python": platform.python_version(), **{one: _version(one) for one in (*LIBRARIES, *libraries)}},
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(errors="replace").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


# -- tables and files ---------------------------------------------------------------------------------------------


def show(outcome: Outcome, console: Console) -> None:
    """Machine, tables, facts and bars."""
    console.print(Text(_machine_words(outcome.document["machine"])))
    for table in outcome.report.tables:
        console.print(_rich(table))
    facts = RichTable.grid(padding=(0, 2))
    for name, words in {**outcome.report.facts, "run": f"{outcome.document['duration_s']:.0f} s"}.items():
        facts.add_row(name, words)
    console.print(facts)
    if not outcome.report.bars:
        return
    bars = _rich(Table("bars", ("what", "bar", "found", "")), right=False)
    for one in outcome.report.bars:
        bars.add_row(one.name, one.limit, one.shown, Text("pass", "green") if one.passed else Text("fail", "red"))
    console.print(bars)


def _machine_words(machine: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    busy = machine["load_before"] > machine["cores"] / 4
    return (
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load_before']:.2f} before and "
        f"{machine['load_after']:.2f} after{'; it was busy before it began: expect noise' if busy else ''}\n{versions}"
    )


def _rich(table: Table, *, right: bool = True) -> RichTable:
    drawn = RichTable(title=table.title, title_justify="left")
    for index, name in enumerate(table.columns):
        drawn.add_column(name, justify="right" if right and index else "left", no_wrap=right)
    for row in table.rows:
        drawn.add_row(*row)
    return drawn


def write(outcome: Outcome, folder: Path, console: Console) -> str:
    """Leave the document and the picture in a folder; the document's text."""
    text = msgspec.json.format(msgspec.json.encode(outcome.document), indent=2).decode()
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{outcome.name}.json"]
    written[0].write_text(text + "\n", encoding="utf-8")
    if outcome.report.panels:
        picture = folder / f"{outcome.name}.png"
        try:
            draw(outcome, picture)
            written.append(picture)
        except ModuleNotFoundError as missing:
            print(f"No picture, since {missing.name} is not installed: pip install {missing.name}", file=sys.stderr)
    console.print("Wrote " + " and ".join(str(path) for path in written), markup=False)
    return text


# -- pictures -----------------------------------------------------------------------------------------------------


def timing_bar(label: str, timing: Timing, *, mark: float | None = None, colour: int | None = None) -> PanelBar:
    """A bar to p50 with a whisker to p99, in microseconds."""
    text = f"{timing.p50_us:.0f}, p99 {timing.p99_us:.0f}"
    return PanelBar(label, [timing.p50_us], text, whisker=timing.p99_us, mark=mark, colour=colour)


def draw(outcome: Outcome, path: Path) -> None:
    """Write a PNG of all panels, for a page some 900 pixels wide."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Rectangle

    panels, across = outcome.report.panels, min(outcome.report.across, len(outcome.report.panels))
    rows = -(-len(panels) // across)
    tallest = max(len(panel.bars) for panel in panels)
    figure, axes = plt.subplots(
        rows, across, figsize=(max(9.0, 3.4 * across), (0.45 * tallest + 1.1) * rows + 0.6), layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for place in axes.flat[len(panels) :]:
        place.set_axis_off()
    for axis, panel in zip(axes.flat, panels, strict=False):
        _draw_bars(axis, panel)
        _style(axis, panel)
    footer = _footer(outcome.document["machine"])
    named = next((panel for panel in panels if panel.legend), None)
    if named is None:
        figure.supxlabel(footer, fontsize=7, color=_FAINT)
    else:
        handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS[: len(named.legend)]]
        legend = figure.legend(
            handles, named.legend, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8
        )
        legend.set_title(footer)
        legend.get_title().set(fontsize=7, color=_FAINT)
    figure.suptitle(outcome.report.title, x=0.01, ha="left", fontsize=13, color=_INK)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _draw_bars(axis: Any, panel: Panel) -> None:
    longest = max(
        *(sum(bar.values) for bar in panel.bars), *(bar.mark or 0.0 for bar in panel.bars), panel.limit or 0.1
    )
    whiskers = [bar.whisker for bar in panel.bars if bar.whisker is not None]
    end = 1.03 * max(longest, min(max(whiskers, default=0.0), _LONGEST_WHISKER * longest))
    for row, bar in enumerate(panel.bars):
        left = 0.0
        for index, value in enumerate(bar.values):
            colour = COLOURS[(index if bar.colour is None else bar.colour) % len(COLOURS)]
            axis.barh(row, value, _HEIGHT, left=left, color=colour)
            left += value
        if bar.whisker is not None:
            axis.hlines(row, left, min(bar.whisker, end), color=_FAINT, linewidth=1.3)
            if bar.whisker > end:
                axis.plot(end, row, ">", color=_FAINT, markersize=4, clip_on=False)
        if bar.mark is not None:
            axis.vlines(bar.mark, row - 0.6 * _HEIGHT, row + 0.6 * _HEIGHT, color=_INK, linewidth=1.8)
        reach = max(left, min(bar.whisker or 0.0, end), bar.mark or 0.0)
        axis.annotate(bar.text, (reach, row), (4, 0), textcoords="offset points", va="center", fontsize=8, color=_INK)
    axis.set_xlim(0, 1.6 * end)
    axis.set_yticks(range(len(panel.bars)), [bar.label for bar in panel.bars], fontsize=8, color=_INK)
    axis.set_ylim(len(panel.bars) - 0.5, -0.5)


def _style(axis: Any, panel: Panel) -> None:
    if panel.limit is not None:
        axis.axvline(panel.limit, color=_RED, linewidth=1, linestyle=":")
    axis.set_title(panel.title, loc="left", fontsize=10, color=_INK, fontweight="bold")
    axis.set_xlabel(panel.unit, fontsize=8, color=_FAINT)
    axis.tick_params(labelsize=8, colors=_FAINT)
    axis.tick_params(axis="y", length=0, colors=_INK)
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.xaxis.grid(True, color=_GRID, linewidth=0.8)
    axis.set_axisbelow(True)


def _footer(machine: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return f"{machine['cpu']}, {machine['cores']} cores; {versions}"
