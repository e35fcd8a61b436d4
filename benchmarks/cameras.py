"""Steps with a camera beside a bare renderer; and live physics while cameras stream."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import mujoco
import zmq

from benchmarks.bare_child import DEFAULT, FAST, MODEL_FILE
from benchmarks.live_child import ENDPOINTS_FILE, RESULT_FILE, lateness, lateness_words
from benchmarks.measuring import Plan, SampleCounts, Tick, Timing, bar, repeat, summarize, time_calls
from benchmarks.processes import Child, PipeChild, Server, child_module, connect
from benchmarks.reporting import Panel, PanelBar, Report, Table
from benchmarks.scenes import SCENES
from urlab import launch
from urlab_client import URLabClient

_SIZES = {"small": (224, 224), "large": (640, 480)}
_MODES = ("real", "depth")
FULL = Plan(tuple(_SIZES), 8, SampleCounts(25, 3, 5), watch_s=10.0)
QUICK = Plan(tuple(_SIZES), 2, SampleCounts(10, 3, 5), watch_s=2.0, quick=True)

MIN_RATE_OF_BARE = 0.9
MAX_ZMQ_RATIO = 1.2
MIN_FAST_GAIN = 4.0
MAX_REAL_TIME_ERROR = 0.01
MAX_LATENESS_MS = 5.0
_MODEL = """
<mujoco model="watcher"><worldbody>
  <camera name="small" pos="1.6 -1.2 1.1" xyaxes="0.6 0.8 0 -0.33 0.25 0.91" resolution="224 224"/>
  <camera name="large" pos="1.6 -1.2 1.1" xyaxes="0.6 0.8 0 -0.33 0.25 0.91" resolution="640 480"/>
</worldbody></mujoco>
"""
_STREAMED = ("panda/overhead", "panda/wrist")
_GRACE_S = 60.0
_POLL_MS = 200


class CameraResult(msgspec.Struct, kw_only=True):
    """Steps with one picture each; ``bare`` is a bare renderer's with the fast settings, ``default`` with MuJoCo's."""

    width: int
    height: int
    mode: str
    bare: Timing
    inprocess: Timing
    zmq: Timing
    default: Timing

    @property
    def label(self) -> str:
        """For tables."""
        return f"{self.width}x{self.height} {self.mode}"

    @property
    def rate_of_bare(self) -> float:
        """Pictures a second in process over those of a bare renderer, p50."""
        return self.bare.p50_us / self.inprocess.p50_us


def measure(plan: Plan, tick: Tick) -> Report:
    """Every size and mode, in short turns; then two camera streams."""
    found = _measure_steps(plan, tick)
    streaming = _measure_streaming(plan.watch_s, tick)
    slowest = min(found, key=lambda one: one.rate_of_bare)
    largest = [one for one in found if one.width == max(each.width for each in found)]
    zmq_ratio = max(one.zmq.p50_us / one.inprocess.p50_us for one in largest)
    gain = max(one.default.p50_us / one.inprocess.p50_us for one in largest if one.mode == "real")
    size = f"{largest[0].width}x{largest[0].height}"
    name = "live with two camera streams:"
    table = Table(
        "a step with a picture: p50 / p99 in ms", ["", "in process", "over ZMQ", "bare", "bare, default settings"]
    )
    for one in found:
        table.rows.append([one.label, *(timing.pair_ms for timing in (one.inprocess, one.zmq, one.bare, one.default))])
    rates = " and ".join(f"{rate:.1f}" for rate in streaming["frames_hz"])
    factor = streaming["real_time_factor"]
    return Report(
        title="What a picture costs",
        data={"cameras": found, "streaming": streaming},
        tables=[table],
        bars=[
            bar("rate of steps with a camera, in process / bare step and render, p50", slowest.rate_of_bare,
                at_least=MIN_RATE_OF_BARE, note=slowest.label),
            bar(f"the same over ZMQ at {size} / in process, time, p50", zmq_ratio, at_most=MAX_ZMQ_RATIO),
            bar(f"{size} real: MuJoCo's default settings / ours (fast), time, p50", gain, at_least=MIN_FAST_GAIN),
            bar(f"{name} real-time factor, distance from 1", abs(factor - 1), at_most=MAX_REAL_TIME_ERROR, digits=5),
            bar(f"{name} lateness of steps, p99", streaming["lateness"]["p99_ms"], at_most=MAX_LATENESS_MS, unit=" ms"),
        ],
        facts={
            "streaming": f"two cameras at {rates} Hz: real-time factor {factor:.5f}; "
            + lateness_words(streaming["lateness"])
        },
        panels=[_panel(one) for one in found],
        across=2,
    )  # fmt: skip


def _measure_steps(plan: Plan, tick: Tick) -> list[CameraResult]:
    """The same scene in a bare renderer, in an embedded server and in a server process, all with the fast profile."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(TemporaryDirectory(prefix="urlab-bench-")))
        (folder / "watcher.xml").write_text(_MODEL, encoding="utf-8")
        targets = [str(folder / "watcher.xml"), "panda", "table", "floor"]
        embedded = opened.enter_context(launch(targets, project=folder / "project", render_profile="fast"))
        server = opened.enter_context(Server([*targets, "--render-profile", "fast"]))
        remote = opened.enter_context(connect(server.step_endpoint))
        mujoco.mj_saveModel(embedded.model, str(folder / MODEL_FILE))
        bare = opened.enter_context(PipeChild(child_module("bare_child", str(folder))))
        found = []
        for camera in plan.scenes:
            for mode in _MODES:
                tick(f"{camera} {mode}")
                found.append(_measure_view(plan, camera, mode, embedded, remote, bare))
        return found


def _measure_view(
    plan: Plan, camera: str, mode: str, embedded: URLabClient, remote: URLabClient, bare: PipeChild
) -> CameraResult:
    name, (width, height), counts = f"watcher_{camera}", _SIZES[camera], plan.counts
    order = {
        "do": "draw", "cameras": [embedded.model.camera(name).id], "modes": [mode], "step": True,
        "width": width, "height": height, "profile": FAST, "count": counts.turn,
    }  # fmt: skip
    for client in (embedded, remote):
        client.reset()
        client.runtime.set_camera_mode(name, mode)
        repeat(_stepper(client, name), counts.warm_up)
    bare.ask(order)
    taken: dict[str, list[int]] = defaultdict(list)
    for _ in range(plan.rounds * counts.samples // counts.turn):
        taken["bare"] += bare.ask(order)
        taken["inprocess"] += time_calls(_stepper(embedded, name), counts.turn)
        taken["zmq"] += time_calls(_stepper(remote, name), counts.turn)
    taken["default"] = bare.ask({**order, "profile": DEFAULT, "count": counts.samples})[1:]
    timings: dict[str, Any] = {way: summarize(durations) for way, durations in taken.items()}
    return CameraResult(width=width, height=height, mode=mode, **timings)


def _stepper(client: URLabClient, camera: str) -> Callable[[], None]:
    """A step, and its picture as an array: a bare renderer gives one too."""

    def step() -> None:
        client.step(1, include_cameras={camera: "sync"})
        if client.global_cameras[camera].latest_frame is None:
            raise RuntimeError(f"a step with the camera {camera} brought no picture")

    return step


def _measure_streaming(seconds: float, tick: Tick) -> dict[str, Any]:
    """Two cameras with a subscriber each, and one more that subscribes and never reads."""
    tick(f"two camera streams for {seconds:g} s")
    with ExitStack() as opened:
        command = child_module("live_child", str(seconds), "{folder}", "--sockets", *SCENES["demo"])
        child = opened.enter_context(Child(command, ready_file=ENDPOINTS_FILE))
        endpoints = child.said["cameras"]
        context = opened.enter_context(zmq.Context())
        stuck = opened.enter_context(_subscriber(context, endpoints[_STREAMED[0]]))
        stuck.setsockopt(zmq.RCVHWM, 1)
        counters = [_FrameCounter(context, endpoints[name]) for name in _STREAMED]
        for counter in counters:
            opened.callback(counter.finish)
        found = child.read_file(RESULT_FILE, limit_s=seconds + _GRACE_S)
        frames_hz = [counter.finish() for counter in counters]
    return {
        "cameras": list(_STREAMED),
        "watched_s": seconds,
        "real_time_factor": found["real_time_factor"],
        "lateness": lateness(found["late_ms"]),
        "frames_hz": frames_hz,
    }


def _subscriber(context: "zmq.Context[Any]", endpoint: str) -> Any:
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.LINGER, 0)
    socket.subscribe(b"")
    socket.connect(endpoint)
    return socket


class _FrameCounter:
    """Counts the frames of one camera on a thread, until `finish`."""

    def __init__(self, context: "zmq.Context[Any]", endpoint: str) -> None:
        self._context, self._endpoint = context, endpoint
        self._done = threading.Event()
        self._arrived: list[float] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with _subscriber(self._context, self._endpoint) as socket:
            while not self._done.is_set():
                if socket.poll(_POLL_MS) and not socket.recv_multipart()[0].startswith(b"meta/"):
                    self._arrived.append(time.perf_counter())

    def finish(self) -> float:
        """Listen no more; frames per second. May be called twice."""
        self._done.set()
        self._thread.join()
        arrived = self._arrived
        return (len(arrived) - 1) / (arrived[-1] - arrived[0]) if len(arrived) > 1 else 0.0


def _panel(one: CameraResult) -> Panel:
    rows = {"bare": one.bare, "in process": one.inprocess, "over ZMQ": one.zmq, "bare, MuJoCo's settings": one.default}
    bars = [
        PanelBar(name, [timing.p50_us / 1e3], f"{timing.p50_us / 1e3:.1f}", whisker=timing.p99_us / 1e3, colour=row)
        for row, (name, timing) in enumerate(rows.items())
    ]
    return Panel(one.label, "ms, p50 to p99", bars)
