"""The picture of a run."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import ScalarFormatter

from urlab.cli.bench.results import BenchResult, StepResult
from urlab.cli.bench.verdicts import MAX_RATIO

_ECHO, _PLAIN, _RAW, _CLIENT, _EMBEDDED = "#b8c4ce", "#7d8fa0", "#1f6f8b", "#d9822b", "#5a9e6f"


def draw(result: BenchResult, path: Path) -> None:
    """Write a PNG."""
    figure, ((floors, ways), (lateness, memory)) = plt.subplots(
        2, 2, figsize=(14, 9.5), layout="constrained", width_ratios=(3, 2), height_ratios=(3, 2)
    )
    _draw_floors(floors, result.stepping)
    _draw_ways(ways, result.stepping)
    _draw_lateness(lateness, result)
    _draw_memory(memory, result)
    for panel in (floors, ways, lateness, memory):
        panel.spines[["top", "right"]].set_visible(False)
    machine = result.machine
    figure.suptitle(
        f"urlab {machine.versions['urlab']}, MuJoCo {machine.versions['mujoco']}, Python {machine.versions['python']}: "
        f"{machine.cpu}, {machine.cores} cores, load {machine.load_before:.2f}"
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _labels(cases: list[StepResult]) -> list[str]:
    return [f"{case.scene} {case.observations} step({case.n_steps})" for case in cases]


def _legend_below(panel: Any, columns: int) -> None:
    panel.legend(loc="upper left", bbox_to_anchor=(0, -0.1), ncols=columns, frameon=False, fontsize=9)


def _draw_floors(panel: Any, cases: list[StepResult]) -> None:
    """The two floors stacked, the request beside them, and the ratio of the two at the end of the bar."""
    echo, plain = [case.echo.p50_us for case in cases], [case.plain.p50_us for case in cases]
    raw = [case.raw_zmq.p50_us for case in cases]
    rows = range(len(cases))
    above, below = [row - 0.2 for row in rows], [row + 0.2 for row in rows]
    panel.barh(below, echo, 0.36, color=_ECHO, label="floor: bare echo, same sizes")
    panel.barh(below, plain, 0.36, left=echo, color=_PLAIN, label="floor: plain mj_step loop, same state")
    woken = [case.echo.p50_us + case.plain_woken.p50_us for case in cases]
    panel.plot(woken, below, "|", color="black", markersize=9, label="floors on a processor that has just slept")
    panel.barh(above, raw, 0.36, color=_RAW, label="step request over ZMQ")
    for row, case, value in zip(above, cases, raw, strict=True):
        colour = "black" if case.ratio <= MAX_RATIO else "#c0392b"
        panel.annotate(f" x {case.ratio:.2f}", (value, row), va="center", color=colour, fontweight="bold", fontsize=9)
    panel.set_yticks(rows, _labels(cases))
    panel.invert_yaxis()
    panel.margins(x=0.12)
    panel.set_xlabel("p50, microseconds")
    panel.set_title(f"A step request against its floors (bar: x {MAX_RATIO})", loc="left")
    _legend_below(panel, 2)


def _draw_ways(panel: Any, cases: list[StepResult]) -> None:
    """p50 as a dot, a line to p99."""
    ways = (("raw_zmq", "raw, ZMQ", _RAW), ("client_zmq", "URLabClient, ZMQ", _CLIENT))
    for offset, (way, label, colour) in enumerate((*ways, ("client_inprocess", "URLabClient, in process", _EMBEDDED))):
        timings = [getattr(case, way) for case in cases]
        rows = [row + 0.22 * (offset - 1) for row in range(len(cases))]
        p50, p99 = [timing.p50_us for timing in timings], [timing.p99_us for timing in timings]
        panel.hlines(rows, p50, p99, color=colour, linewidth=2, alpha=0.5)
        panel.plot(p50, rows, "o", color=colour, markersize=5, label=label)
    panel.set_yticks(range(len(cases)), _labels(cases))
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(ScalarFormatter())
    panel.set_xlabel("p50 (dot) to p99 (line), microseconds")
    panel.set_title("Ways to ask", loc="left")
    _legend_below(panel, 1)


def _draw_lateness(panel: Any, result: BenchResult) -> None:
    late, pacing = result.pacing.lateness, result.pacing
    panel.plot(late.quantiles_ms, range(101), color=_RAW)
    panel.axhline(99, color=_PLAIN, linewidth=0.8, linestyle=":")
    told = f"p50 {late.p50_ms:.2f} ms\np99 {late.p99_ms:.2f} ms\nmax {late.max_ms:.2f} ms"
    panel.text(0.97, 0.08, told, transform=panel.transAxes, ha="right")
    panel.set_xscale("symlog", linthresh=0.1)
    panel.set_xlim(left=0)
    panel.set_xlabel("lateness of a live step, milliseconds (linear below 0.1)")
    panel.set_ylabel("percent of steps")
    panel.set_title(
        f"Live at {1000 * pacing.timestep_s:g} ms, {pacing.scene}: real-time factor {pacing.real_time_factor:.4f}, "
        f"{pacing.cpu_live_percent:.0f} % CPU",
        loc="left",
    )


def _draw_memory(panel: Any, result: BenchResult) -> None:
    soak = result.soak
    panel.plot([steps / 1000 for steps in soak.rss_steps], soak.rss_mb, color=_RAW)
    panel.set_ylim(0, 1.25 * max([*soak.rss_mb, 1.0]))
    panel.set_xlabel("thousand requests")
    panel.set_ylabel("resident memory, MB")
    panel.set_title(f"Soak, {soak.scene}: {soak.errors} errors, {soak.growth_mb:+.2f} MB", loc="left")
