"""The picture of the bridge's cost, for a page some 900 pixels wide."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from urlab.cli.bench.panels import FAINT, INK, dress, tell
from urlab.cli.bench.ros2.plan import LOAD_TITLES
from urlab.cli.bench.ros2.results import Ros2Result, Ros2Scene

_BLUE, _ORANGE = "#1f6f8b", "#e0a458"
_HEIGHT = 0.5
_SCENE_INCHES, _REST_INCHES = 2.3, 0.9


def draw_ros2(result: Ros2Result, path: Path) -> None:
    """Write a PNG, a row of panels per scene: CPU of the bridge and age of joint states by load, cost by message."""
    rows = len(result.scenes)
    size = (9, _SCENE_INCHES * rows + _REST_INCHES)
    figure, panels = plt.subplots(rows, 3, figsize=size, layout="constrained", squeeze=False, width_ratios=(1, 1, 0.9))
    for row, scene in zip(panels, result.scenes, strict=True):
        _draw_cpu(row[0], scene)
        _draw_age(row[1], scene)
        _draw_messages(row[2], scene)
    figure.suptitle("What the ROS 2 bridge costs", x=0.01, ha="left", fontsize=13, color=INK)
    figure.supxlabel(_footer(result), fontsize=8, color=FAINT)
    figure.savefig(path, dpi=200)
    plt.close(figure)


def _draw_cpu(panel: Any, scene: Ros2Scene) -> None:
    values = [load.bridge_cpu_percent for load in scene.loads]
    panel.barh(range(len(values)), values, _HEIGHT, color=_BLUE)
    for row, value in enumerate(values):
        tell(panel, row, value, f"{value:.0f} %")
    labels = [LOAD_TITLES[load.load].replace(", ", ",\n").replace(" and ", "\nand ", 1) for load in scene.loads]
    dress(panel, f"{scene.scene}: bridge CPU", "percent of a core", labels)
    panel.set_xlim(0, 1.25 * max(values))


def _draw_age(panel: Any, scene: Ros2Scene) -> None:
    """Bars to p50 and whiskers to p99; the mark is the same in a subscriber of the server's own stream."""
    for row, load in enumerate(scene.loads):
        if load.age is None or load.direct_age is None:
            continue
        panel.barh(row, load.age.p50_ms, _HEIGHT, color=_ORANGE)
        panel.hlines(row, load.age.p50_ms, load.age.p99_ms, color=FAINT, linewidth=1.3)
        panel.vlines(load.direct_age.p50_ms, row - 0.6 * _HEIGHT, row + 0.6 * _HEIGHT, color=INK, linewidth=1.8)
        tell(panel, row, load.age.p99_ms, f"{load.age.p50_ms:.1f}, p99 {load.age.p99_ms:.1f}")
    dress(panel, "age of joint_states", "ms, p50 to p99; mark: at the server's stream", [""] * len(scene.loads))
    panel.set_xlim(0, 1.7 * max((load.age.p99_ms for load in scene.loads if load.age is not None), default=1))


def _draw_messages(panel: Any, scene: Ros2Scene) -> None:
    for row, one in enumerate(scene.messages):
        panel.barh(row, one.whole.p50_us, _HEIGHT, color=_BLUE)
        panel.vlines(one.bare.p50_us, row - 0.6 * _HEIGHT, row + 0.6 * _HEIGHT, color=INK, linewidth=1.8)
        tell(panel, row, one.whole.p50_us, f"{one.whole.p50_us:.0f}")
    dress(panel, "cost of a message", "us, p50; mark: bytes alone", [one.what for one in scene.messages])
    panel.set_xlim(0, 1.3 * max(one.whole.p50_us for one in scene.messages))


def _footer(result: Ros2Result) -> str:
    machine, versions = result.machine, result.machine.versions
    return (
        f"live mode, DDS backend. urlab {versions['urlab']}, Cyclone DDS {versions['cyclonedds']}, "
        f"Python {versions['python']}; {machine.cpu}, {machine.cores} cores"
    )
