"""The kinds of files that pictures are written to, by their suffix."""

import contextlib
import importlib
import itertools
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from PIL import Image

from urlab.cli.complaint import CommandError
from urlab.cli.watch.pixels import millimetres, rgb
from urlab_client import CameraFrame, CameraMode

if TYPE_CHECKING:
    from urlab.cli.watch.spool import Spool

INSTALL = "pip install 'urlab-headless[video]'"

Advance = Callable[[], None]
"""Called after every frame that was written."""

_CENTISECONDS_PER_S = 100


def write_png(frame: CameraFrame, file: BinaryIO) -> None:
    """One picture: 8 bit colours, or 16 bit depth in millimetres."""
    is_depth = frame.mode is CameraMode.DEPTH
    Image.fromarray(millimetres(frame) if is_depth else rgb(frame)).save(file, "PNG")


def write_gif(spool: "Spool", fps: float, file: BinaryIO, advance: Advance) -> None:
    """A clip that repeats for ever. The format counts in 1/100 s, so frames are shown for one more or less."""
    ends = [round(_CENTISECONDS_PER_S * place / fps) for place in range(len(spool) + 1)]
    durations_ms = [10 * (end - begin) for begin, end in itertools.pairwise(ends)]
    pictures = _images(spool, advance)
    next(pictures).save(file, "GIF", save_all=True, append_images=pictures, duration=durations_ms, loop=0)


def write_mp4(spool: "Spool", fps: float, file: BinaryIO, advance: Advance) -> None:
    """H.264 that every player and browser shows; an odd width or height gets one black line more."""
    width, height = spool.size
    command = [
        ffmpeg(), "-y", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
        "-r", f"{fps:g}", "-i", "-", "-an", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-c:v", "libx264",
        "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", file.name,
    ]  # fmt: skip
    with _encoder(command) as pipe:
        for picture in spool:
            pipe.write(picture.tobytes())
            advance()


def ffmpeg() -> str:
    """The program that encodes; CommandError with what to install when there is none."""
    try:
        library: Any = importlib.import_module("imageio_ffmpeg")
    except ModuleNotFoundError as missing:
        raise CommandError(f"an .mp4 file needs {missing.name}, which is not installed: {INSTALL}") from missing
    try:
        return str(library.get_ffmpeg_exe())
    except RuntimeError as absent:
        raise CommandError(f"an .mp4 file needs ffmpeg: {absent}") from absent


@contextlib.contextmanager
def _encoder(command: list[str]) -> Iterator[IO[bytes]]:
    """A pipe into the encoder, which has done its work when the block ends; OSError with its words when it has not."""
    with tempfile.TemporaryFile() as said:
        # In a session of its own: a Ctrl-C is meant for us, and we decide what becomes of it.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said, start_new_session=True) as process:
            assert process.stdin is not None
            try:
                with contextlib.suppress(BrokenPipeError):  # it has given up, and said why
                    yield process.stdin
                    process.stdin.close()
                process.wait()
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            said.seek(0)
            raise OSError(f"ffmpeg: {said.read().decode(errors='replace').strip()}")


def _images(spool: "Spool", advance: Advance) -> Iterator[Image.Image]:
    for picture in spool:
        yield Image.fromarray(picture)
        advance()


CLIPS: dict[str, Callable[["Spool", float, BinaryIO, Advance], None]] = {".mp4": write_mp4, ".gif": write_gif}
