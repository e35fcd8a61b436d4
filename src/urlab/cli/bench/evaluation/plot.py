"""The picture of what a control step costs, for a page some 900 pixels wide."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from urlab.cli.bench.evaluation.results import EvalResult, StepsResult
from urlab.cli.bench.evaluation.verdicts import MIN_PAIR_RATIO
from urlab.cli.bench.panels import FAINT, INK, dress, tell

_PHYSICS, _SIMULATION, _EPISODE, _RENDER, _HTTP = "#7d8fa0", "#b8c4ce", "#5a9e6f", "#e0a458", "#1f6f8b"
_RED = "#c0392b"
_HEIGHT = 0.5


def draw_eval(result: EvalResult, path: Path) -> None:
    """Write a PNG: where the time of a step goes, without cameras and with them, and what a second worker brings."""
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.6), layout="constrained", width_ratios=(1.2, 1.2, 0.9))
    without = [one for one in result.steps if not one.cameras]
    _draw_steps(panels[0], without, "a control step")
    _draw_steps(panels[1], [one for one in result.steps if one.cameras], "with three cameras")
    _draw_pairs(panels[2], without)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8, title=_footer(result)
    )
    figure.legends[0].get_title().set(fontsize=7, color=FAINT)
    figure.suptitle("Policy evaluation over HTTP", x=0.01, ha="left", fontsize=13, color=INK)
    figure.savefig(path, dpi=200)
    plt.close(figure)


def shares_ms(steps: StepsResult) -> dict[str, float]:
    """The parts of a step, p50, in the order of the bar. Pictures are not more than what they are a part of."""
    physics, simulation, episode = (one.p50_us / 1e3 for one in (steps.physics, steps.simulation, steps.episode))
    drawn = 0.0 if steps.render is None else min(steps.render.p50_us / 1e3, episode - simulation)
    shares = {
        "physics": physics,
        "rest of the simulation": simulation - physics,
        "pictures": drawn,
        "goal and observation": episode - simulation - drawn,
        "HTTP and processes": steps.added_ms,
    }
    return {name: max(value, 0.0) for name, value in shares.items()}


def _draw_steps(panel: Any, found: Sequence[StepsResult], title: str) -> None:
    if not found:
        panel.set_axis_off()
        return
    colors = (_PHYSICS, _SIMULATION, _RENDER, _EPISODE, _HTTP)
    for row, one in enumerate(found):
        left = 0.0
        for (name, value), color in zip(shares_ms(one).items(), colors, strict=True):
            panel.barh(row, value, _HEIGHT, left=left, color=color, label=name if row == 0 else None)
            left += value
        tell(panel, row, left, f"{one.http.rate_hz:.0f}/s")
    dress(panel, title, "ms, p50", [one.scene for one in found])
    panel.set_xlim(0, 1.3 * max(one.http.p50_us / 1e3 for one in found))


def _draw_pairs(panel: Any, found: Sequence[StepsResult]) -> None:
    for row, one in enumerate(found):
        panel.barh(row, one.workers.ratio, _HEIGHT, color=_HTTP)
        if one.bare_pair is not None:
            bare = one.bare_pair.ratio
            panel.vlines(bare, row - 0.6 * _HEIGHT, row + 0.6 * _HEIGHT, color=INK, linewidth=1.8)
        tell(panel, row, max(one.workers.ratio, 2.0), f"{one.workers.ratio:.2f}")
    panel.axvline(MIN_PAIR_RATIO, color=_RED, linewidth=1, linestyle=":")
    dress(panel, "two workers / one", "mark: bare processes", [""] * len(found))
    panel.set_xlim(0, 2.6)


def _footer(result: EvalResult) -> str:
    machine, versions = result.machine, result.machine.versions
    return (
        f"urlab {versions['urlab']}, MuJoCo {versions['mujoco']}, Python {versions['python']}; {machine.cpu}, "
        f"{machine.cores} cores; {result.renderer}"
    )
