"""Building a large scene over the wire, beside what MuJoCo itself needs for it."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import mujoco

from benchmarks.measuring import BenchmarkError, Plan, SampleCounts, Tick, bar
from benchmarks.processes import Server, connect
from benchmarks.reporting import Panel, PanelBar, Report, Table

FULL = Plan(("16", "128", "1024"), 1, SampleCounts(1, 0, 1))
QUICK = Plan(("128", "1024"), 1, SampleCounts(1, 0, 1), quick=True)
"""A scene is a number of robots."""

MAX_RATIO = 2.0
_ROBOT = """
<mujoco model="spinner">
  <worldbody>
    <body name="rotor"><joint name="spin" axis="0 0 1"/><geom name="disc" type="cylinder" size=".1 .02"/></body>
  </worldbody>
  <actuator><motor name="motor" joint="spin"/></actuator>
</mujoco>
"""
_PER_ROW = 32
_PLAY_LIMIT_S = 100.0


class AuthoringResult(msgspec.Struct, kw_only=True):
    """A grid of one-joint robots. ``play_s`` is from asking to play to a client that knows the scene; ``bare_s`` is
    MjSpec's attach and compile of the same scene."""

    robots: int
    spawn_s: float
    play_s: float
    bare_s: float

    @property
    def total_s(self) -> float:
        """Spawned and played."""
        return self.spawn_s + self.play_s


def measure(plan: Plan, tick: Tick) -> Report:
    """Grids of a one-joint robot, spawned and played by a server that has its model already; the best of the rounds."""
    found = []
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        model = Path(folder) / "spinner.xml"
        model.write_text(_ROBOT, encoding="utf-8")
        for scene in plan.scenes:
            tick(f"{scene} robots")
            rounds = [_measure(model, int(scene)) for _ in range(plan.rounds)]
            found.append(min(rounds, key=lambda one: one.total_s / one.bare_s))
    largest = max(found, key=lambda one: one.robots)
    table = Table("a grid of robots: seconds", ["robots", "spawn", "play", "MjSpec alone", "ratio", "ours, us a robot"])
    for one in found:
        words = [f"{value:.3f}" for value in (one.spawn_s, one.play_s, one.bare_s)]
        own_us = (one.total_s - one.bare_s) / one.robots * 1e6
        table.rows.append([str(one.robots), *words, f"{one.total_s / one.bare_s:.2f}", f"{own_us:.0f}"])
    bars = [
        PanelBar(f"{one.robots} robots", [one.spawn_s, one.play_s], f"{one.total_s:.2f}", mark=one.bare_s)
        for one in found
    ]
    name = f"spawn and play {largest.robots:,} robots / MjSpec attach and compile"
    return Report(
        title="Building a scene of many robots",
        data={"authoring": found},
        tables=[table],
        bars=[bar(name, largest.total_s / largest.bare_s, at_most=MAX_RATIO, note=f"{largest.total_s:.2f} s")],
        panels=[Panel("spawned and played", "s; mark: MjSpec alone", bars, legend=("spawn", "play"))],
    )


def _measure(model: Path, robots: int) -> AuthoringResult:
    with Server(["floor"]) as server, connect(server.step_endpoint) as client:
        client.sim.stop()
        client.scene.create_level("grid")
        blueprint = client.scene.import_xml(model)
        begin = time.perf_counter()
        client.scene.spawn_grid(blueprint, "cell", min(robots, _PER_ROW), max(1, robots // _PER_ROW))
        spawned = time.perf_counter()
        client.sim.start(timeout_s=_PLAY_LIMIT_S)
        played = time.perf_counter()
        client.step()
        if len(client.articulations) != robots:
            raise BenchmarkError(f"{robots} robots were spawned, and {len(client.articulations)} are there")
    bare_s = _attach_and_compile(model, robots)
    return AuthoringResult(robots=robots, spawn_s=spawned - begin, play_s=played - spawned, bare_s=bare_s)


def _attach_and_compile(model: Path, robots: int) -> float:
    begin = time.perf_counter()
    robot, root = mujoco.MjSpec.from_file(str(model)), mujoco.MjSpec()
    for number in range(robots):
        frame = root.worldbody.add_frame(pos=[number % _PER_ROW, number // _PER_ROW, 0])
        root.attach(robot.copy(), prefix=f"spinner-{number}_", frame=frame)
    root.compile()
    return time.perf_counter() - begin
