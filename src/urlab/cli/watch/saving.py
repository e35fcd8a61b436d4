"""Writing what a camera sees to a file, which appears whole or not at all."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from urlab.cli.complaint import CommandError
from urlab.cli.console import stderr
from urlab.cli.watch.camera import describe, first_frame, streaming
from urlab.cli.watch.formats import CLIPS, ffmpeg, write_png
from urlab.cli.watch.order import PICTURE, CameraOrder
from urlab.cli.watch.pixels import rgb, white_of
from urlab.cli.watch.server import Server
from urlab.cli.watch.spool import SizeChangedError, Spool
from urlab.files import replacing
from urlab_client import CameraFrame, CameraMode, URLabCameraView

STALLED_S = 1.0

Saved = tuple[dict[str, Any], str]
"""What was saved: as plain data, and in a sentence."""


def save(server: Server, order: CameraOrder, out: Path) -> Saved:
    """Write a picture or a clip to ``out``, whose suffix says which."""
    if order.suffix == PICTURE:
        return _save_picture(server, order, out)
    return _save_clip(server, order, out)


def _save_picture(server: Server, order: CameraOrder, out: Path) -> Saved:
    with replacing(out) as file, streaming(server, order.name) as view:
        frame = first_frame(server, view)
        write_png(frame, file)
    facts = {**_facts(server, view, frame, out), "sim_time_s": frame.sim_time}
    note = "; 16 bit, millimetres, 0 where nothing is in reach" if frame.mode is CameraMode.DEPTH else ""
    return facts, f"wrote {out}: {describe(view, frame)}{note}"


def _save_clip(server: Server, order: CameraOrder, out: Path) -> Saved:
    if order.suffix == ".mp4":
        ffmpeg()
    with replacing(out) as file, Spool(out.parent) as spool, _bars() as bars:
        with streaming(server, order.name) as view:
            frame = first_frame(server, view)
            receiver = _Receiver(server, view, spool)
            receiver.receive(order, bars)
        _write(spool, order, file, bars)
        clip = {"frames": len(spool), "pictures": spool.pictures, "fps": order.clip_fps}
    seconds, white_m = clip["frames"] / clip["fps"], receiver.white_m
    facts = {**_facts(server, view, frame, out), **clip, "seconds": round(seconds, 3), "white_m": white_m}
    told = f"{clip['frames']} frames, {seconds:.1f} s at {clip['fps']:g} fps, {clip['pictures']} different pictures"
    note = "" if white_m is None else f"; depth as grey, white from {white_m:.2f} m on"
    return facts, f"wrote {out}: {describe(view, frame)}, {told}{note}"


class _Receiver:
    """Takes the newest frame of a camera at even times, so that a clip plays as fast as it was seen.

    ``white_m`` is the depth that is white, the same in the whole clip; None without depth.
    """

    def __init__(self, server: Server, view: URLabCameraView, spool: Spool) -> None:
        self.white_m: float | None = None
        self._server = server
        self._view = view
        self._spool = spool
        self._shown: CameraFrame | None = None
        self._fresh_s = time.monotonic()

    def receive(self, order: CameraOrder, bars: Progress) -> None:
        """Fill the spool. Ctrl-C ends it early: the clip is then what there is."""
        advance = _bar(bars, f"receiving {self._view.full_name}", order.clip_frames)
        begin_s = time.monotonic()
        try:
            for tick in range(order.clip_frames):
                time.sleep(max(0.0, begin_s + tick / order.clip_fps - time.monotonic()))
                self._take()
                advance()
        except KeyboardInterrupt:
            if not len(self._spool):
                raise

    def _take(self) -> None:
        frame = self._view.latest
        if frame is None or frame is self._shown:
            self._check_for_life()
            self._spool.repeat()
            return
        if frame.mode is CameraMode.DEPTH and self.white_m is None:
            self.white_m = white_of(frame)
        try:
            self._spool.add(rgb(frame, self.white_m))
        except SizeChangedError:
            told = describe(self._view, frame)
            raise CommandError(f"the size of the pictures has changed, it is now {told}: nothing was written") from None
        self._shown, self._fresh_s = frame, time.monotonic()

    def _check_for_life(self) -> None:
        """A slow camera is waited for; one that will not come back is not."""
        if time.monotonic() - self._fresh_s < STALLED_S:
            return
        self._fresh_s = time.monotonic()
        trouble = self._server.trouble()
        if trouble is not None:
            raise CommandError(f"{trouble}: nothing was written")


def _write(spool: Spool, order: CameraOrder, file: BinaryIO, bars: Progress) -> None:
    CLIPS[order.suffix](spool, order.clip_fps, file, _bar(bars, f"writing {order.suffix}", len(spool)))


def _facts(server: Server, view: URLabCameraView, frame: CameraFrame, out: Path) -> dict[str, Any]:
    return {
        "endpoint": server.endpoint,
        "camera": view.full_name,
        "mode": frame.mode.value,
        "resolution": list(frame.resolution),
        "file": str(out),
    }


def _bars() -> Progress:
    console = stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _bar(bars: Progress, title: str, total: int) -> Callable[[], None]:
    task = bars.add_task(title, total=total)
    return lambda: bars.advance(task)
