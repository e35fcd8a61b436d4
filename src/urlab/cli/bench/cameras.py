"""Steps with a camera, beside a bare renderer; and live physics while cameras stream."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from urlab.app import launch
from urlab.cli.bench.plan import Plan
from urlab.cli.bench.raw import connect
from urlab.cli.bench.render_child import DEFAULT, FAST
from urlab.cli.bench.results import CameraResult
from urlab.cli.bench.spawn import serving
from urlab.cli.bench.stepping import Tick
from urlab.cli.bench.timing import repeat, summarize, time_calls
from urlab_client import URLabClient

SIZES = {"small": (224, 224), "large": (640, 480)}
MODES = ("real", "depth")
_WATCHER = """
<mujoco model="watcher"><worldbody>
  <camera name="small" pos="1.6 -1.2 1.1" xyaxes="0.6 0.8 0 -0.33 0.25 0.91" resolution="224 224"/>
  <camera name="large" pos="1.6 -1.2 1.1" xyaxes="0.6 0.8 0 -0.33 0.25 0.91" resolution="640 480"/>
</worldbody></mujoco>
"""
_SCENE = ("panda", "table", "floor")
_LIMIT_S = 60
_WARM_UP = 3
_TURN = 5
"""Frames in a row. A machine changes its speed many times a second, and ways that took longer turns would differ."""


@dataclass(frozen=True, slots=True)
class View:
    """A camera and what it shows."""

    camera: str
    mode: str

    @property
    def label(self) -> str:
        """For people."""
        width, height = SIZES[self.camera]
        return f"{width}x{height} {self.mode}"


class BareRenderer:
    """The child process that renders with nothing of ours."""

    def __init__(self, mjb: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "urlab.cli.bench.render_child", str(mjb)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"MUJOCO_GL": "egl", **os.environ},
        )

    def time(self, view: View, profile: str, count: int) -> list[int]:
        """Nanoseconds of each of ``count`` steps with a picture."""
        width, height = SIZES[view.camera]
        order = {"camera": f"watcher_{view.camera}", "mode": view.mode, "width": width, "height": height}
        child = self._process
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps({**order, "profile": profile, "count": count}) + "\n")
        child.stdin.flush()
        taken: list[int] = json.loads(child.stdout.readline())
        return taken

    def close(self) -> None:
        """End the child."""
        self._process.communicate(timeout=_LIMIT_S)


class Ways:
    """The same scene in a bare renderer, in an embedded server and in a server process, all with the fast profile."""

    def __init__(self) -> None:
        with ExitStack() as opened:
            folder = Path(opened.enter_context(TemporaryDirectory(prefix="urlab-bench-")))
            (folder / "watcher.xml").write_text(_WATCHER, encoding="utf-8")
            targets = [str(folder / "watcher.xml"), *_SCENE]
            self.embedded = opened.enter_context(launch(targets, project=folder / "project", render_profile="fast"))
            server = opened.enter_context(serving([*targets, "--render-profile", "fast"]))
            self.client = opened.enter_context(connect(server.step_endpoint))
            self.bare = BareRenderer(_saved(self.embedded, folder))
            opened.callback(self.bare.close)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._opened.close()

    def look(self, view: View) -> None:
        """Let every way show that, from the same start on."""
        for client in (self.embedded, self.client):
            client.reset()
            client.runtime.set_camera_mode(_name(view), view.mode)
            repeat(lambda client=client: _step(client, view), _WARM_UP)  # type: ignore[misc]
        self.bare.time(view, FAST, _WARM_UP)


def measure_cameras(plan: Plan, tick: Tick) -> list[CameraResult]:
    """Every size and mode, in short turns."""
    views = [View(camera, mode) for camera in SIZES for mode in MODES]
    with Ways() as ways:
        results = []
        for view in views:
            tick(view.label)
            results.append(_measure(plan, ways, view))
    return results


def _measure(plan: Plan, ways: Ways, view: View) -> CameraResult:
    ways.look(view)
    taken: dict[str, list[int]] = defaultdict(list)
    for _ in range(plan.frame_rounds * plan.frames // _TURN):
        taken["bare"] += ways.bare.time(view, FAST, _TURN)
        taken["inprocess"] += time_calls(lambda: _step(ways.embedded, view), _TURN)
        taken["zmq"] += time_calls(lambda: _step(ways.client, view), _TURN)
    taken["default"] = ways.bare.time(view, DEFAULT, plan.frames)[1:]
    timings: dict[str, Any] = {way: summarize(durations) for way, durations in taken.items()}
    p50 = {way: timing.p50_us for way, timing in timings.items()}
    width, height = SIZES[view.camera]
    return CameraResult(
        width=width,
        height=height,
        mode=view.mode,
        **timings,
        rate_of_bare=p50["bare"] / p50["inprocess"],
        zmq_over_inprocess=p50["zmq"] / p50["inprocess"],
        fast_over_default=p50["default"] / p50["inprocess"],
    )


def _name(view: View) -> str:
    return f"watcher_{view.camera}"


def _step(client: URLabClient, view: View) -> None:
    """A step, and its picture as an array: a bare renderer gives one too."""
    client.step(1, include_cameras={_name(view): "sync"})
    if client.global_cameras[_name(view)].latest_frame is None:
        raise RuntimeError(f"a step with the camera {_name(view)} brought no picture")


def _saved(client: URLabClient, folder: Path) -> Path:
    import mujoco

    path = folder / "scene.mjb"
    mujoco.mj_saveModel(client.model, str(path))
    return path
