"""Watching one camera: what is asked of it, finding it by its name, and what it sees in numbers."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from urlab.cli.console import WRONG_USE, CommandError, print_json, stdout
from urlab.cli.watch.display import Display, beats, rate_in_json
from urlab.cli.watch.rates import Rate, RateWindow, Tally
from urlab.cli.watch.scene import DEFAULT_REPORT_S
from urlab.cli.watch.server import WatchedServer
from urlab_client import CameraFrame, URLabCameraView
from urlab_wire.pixels import PixelFormat

FIRST_FRAME_S = 10.0
_GLOBAL = "global/"
_SPAN_S = 2.0
_LUMA = np.array([0.2126, 0.7152, 0.0722], dtype=np.float32)
PICTURE = ".png"
DEFAULT_FPS = {".mp4": 30.0, ".gif": 10.0}
DEFAULT_CLIP_S = 5.0
FASTEST_GIF_FPS = 50.0
"""Players take frames that are shown for less than 2/100 s for a mistake, and slow them down."""


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """Show what camera ``name`` sees, or write it to ``out``: one picture or a clip, as the suffix says.

    It ends after ``seconds`` or after ``frames``; ``fps`` is how many frames a second a clip has.
    """

    name: str
    out: Path | None = None
    seconds: float | None = None
    frames: int | None = None
    fps: float | None = None

    @property
    def suffix(self) -> str:
        """Of the file, in small letters; empty without one."""
        return "" if self.out is None else self.out.suffix.lower()

    @property
    def clip_fps(self) -> float:
        """The rate of a clip."""
        return self.fps or DEFAULT_FPS[self.suffix]

    @property
    def clip_frames(self) -> int:
        """The length of a clip in frames, at least one."""
        return self.frames or max(1, round(self.clip_fps * (self.seconds or DEFAULT_CLIP_S)))


def check(order: CaptureOptions) -> CaptureOptions:
    """The order itself; CommandError when it cannot be carried out whatever the server is."""
    suffix = order.suffix
    if order.out is not None and suffix not in (PICTURE, *DEFAULT_FPS):
        clips = " or ".join(DEFAULT_FPS)
        raise _wrong(f"--out {order.out} cannot be written: end it in {PICTURE} (one picture), {clips} (a clip)")
    if order.seconds is not None and order.frames is not None:
        raise _wrong("--seconds and --frames both say when to end: use one of them")
    if order.fps is not None and suffix not in DEFAULT_FPS:
        raise _wrong(f"--fps is for clips: use it with --out FILE that ends in {' or '.join(DEFAULT_FPS)}")
    if suffix == PICTURE and (order.seconds is not None or order.frames is not None):
        raise _wrong(f"a {PICTURE} file holds one picture: leave out --seconds and --frames, or use a clip")
    if suffix == ".gif" and order.clip_fps > FASTEST_GIF_FPS:
        raise _wrong(f"--fps {order.clip_fps:g} is too fast for a .gif file: at most {FASTEST_GIF_FPS:g}, or use .mp4")
    return order


def _wrong(message: str) -> CommandError:
    return CommandError(message, WRONG_USE)


def find_camera(server: WatchedServer, name: str) -> URLabCameraView:
    """The camera of that name: ``prefix/name``, or the bare name where only one has it."""
    trouble = server.trouble()
    if trouble is not None:
        raise CommandError(f"{trouble}: there are no cameras")
    cameras = server.cameras
    short = name.removeprefix(_GLOBAL)
    called = [view for view in cameras.values() if view.short_name == short]
    same = [view for view in called if view.owner] or called
    if short not in cameras and len(same) != 1:
        several = f"several cameras are called {name!r}: {', '.join(view.full_name for view in same)}"
        none = f"there is no camera {name!r}; there are: {', '.join(cameras) or 'none'}"
        raise CommandError(several if same else none, WRONG_USE)
    return cameras[short] if short in cameras else same[0]


@contextmanager
def streaming(server: WatchedServer, name: str) -> Iterator[URLabCameraView]:
    """The camera of that name, fed with what it streams; CommandError when it does not stream."""
    view = find_camera(server, name)
    check_streams(server, view)
    server.start_stream(view)
    try:
        yield view
    finally:
        server.stop_streams()


def check_streams(server: WatchedServer, view: URLabCameraView) -> None:
    """CommandError unless there will be pictures."""
    if server.no_pictures is not None:
        raise CommandError(f"{server.endpoint} draws no pictures: {server.no_pictures}")
    if not view.streams:
        raise CommandError(
            f"camera {view.full_name!r} does not stream: was the server started with --no-camera-streams?"
        )


def first_frame(server: WatchedServer, view: URLabCameraView) -> CameraFrame:
    """The first picture that comes; CommandError when there is none in time."""
    frame = view.wait_for_newer(0, FIRST_FRAME_S)
    if frame is None:
        where = server.stream_endpoint(view.zmq_endpoint or "")
        why = server.trouble() or f"nothing usable came from {where}"
        raise CommandError(f"no picture of {view.full_name!r} within {FIRST_FRAME_S:g} s: {why}")
    return frame


def describe(view: URLabCameraView, frame: CameraFrame) -> str:
    """Name, mode and size, for people."""
    width, height = frame.resolution
    return f"{view.full_name} ({frame.mode.value}, {width}x{height})"


class CameraMonitor:
    """Follows one camera, also over restarts of its server. For one thread."""

    def __init__(self, server: WatchedServer, name: str, view: URLabCameraView, span_s: float | None) -> None:
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

    def sample(self) -> CameraFrame | None:
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
        size = self.view.mode.pixel_format.bytes_per_pixel * width * height
        self._window.add(time.monotonic(), {self._name: Tally(self.received, self.received * size)})


def show_camera(server: WatchedServer, order: CaptureOptions) -> None:
    """Show the numbers of a camera until the order is done, or until Ctrl-C."""
    with streaming(server, order.name) as view, Display(stdout()) as display:
        first_frame(server, view)
        monitor = CameraMonitor(server, order.name, view, _SPAN_S)
        for is_last in _until_done(monitor, order, None):
            display.show(partial(_line, server, monitor, monitor.sample()), is_last=is_last)


def report_camera(server: WatchedServer, order: CaptureOptions) -> None:
    """The same, as one JSON document at the end."""
    with streaming(server, order.name) as view:
        first_frame(server, view)
        monitor = CameraMonitor(server, order.name, view, None)
        begin_s = time.monotonic()
        try:
            for _ in _until_done(monitor, order, DEFAULT_REPORT_S):
                monitor.sample()
        except KeyboardInterrupt:
            pass
        seconds = time.monotonic() - begin_s
        print_json({"endpoint": server.endpoint, "seconds": round(seconds, 3), **_facts(server, monitor)})


def _until_done(monitor: CameraMonitor, order: CaptureOptions, default_s: float | None) -> Iterator[bool]:
    for is_last in beats(order.seconds if order.frames is not None else order.seconds or default_s):
        enough = order.frames is not None and monitor.received >= order.frames
        yield is_last or enough
        if enough:
            return


def _facts(server: WatchedServer, monitor: CameraMonitor) -> dict[str, Any]:
    view, frame = monitor.view, monitor.view.latest
    return {
        "camera": view.full_name,
        "mode": view.mode.value,
        "resolution": list(view.resolution),
        "frames": monitor.received,
        "unusable": view.misfits,
        "interruptions": server.interruptions,
        **rate_in_json(monitor.rate),
        "sim_time_s": None if frame is None else frame.sim_time,
        **({} if frame is None else picture_facts(server, frame)),
    }


def picture_facts(server: WatchedServer, frame: CameraFrame) -> dict[str, Any]:
    """What a picture shows: its mean brightness, its range of depths, or what it is a segmentation of."""
    if frame.mode.pixel_format is PixelFormat.COLOR_BGRA8:
        return {"brightness": round(brightness(frame), 4)}
    if frame.mode.pixel_format is PixelFormat.DEPTH_F32:
        return {"depth_range_m": depth_range_m(frame)}
    names = server.segments(frame.mode.value)
    shares: defaultdict[str, float] = defaultdict(float)
    for colour, share in colours(frame).items():
        shares[names.get(colour, "background")] += share
    return {"shows": {name: round(share, 4) for name, share in shares.items()}}


def _line(server: WatchedServer, monitor: CameraMonitor, frame: CameraFrame | None) -> Text:
    if frame is None or server.status is None:
        return Text(f"{monitor.view.full_name}: waiting for {server.endpoint}", "bold yellow")
    words = [
        describe(monitor.view, frame),
        f"{monitor.rate.hz:.1f} frames/s, {monitor.rate.bytes_per_s / 1e6:.1f} MB/s",
        f"{monitor.received} received",
        *([] if frame.sim_time is None else [f"simulated {frame.sim_time:.3f} s"]),
        *_in_words(picture_facts(server, frame)),
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


def brightness(frame: CameraFrame) -> float:
    """Mean brightness of a colour picture within 0 (black) and 1 (white)."""
    return float((frame.pixels[..., :3].mean(axis=(0, 1)) @ _LUMA) / 255.0)


def depth_range_m(frame: CameraFrame) -> tuple[float, float] | None:
    """The nearest and the farthest depth; None when nothing is in reach."""
    reached = frame.pixels[np.isfinite(frame.pixels)]
    return (float(reached.min()), float(reached.max())) if reached.size else None


def colours(frame: CameraFrame) -> dict[tuple[int, int, int, int], float]:
    """The colours (b, g, r, a) of a segmentation picture, each with its share of the picture, largest first."""
    words = np.ascontiguousarray(frame.pixels).view("<u4")
    found, counts = np.unique(words, return_counts=True)
    pairs = sorted(zip(counts.tolist(), found.tolist(), strict=True), reverse=True)
    return {_bgra(word): count / words.size for count, word in pairs}


def _bgra(word: int) -> tuple[int, int, int, int]:
    blue, green, red, alpha = word.to_bytes(4, "little")
    return blue, green, red, alpha
