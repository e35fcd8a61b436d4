"""The picture of a comparison, for a page some 900 pixels wide."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from urlab.cli.bench.results import Timing
from urlab.cli.bench.transports.plan import ECHOES, TRANSPORTS
from urlab.cli.bench.transports.results import TransportsCase, TransportsResult
from urlab.cli.bench.transports.verdicts import is_judged

_COLOURS = {"inprocess": "#5a9e6f", "shm": "#1f6f8b", "ipc": "#e0a458", "tcp": "#c46a3b"}
_INK, _FAINT, _GRID = "#22303c", "#5f7181", "#e3e8ec"
_SCENES = {"arm": "arm", "quadruped": "quadruped", "hundred": "100 bodies"}
_PLAIN = "#9aa8b4"
_HEIGHT = 0.42
_FLOOR = "floor: bare echo + mj_step loop"
_LONGEST_WHISKER = 2.0
"""Of the longest bar: beyond that a whisker is cut, so that one bad percentile does not flatten all bars."""


def draw_transports(result: TransportsResult, path: Path) -> None:
    """Write a PNG: one step with standard observations, a panel per scene and a bar per transport.

    The first bar is the plain ``mj_step`` loop, which has neither server nor client.
    """
    cases = [case for case in result.cases if is_judged(case)]
    figure, panels = plt.subplots(
        1, len(cases), figsize=(9, 4.4), layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    end_us = _end_us(cases)
    for panel, case in zip(panels[0], cases, strict=True):
        _draw_scene(panel, case, end_us)
    rows = ["mj_step loop", *TRANSPORTS.values()]
    panels[0][0].set_yticks(range(len(rows)), rows, fontsize=11, color=_INK)
    panels[0][0].set_ylim(len(rows) - 0.6, -0.8)
    figure.suptitle("What one step costs a client, by transport", x=0.01, ha="left", fontsize=13, color=_INK)
    _add_legend(figure, panels[0][-1])
    figure.supxlabel(_footer(result), fontsize=8, color=_FAINT)
    figure.savefig(path, dpi=200)
    plt.close(figure)


def _end_us(cases: Sequence[TransportsCase]) -> float:
    """Where the axis ends: after all whiskers, or where they are cut."""
    steps = [client.step for case in cases for client in case.clients.values()]
    return 1.04 * min(max(step.p99_us for step in steps), _LONGEST_WHISKER * max(step.p50_us for step in steps))


def _draw_scene(panel: Any, case: TransportsCase, end_us: float) -> None:
    _draw_bar(panel, 0, case.plain, _PLAIN, end_us)
    for row, transport in enumerate(TRANSPORTS, 1):
        _draw_bar(panel, row, case.clients[transport].step, _COLOURS[transport], end_us)
        if transport in ECHOES:
            floor_us = case.echoes[transport].p50_us + case.plain.p50_us
            panel.vlines(floor_us, row - 0.6 * _HEIGHT, row + 0.6 * _HEIGHT, color=_INK, linewidth=1.8)
    _dress(panel, _SCENES.get(case.scene, case.scene), end_us)


def _draw_bar(panel: Any, row: int, timing: Timing, colour: str, end_us: float) -> None:
    """A bar to p50, a whisker to p99, and both in words above."""
    panel.barh(row, timing.p50_us, _HEIGHT, color=colour)
    _draw_whisker(panel, row, timing.p50_us, timing.p99_us, end_us)
    told = panel.annotate(
        f"{timing.p50_us:.0f} µs", (0, row - 0.65 * _HEIGHT), (2, 2), textcoords="offset points", fontsize=10,
        color=_INK, fontweight="bold",
    )  # fmt: skip
    panel.annotate(
        f"p99 {timing.p99_us:.0f}", (1, 0), (6, 0), xycoords=told, textcoords="offset points", fontsize=9,
        color=_FAINT, va="bottom",
    )  # fmt: skip


def _draw_whisker(panel: Any, row: int, begin_us: float, p99_us: float, end_us: float) -> None:
    cut = p99_us > end_us
    panel.hlines(row, begin_us, min(p99_us, end_us), color=_FAINT, linewidth=1.3)
    if cut:
        panel.plot(end_us, row, ">", color=_FAINT, markersize=5, clip_on=False)
    else:
        panel.vlines(p99_us, row - _HEIGHT / 4, row + _HEIGHT / 4, color=_FAINT, linewidth=1.3)


def _dress(panel: Any, title: str, end_us: float) -> None:
    panel.set_title(title, loc="left", fontsize=11, color=_INK, fontweight="bold")
    panel.set_xlim(0, end_us)
    panel.set_xlabel("microseconds", fontsize=9, color=_FAINT)
    panel.tick_params(axis="x", labelsize=9, colors=_FAINT)
    panel.tick_params(axis="y", length=0)
    panel.spines[["top", "right", "bottom"]].set_visible(False)
    panel.xaxis.grid(True, color=_GRID, linewidth=0.8)
    panel.set_axisbelow(True)


def _add_legend(figure: Any, panel: Any) -> None:
    whisker = panel.plot([], [], "-|", color=_FAINT, linewidth=1.3, markersize=7, label="p50 to p99")[0]
    floor = panel.plot([], [], "|", color=_INK, markersize=12, markeredgewidth=1.8, label=_FLOOR)[0]
    figure.legend(
        handles=[whisker, floor], loc="upper right", ncols=2, frameon=False, fontsize=9, labelcolor=_INK,
        borderaxespad=0.4, handlelength=1.6,
    )  # fmt: skip


def _footer(result: TransportsResult) -> str:
    machine, versions = result.machine, result.machine.versions
    return (
        f"client.step(1), standard observations, direct mode. urlab {versions['urlab']}, MuJoCo {versions['mujoco']}, "
        f"Python {versions['python']}; {machine.cpu}, {machine.cores} cores"
    )
