"""What one camera sees, in numbers."""

import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

from rich.text import Text

from urlab.cli.console import print_json, stdout
from urlab.cli.watch.camera import check_streams, describe, find_camera, first_frame, streaming
from urlab.cli.watch.display import Display, beats
from urlab.cli.watch.order import CameraOrder
from urlab.cli.watch.pixels import brightness, colours, depth_range_m
from urlab.cli.watch.report import rate_in_json
from urlab.cli.watch.scene import DEFAULT_REPORT_S
from urlab.cli.watch.server import Server
from urlab.cli.watch.window import Rate, RateWindow, Tally
from urlab_client import CameraFrame, CameraMode, URLabCameraView

_SPAN_S = 2.0


class CameraWatch:
    """Follows one camera, also over restarts of its server. For one thread."""

    def __init__(self, server: Server, name: str, view: URLabCameraView, span_s: float | None) -> None:
        self.view = view
        self._server = server
        self._name = name
        self._handshakes = server.handshakes
        self._window = RateWindow(span_s)
        self._before = 0
        self._count()

    @property
    def received(self) -> int:
        """Pictures that came in all."""
        return self._before + self.view.received

    @property
    def rate(self) -> Rate:
        """Pictures and bytes per second."""
        return self._window.rates().get(self._name, Rate(0.0, 0.0))

    def look(self) -> CameraFrame | None:
        """The newest picture; None until there is one."""
        self._server.tend()
        if self._server.handshakes != self._handshakes and self._server.is_playing:
            self._follow()
        self._count()
        return self.view.latest

    def _follow(self) -> None:
        """The server has built a new scene, or is a new one: its camera may be somewhere else."""
        self._handshakes, self._before = self._server.handshakes, self.received
        self._server.stop_streams()
        self.view = find_camera(self._server, self._name)
        check_streams(self._server, self.view)
        self._server.start_stream(self.view)

    def _count(self) -> None:
        width, height = self.view.resolution
        size = 4 * width * height
        self._window.add(time.monotonic(), {self._name: Tally(self.received, self.received * size)})


def show_camera(server: Server, order: CameraOrder) -> None:
    """Show the numbers of a camera until the order is done, or until Ctrl-C."""
    with streaming(server, order.name) as view, Display(stdout()) as display:
        first_frame(server, view)
        watch = CameraWatch(server, order.name, view, _SPAN_S)
        for is_last in _until_done(watch, order, None):
            display.show(partial(_line, server, watch, watch.look()), is_last=is_last)


def report_camera(server: Server, order: CameraOrder) -> None:
    """The same, as one JSON document at the end."""
    with streaming(server, order.name) as view:
        first_frame(server, view)
        watch = CameraWatch(server, order.name, view, None)
        begin_s = time.monotonic()
        try:
            for _ in _until_done(watch, order, DEFAULT_REPORT_S):
                watch.look()
        except KeyboardInterrupt:
            pass
        seconds = time.monotonic() - begin_s
        print_json({"endpoint": server.endpoint, "seconds": round(seconds, 3), **_facts(server, watch)})


def _until_done(watch: CameraWatch, order: CameraOrder, default_s: float | None) -> Iterator[bool]:
    for is_last in beats(order.seconds if order.frames is not None else order.seconds or default_s):
        enough = order.frames is not None and watch.received >= order.frames
        yield is_last or enough
        if enough:
            return


def _facts(server: Server, watch: CameraWatch) -> dict[str, Any]:
    view, frame = watch.view, watch.view.latest
    return {
        "camera": view.full_name,
        "mode": view.mode.value,
        "resolution": list(view.resolution),
        "frames": watch.received,
        "unusable": view.misfits,
        "interruptions": server.interruptions,
        **rate_in_json(watch.rate),
        "sim_time_s": None if frame is None else frame.sim_time,
        **({} if frame is None else seen(server, frame)),
    }


def seen(server: Server, frame: CameraFrame) -> dict[str, Any]:
    """What a picture shows: its mean brightness, its range of depths, or what it is a segmentation of."""
    if frame.mode is CameraMode.REAL:
        return {"brightness": round(brightness(frame), 4)}
    if frame.mode is CameraMode.DEPTH:
        return {"depth_range_m": depth_range_m(frame)}
    names = server.segments(frame.mode.value)
    shares: defaultdict[str, float] = defaultdict(float)
    for colour, share in colours(frame).items():
        shares[names.get(colour, "background")] += share
    return {"shows": {name: round(share, 4) for name, share in shares.items()}}


def _line(server: Server, watch: CameraWatch, frame: CameraFrame | None) -> Text:
    if frame is None or server.status is None:
        return Text(f"{watch.view.full_name}: waiting for {server.endpoint}", "bold yellow")
    words = [
        describe(watch.view, frame),
        f"{watch.rate.hz:.1f} frames/s, {watch.rate.bytes_per_s / 1e6:.1f} MB/s",
        f"{watch.received} received",
        *([] if frame.sim_time is None else [f"simulated {frame.sim_time:.3f} s"]),
        *_in_words(seen(server, frame)),
    ]
    return Text("   ".join(words))


def _in_words(facts: dict[str, Any]) -> Iterator[str]:
    if "brightness" in facts:
        yield f"brightness {facts['brightness']:.3f}"
    elif "shows" in facts:
        yield ", ".join(f"{name} {share:.1%}" for name, share in facts["shows"].items())
    elif facts["depth_range_m"] is None:
        yield "nothing is in reach"
    else:
        nearest, farthest = facts["depth_range_m"]
        yield f"depth {nearest:.3f} to {farthest:.3f} m"
