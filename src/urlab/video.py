"""Videos: pictures into an H.264 file that every player and browser shows, by ffmpeg in a process of its own."""

import contextlib
import importlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

_EVEN = "pad=ceil(iw/2)*2:ceil(ih/2)*2"
"""H.264 wants even sizes: an odd width or height gets one black line more."""

_COLOURS = (
    "scale=out_color_matrix=bt709:out_range=tv,"
    "setparams=colorspace=bt709:color_primaries=bt709:color_trc=bt709:range=tv"
)
"""How colours are stored, and that the file says so: players guess otherwise, by the size of the picture."""


def ffmpeg() -> str:
    """The program that encodes; ModuleNotFoundError without imageio-ffmpeg, RuntimeError when that finds none."""
    library: Any = importlib.import_module("imageio_ffmpeg")
    return str(library.get_ffmpeg_exe())


class VideoEncoder:
    """Writes one .mp4 file, which is whole after `close`; leaving the context closes it, or kills it on an error.

    ``size`` is (width, height) in pixels, ``options`` are further words for ffmpeg. OSError, with ffmpeg's own words,
    when it cannot be started, fails or gives up. A Ctrl-C does not reach it, and it ends when this process dies. For
    one thread.
    """

    def __init__(self, path: Path, size: tuple[int, int], fps: float, options: Sequence[str] = ()) -> None:
        width, height = size
        command = [
            ffmpeg(), "-y", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
            "-r", f"{fps:g}", "-i", "-", "-an", "-vf", f"{_EVEN},{_COLOURS}", "-c:v", "libx264", "-pix_fmt",
            "yuv420p", *options, "-movflags", "+faststart", "-f", "mp4", str(path),
        ]  # fmt: skip
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the encoder
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=self._complaints, start_new_session=True
        )

    def add(self, picture: NDArray[np.uint8]) -> None:
        """The next frame, (height, width, 3) RGB."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(np.ascontiguousarray(picture).data)
        except BrokenPipeError:  # it has given up, and said why
            self.close()
            raise

    def close(self) -> None:
        """End the file. May be called twice."""
        if self._complaints.closed:
            return
        assert self._process.stdin is not None
        with self._complaints:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            if self._process.wait() != 0:
                self._complaints.seek(0)
                raise OSError(f"ffmpeg: {self._complaints.read().decode(errors='replace').strip()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        if kind is not None:
            self._process.kill()
            with contextlib.suppress(OSError):
                self.close()
        self.close()
