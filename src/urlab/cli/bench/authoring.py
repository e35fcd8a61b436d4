"""Building a large scene over the wire, beside what MuJoCo itself needs for it."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco

from urlab.cli.bench.plan import Plan
from urlab.cli.bench.raw import connect
from urlab.cli.bench.results import AuthoringResult
from urlab.cli.bench.spawn import serving
from urlab.cli.bench.stepping import Tick
from urlab_client import URLabClient

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


def measure_authoring(plan: Plan, tick: Tick) -> list[AuthoringResult]:
    """Grids of a one-joint robot, spawned and played by a server that has its model already."""
    results = []
    with TemporaryDirectory(prefix="urlab-bench-") as folder:
        model = Path(folder) / "spinner.xml"
        model.write_text(_ROBOT, encoding="utf-8")
        for cells in plan.grids:
            tick(f"{cells} cells")
            results.append(_measure(model, cells))
    return results


def _measure(model: Path, cells: int) -> AuthoringResult:
    with serving(["floor"]) as server, connect(server.step_endpoint) as client:
        client.sim.stop()
        client.scene.create_level("grid")
        blueprint = client.scene.import_xml(model)
        begin = time.perf_counter()
        client.scene.spawn_grid(blueprint, "cell", min(cells, _PER_ROW), max(1, cells // _PER_ROW))
        spawned = time.perf_counter()
        client.sim.start(timeout_s=_PLAY_LIMIT_S)
        played = time.perf_counter()
        _check(client, cells)
    bare_s = _bare(model, cells)
    return AuthoringResult(
        cells=cells,
        spawn_s=spawned - begin,
        play_s=played - spawned,
        bare_s=bare_s,
        ratio=(played - begin) / bare_s,
        own_us_per_cell=(played - begin - bare_s) / cells * 1e6,
    )


def _check(client: URLabClient, cells: int) -> None:
    client.step()
    if len(client.articulations) != cells:
        raise AssertionError(f"{cells} robots were spawned, and {len(client.articulations)} are there")


def _bare(model: Path, cells: int) -> float:
    """Attach and compile, and nothing else."""
    begin = time.perf_counter()
    robot, root = mujoco.MjSpec.from_file(str(model)), mujoco.MjSpec()
    for cell in range(cells):
        frame = root.worldbody.add_frame(pos=[cell % _PER_ROW, cell // _PER_ROW, 0])
        root.attach(robot.copy(), prefix=f"spinner-{cell}_", frame=frame)
    root.compile()
    return time.perf_counter() - begin
