"""Films of an episode: one mp4 per camera, encoded by ffmpeg in its own process."""

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.errors import UrlabError

FPS = 30
_QUICK = ["-preset", "veryfast", "-threads", "1", "-movflags", "+faststart"]


class NoVideo(UrlabError):
    """A film cannot be made; the message has the reason."""


class Films:
    """The films of one episode in ``folder``. One thread. They have their names only when all is well in the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._encoders: dict[str, Generator[None, Any, None]] = {}

    def add(self, pictures: Mapping[str, NDArray[np.uint8]]) -> None:
        """One frame per camera, (height, width, 3) RGB."""
        for camera, picture in pictures.items():
            if camera not in self._encoders:
                self._encoders[camera] = self._open(camera, picture)
            try:
                self._encoders[camera].send(np.ascontiguousarray(picture))
            except (OSError, RuntimeError, StopIteration) as problem:
                raise NoVideo(f"cannot encode the film of {camera}: {_short(problem)}") from problem

    def close(self) -> None:
        """End the films and give them their names."""
        for camera, encoder in self._encoders.items():
            try:
                encoder.close()
                self._part(camera).replace(self._folder / f"{camera}.mp4")
            except (OSError, RuntimeError) as problem:
                raise NoVideo(f"cannot finish the film of {camera}: {_short(problem)}") from problem

    def discard(self) -> None:
        """End the films and leave nothing behind."""
        for camera, encoder in self._encoders.items():
            with contextlib.suppress(OSError, RuntimeError):
                encoder.close()
            with contextlib.suppress(OSError):
                self._part(camera).unlink(missing_ok=True)

    def _open(self, camera: str, picture: NDArray[np.uint8]) -> Generator[None, Any, None]:
        try:
            import imageio_ffmpeg  # type: ignore[import-untyped]
        except ImportError as problem:
            raise NoVideo("films need imageio-ffmpeg: pip install 'urlab-headless[eval]'") from problem
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            encoder: Generator[None, Any, None] = imageio_ffmpeg.write_frames(
                str(self._part(camera)),
                (picture.shape[1], picture.shape[0]),
                fps=FPS,
                macro_block_size=2,
                output_params=_QUICK,
                ffmpeg_log_level="error",
            )
            encoder.send(None)
        except (OSError, RuntimeError) as problem:
            raise NoVideo(f"ffmpeg cannot begin the film of {camera}: {_short(problem)}") from problem
        return encoder

    def _part(self, camera: str) -> Path:
        return self._folder / f".{camera}.part.mp4"


def _short(problem: BaseException) -> str:
    """Without the line that called ffmpeg, which imageio adds."""
    return " ".join(str(problem).partition("FFMPEG COMMAND")[0].split())[:300]
