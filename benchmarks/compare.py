"""Two source trees in one run: what a change costs or saves, in short bursts that take turns.

Everything is started once for the old tree, the old tree again and the new tree, and stays up. Every round makes some
bursts of each, there and back (ABC, CBA), so that a machine that changes its speed hits all alike; the best one counts.
Reported is the median over the rounds of new / old, and of old again / old: how far that one is from 1 is the noise of
the run.
"""

import http.client
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np

from benchmarks.measuring import BenchmarkError, Plan, SampleCounts, Tick
from benchmarks.processes import Bridge, EvaluationServer, PipeChild, Server
from benchmarks.reporting import Panel, PanelBar, Report, Table

SUBJECTS = {
    "inprocess": "step in process",
    "shm": "step over shared memory",
    "zmq": "step over ZMQ tcp",
    "camera": "step with a 224x224 picture, in process",
    "evaluation": "evaluation step over HTTP, no cameras",
    "ros2": "CPU of the ROS 2 bridge",
}
FULL = Plan(tuple(SUBJECTS), 20, SampleCounts(250, 0, 250), watch_s=0.6)
QUICK = Plan(tuple(SUBJECTS), 6, SampleCounts(150, 0, 150), watch_s=0.4, quick=True)

OLD, AGAIN, NEW = "old", "old again", "new"
_TARGETS = ("panda", "table", "floor")
_CAMERA = "watcher_small"
_CAMERA_MODEL = """<mujoco model="watcher"><worldbody>
  <camera name="small" pos="1.6 -1.2 1.1" xyaxes="0.6 0.8 0 -0.33 0.25 0.91" resolution="224 224"/>
</worldbody></mujoco>"""
_TASK, _ACTION = "panda_cube_on_plate", [0.01, -0.01] * 3 + [0.01, 0.02, 0.02]
_FRAMES_SHARE, _CONTROL_STEPS_SHARE = 50, 12
"""A picture takes as long as so many steps, and so does a control step: their bursts are shorter by that."""

_PASSES = 4
_SETTLE_S = 0.15

Burst = Callable[[], float]
"""Measures something for a moment; the value is in the unit of its subject."""


class Comparison(msgspec.Struct, kw_only=True):
    """One subject: a value of each label per round, in ``unit``; ratios to the old tree have the median over the
    rounds, and the interval in which that median lies with 95 %."""

    subject: str
    unit: str
    rounds: dict[str, list[float]]
    new_over_old: tuple[float, float, float]
    again_over_old: tuple[float, float, float]

    @property
    def verdict(self) -> str:
        """Whether the new tree differs, beyond what the old tree differs from itself."""
        _, low, high = self.new_over_old
        _, noise_low, noise_high = self.again_over_old
        if low > max(1.0, noise_high):
            return "slower"
        return "faster" if high < min(1.0, noise_low) else "same, as far as this run can tell"


def measure(plan: Plan, tick: Tick, *, old: Path, new: Path) -> Report:
    """Each subject by itself: what the others started has ended, and nothing else runs meanwhile."""
    trees = {OLD: old.resolve(), AGAIN: old.resolve(), NEW: new.resolve()}
    for tree in trees.values():
        if not (tree / "src" / "urlab").is_dir():
            raise BenchmarkError(f"{tree} is not a checkout: there is no src/urlab in it")
    found = [_compare(subject, plan, trees, tick) for subject in plan.scenes]
    table = Table("medians over the rounds; intervals of 95 %", ["", OLD, NEW, "new / old", "old / old", ""])
    for one in found:
        values = [f"{np.median(one.rounds[label]):.1f} {one.unit}" for label in (OLD, NEW)]
        ratios = ["{:.3f} ({:.3f} to {:.3f})".format(*ratio) for ratio in (one.new_over_old, one.again_over_old)]
        table.rows.append([SUBJECTS[one.subject], *values, *ratios, one.verdict])
    panel = Panel("new / old", "median over the rounds; mark: old / old", limit=1.0)
    panel.bars = [
        PanelBar(
            SUBJECTS[one.subject],
            [one.new_over_old[0]],
            f"{one.new_over_old[0]:.3f}",
            mark=one.again_over_old[0],
            colour=1,
        )
        for one in found
    ]
    trees_words = {name: str(tree) for name, tree in trees.items() if name != AGAIN}
    return Report(
        title="Two trees in one run",
        data={"trees": trees_words, "subjects": found},
        tables=[table],
        bars=[],
        facts=trees_words,
        panels=[panel],
        across=1,
    )


def _compare(subject: str, plan: Plan, trees: dict[str, Path], tick: Tick) -> Comparison:
    opener = {"evaluation": _open_evaluation, "ros2": _open_bridges}.get(subject, _open_steppers)
    rounds: dict[str, list[float]] = {label: [] for label in trees}
    with ExitStack() as opened:
        tick(f"{subject}: start")
        bursts, unit = opener(subject, plan, trees, opened)
        for burst in bursts.values():
            burst()
        for number in range(plan.rounds):
            tick(f"{subject}: round {number + 1}/{plan.rounds}")
            for label, value in _round(bursts, number, 1 if subject == "ros2" else _PASSES).items():
                rounds[label].append(value)
    return Comparison(
        subject=subject,
        unit=unit,
        rounds=rounds,
        new_over_old=median_ratio(rounds[NEW], rounds[OLD]),
        again_over_old=median_ratio(rounds[AGAIN], rounds[OLD]),
    )


def _round(bursts: dict[str, Burst], number: int, passes: int) -> dict[str, float]:
    """Bursts of each, there and back, of which the best one counts: what disturbs a burst only makes it longer.

    Another label begins in every round. Bursts are short, so that some of them have the cores for themselves.
    """
    labels = list(bursts)
    order = labels[number % len(labels) :] + labels[: number % len(labels)]
    values = [(label, bursts[label]()) for label in (*order, *reversed(order)) * passes]
    return {label: min(value for name, value in values if name == label) for label in labels}


def median_ratio(values: Sequence[float], base: Sequence[float]) -> tuple[float, float, float]:
    """The median of ratios round by round, and its interval of 95 % by order statistics."""
    ratios = np.sort(np.array(values) / np.array(base))
    half = 0.98 * np.sqrt(len(ratios))
    low, high = int(np.floor(len(ratios) / 2 - half)), int(np.ceil(len(ratios) / 2 + half)) - 1
    return float(np.median(ratios)), float(ratios[max(low, 0)]), float(ratios[min(high, len(ratios) - 1)])


# -- subjects -----------------------------------------------------------------------------------------------------


def _child(tree: Path, opened: ExitStack) -> Callable[..., dict[str, Any]]:
    """Asks a client process of that tree; BenchmarkError when it imports another one, or logs a warning."""
    folder = opened.enter_context(TemporaryDirectory(prefix="urlab-bench-"))
    script = str(Path(__file__).with_name("compare_child.py"))
    child = opened.enter_context(PipeChild([sys.executable, "-P", script, folder], source=tree))

    def ask(**order: Any) -> dict[str, Any]:
        answer: dict[str, Any] = child.ask(order)
        if answer["log"] or not str(answer.get("urlab", tree)).startswith(str(tree)):
            raise BenchmarkError(f"{tree}: {answer}")
        return answer

    return ask


def _open_steppers(subject: str, plan: Plan, trees: dict[str, Path], opened: ExitStack) -> tuple[dict[str, Burst], str]:
    """`client.step()`, with an embedded server or with one in a process of its own."""
    folder = Path(opened.enter_context(TemporaryDirectory(prefix="urlab-bench-")))
    (folder / "watcher.xml").write_text(_CAMERA_MODEL, encoding="utf-8")
    count = plan.counts.samples // _FRAMES_SHARE if subject == "camera" else plan.counts.samples
    order = {"camera": _CAMERA} if subject == "camera" else {}
    bursts: dict[str, Burst] = {}
    for label, tree in trees.items():
        ask = _child(tree, opened)
        if subject in ("shm", "zmq"):
            server = opened.enter_context(Server(_TARGETS, source=tree))
            ask(do="open", subject=subject, endpoint=server.step_endpoint)
        else:
            ask(do="open", subject=subject, targets=[str(folder / "watcher.xml"), *_TARGETS])
        bursts[label] = lambda ask=ask: ask(do="burst", subject=subject, count=count, **order)["us"]  # type: ignore[misc]
    return bursts, "us"


def _open_evaluation(_: str, plan: Plan, trees: dict[str, Path], opened: ExitStack) -> tuple[dict[str, Burst], str]:
    """One worker of `urlab eval serve`, with requests of our own."""
    count = plan.counts.samples // _CONTROL_STEPS_SHARE
    bursts: dict[str, Burst] = {}
    for label, tree in trees.items():
        server = opened.enter_context(EvaluationServer(_TASK, 1, cameras=False, source=tree))
        address = urlsplit(server.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        opened.callback(connection.close)
        bursts[label] = lambda connection=connection: _evaluation_burst(connection, count)  # type: ignore[misc]
    return bursts, "us"


def _evaluation_burst(connection: http.client.HTTPConnection, count: int) -> float:
    _post(connection, "/reset", {"worker_ids": ["0"]})
    action = {"0": {"control_type": "joint_position", "action": _ACTION, "is_rel": True}}
    durations = []
    for _ in range(count):
        begin = time.perf_counter_ns()
        _post(connection, "/step", action)
        durations.append(time.perf_counter_ns() - begin)
    return float(np.median(durations)) / 1e3


def _post(connection: http.client.HTTPConnection, path: str, value: Any) -> None:
    connection.request("POST", path, msgspec.msgpack.encode(value), {"Content-Type": "application/msgpack"})
    response = connection.getresponse()
    answer = response.read()
    if response.status != http.client.OK:
        raise BenchmarkError(f"{path} was answered with HTTP {response.status}: {answer[:500]!r}")


def _open_bridges(subject: str, plan: Plan, trees: dict[str, Path], opened: ExitStack) -> tuple[dict[str, Burst], str]:
    """Bridges with a subscriber of clock, joint states and tf each; all servers but one are paused.

    The subscribers are of this tree for both: they are not what is measured.
    """
    from benchmarks.ros2 import free_domains, only_on_this_machine, subscriber_process
    from benchmarks.ros2_child import BEGUN_FILE, SubscriberOrder, Topic

    opened.enter_context(only_on_this_machine())
    topics = [
        Topic("/clock", "rosgraph_msgs/msg/Clock"),
        Topic("/panda/joint_states", "sensor_msgs/msg/JointState"),
        Topic("/tf", "tf2_msgs/msg/TFMessage"),
    ]
    bursts: dict[str, Burst] = {}
    for (label, tree), domain in zip(trees.items(), free_domains(len(trees)), strict=True):
        server = opened.enter_context(Server(["panda", "--step-mode", "live"], source=tree))
        bridge = opened.enter_context(Bridge(server, domain, source=tree))
        subscriber = opened.enter_context(subscriber_process(SubscriberOrder(domain, 0.0, topics)))
        subscriber.read_file(BEGUN_FILE)
        ask = _child(tree, opened)
        ask(do="open", subject=subject, endpoint=server.step_endpoint)
        ask(do="pause", subject=subject, paused=True)
        bursts[label] = lambda ask=ask, bridge=bridge: _bridge_burst(ask, bridge, plan.watch_s)  # type: ignore[misc]
    return bursts, "% of a core"


def _bridge_burst(ask: Callable[..., dict[str, Any]], bridge: Bridge, seconds: float) -> float:
    ask(do="pause", subject="ros2", paused=False)
    time.sleep(_SETTLE_S)
    begin, used = time.perf_counter(), bridge.cpu_s
    time.sleep(seconds)
    percent = 100 * (bridge.cpu_s - used) / (time.perf_counter() - begin)
    ask(do="pause", subject="ros2", paused=True)
    return percent
