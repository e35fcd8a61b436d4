"""Writing what a camera sees to a file, which appears whole or not at all: a picture, or a clip."""

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from PIL import Image
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from urlab.cli.console import CommandError, stderr
from urlab.cli.watch.camera import PICTURE, CaptureOptions, describe, first_frame, streaming
from urlab.cli.watch.server import WatchedServer
from urlab.files import replacing
from urlab.video import VideoEncoder, ffmpeg
from urlab_client import CameraFrame, URLabCameraView
from urlab_client.handles.frame import rgb_picture
from urlab_wire.pixels import FARTHEST_MM, Bytes, PixelFormat, millimetres, white_of

INSTALL = "pip install 'urlab-headless[video]'"
Advance = Callable[[], None]
"""Called after every frame that was written."""
_CENTISECONDS_PER_S = 100
STALLED_S = 1.0
Saved = tuple[dict[str, Any], str]
"""What was saved: as plain data, and in a sentence."""


class SizeChangedError(Exception):
    """A picture has another size than the one before."""


class Spool:
    """The frames of a clip, in a file without a name that goes when this ends: a clip may be longer than memory.

    A frame that repeats the one before takes no room.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: list[int] = []
        self._shape: tuple[int, ...] | None = None
        self.pictures = 0

    def __enter__(self) -> Self:
        self._file = tempfile.TemporaryFile(dir=self._folder)
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Bytes]:
        """All frames in their order."""
        shape = self._shape or (0, 0, 3)
        size = shape[0] * shape[1] * shape[2]
        for place in self._places:
            self._file.seek(place * size)
            yield np.frombuffer(self._file.read(size), np.uint8).reshape(shape)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        height, width, _ = self._shape or (0, 0, 3)
        return width, height

    def add(self, picture: Bytes) -> None:
        """The next frame."""
        if self._shape not in (None, picture.shape):
            raise SizeChangedError
        self._shape = picture.shape
        self._file.seek(0, 2)
        self._file.write(picture.tobytes())
        self._places.append(self.pictures)
        self.pictures += 1

    def repeat(self) -> None:
        """The same frame once more."""
        self._places.append(self._places[-1])


def write_png(frame: CameraFrame, file: BinaryIO) -> None:
    """One picture: 8 bit colours, or 16 bit depth in millimetres."""
    picture = millimetres(frame.pixels, FARTHEST_MM) if _is_depth(frame) else rgb_picture(frame)
    Image.fromarray(picture).save(file, "PNG")


def write_gif(spool: Spool, fps: float, file: BinaryIO, advance: Advance) -> None:
    """A clip that repeats for ever. The format counts in 1/100 s, so frames are shown for one more or less."""
    ends = [round(_CENTISECONDS_PER_S * place / fps) for place in range(len(spool) + 1)]
    durations_ms = [10 * (end - begin) for begin, end in itertools.pairwise(ends)]
    pictures = _images(spool, advance)
    next(pictures).save(file, "GIF", save_all=True, append_images=pictures, duration=durations_ms, loop=0)


def write_mp4(spool: Spool, fps: float, file: BinaryIO, advance: Advance) -> None:
    """H.264; an odd width or height gets one black line more."""
    with tempfile.NamedTemporaryFile(suffix=".mp4") as encoded:
        with VideoEncoder(Path(encoded.name), spool.size, fps) as encoder:
            for picture in spool:
                encoder.add(picture)
                advance()
        shutil.copyfileobj(encoded, file)


def check_ffmpeg() -> None:
    """CommandError with what to install when nothing can encode."""
    try:
        ffmpeg()
    except ModuleNotFoundError as missing:
        raise CommandError(f"an .mp4 file needs {missing.name}, which is not installed: {INSTALL}") from missing
    except RuntimeError as absent:
        raise CommandError(f"an .mp4 file needs ffmpeg: {absent}") from absent


def _images(spool: Spool, advance: Advance) -> Iterator[Image.Image]:
    for picture in spool:
        yield Image.fromarray(picture)
        advance()


CLIPS: dict[str, Callable[[Spool, float, BinaryIO, Advance], None]] = {".mp4": write_mp4, ".gif": write_gif}


def save(server: WatchedServer, order: CaptureOptions, out: Path) -> Saved:
    """Write a picture or a clip to ``out``, whose suffix says which."""
    if order.suffix == PICTURE:
        return _save_picture(server, order, out)
    return _save_clip(server, order, out)


def _save_picture(server: WatchedServer, order: CaptureOptions, out: Path) -> Saved:
    with replacing(out) as file, streaming(server, order.name) as view:
        frame = first_frame(server, view)
        write_png(frame, file)
    facts = {**_facts(server, view, frame, out), "sim_time_s": frame.sim_time}
    note = "; 16 bit, millimetres, 0 where nothing is in reach" if _is_depth(frame) else ""
    return facts, f"wrote {out}: {describe(view, frame)}{note}"


def _save_clip(server: WatchedServer, order: CaptureOptions, out: Path) -> Saved:
    if order.suffix == ".mp4":
        check_ffmpeg()
    with replacing(out) as file, Spool(out.parent) as spool, _bars() as bars:
        with streaming(server, order.name) as view:
            frame = first_frame(server, view)
            receiver = _Receiver(server, view, spool)
            receiver.receive(order, bars)
        _write(spool, order, file, bars)
        clip = {"frames": len(spool), "pictures": spool.pictures, "fps": order.clip_fps}
    seconds, white_m = clip["frames"] / clip["fps"], receiver.white_m
    facts = {**_facts(server, view, frame, out), **clip, "seconds": round(seconds, 3), "white_m": white_m}
    length = f"{clip['frames']} frames, {seconds:.1f} s at {clip['fps']:g} fps, {clip['pictures']} different pictures"
    note = "" if white_m is None else f"; depth as grey, white from {white_m:.2f} m on"
    return facts, f"wrote {out}: {describe(view, frame)}, {length}{note}"


class _Receiver:
    """Takes the newest frame of a camera at even times, so that a clip plays as fast as it was seen.

    ``white_m`` is the depth that is white, the same in the whole clip; None without depth.
    """

    def __init__(self, server: WatchedServer, view: URLabCameraView, spool: Spool) -> None:
        self.white_m: float | None = None
        self._server = server
        self._view = view
        self._spool = spool
        self._shown: CameraFrame | None = None
        self._fresh_s = time.monotonic()

    def receive(self, order: CaptureOptions, bars: Progress) -> None:
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
        if _is_depth(frame) and self.white_m is None:
            self.white_m = white_of(frame.pixels)
        try:
            self._spool.add(rgb_picture(frame, self.white_m))
        except SizeChangedError:
            now = describe(self._view, frame)
            raise CommandError(f"the size of the pictures has changed, it is now {now}: nothing was written") from None
        self._shown, self._fresh_s = frame, time.monotonic()

    def _check_for_life(self) -> None:
        """A slow camera is waited for; one that will not come back is not."""
        if time.monotonic() - self._fresh_s < STALLED_S:
            return
        self._fresh_s = time.monotonic()
        trouble = self._server.trouble()
        if trouble is not None:
            raise CommandError(f"{trouble}: nothing was written")


def _write(spool: Spool, order: CaptureOptions, file: BinaryIO, bars: Progress) -> None:
    CLIPS[order.suffix](spool, order.clip_fps, file, _bar(bars, f"writing {order.suffix}", len(spool)))


def _facts(server: WatchedServer, view: URLabCameraView, frame: CameraFrame, out: Path) -> dict[str, Any]:
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


def _is_depth(frame: CameraFrame) -> bool:
    return frame.mode.pixel_format is PixelFormat.DEPTH_F32
