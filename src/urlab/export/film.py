"""Recordings as films: H.264 in an .mp4 file."""

import os
from pathlib import Path

from urlab.errors import BadValue
from urlab.export.episodes import ExportSource
from urlab.export.formats import Advance, CameraUse, ExportFormat, missing_package
from urlab.files import not_writable, replacing
from urlab.paths import FileKind
from urlab.video import VideoEncoder, ffmpeg

_MARK, _MARK_AT = b"URLB", 12
"""Stands where a file tells the version of its brand, which is for information only and which players pass over."""


def _is_ours(head: bytes) -> bool:
    return head[4:8] == b"ftyp" and head[_MARK_AT : _MARK_AT + len(_MARK)] == _MARK


class Mp4(ExportFormat, name="mp4"):
    """A film of one camera; a second of it is a second of simulated time."""

    kind = FileKind("a film of ours", ".mp4", _is_ours)
    cameras = CameraUse.ONE

    @classmethod
    def check(cls) -> None:
        """It takes ffmpeg, which an extra brings."""
        try:
            ffmpeg()
        except ModuleNotFoundError as missing:
            raise missing_package("mp4", str(missing.name), "video") from missing
        except RuntimeError as absent:
            raise BadValue(f"format mp4 needs ffmpeg: {absent}") from absent

    def write(self, source: ExportSource, path: Path, advance: Advance) -> None:
        """Draw and encode, one picture after the other; none is kept."""
        (pictures,), (episode,) = source.pictures.values(), source.episodes
        with replacing(path, self.kind) as file:
            # ffmpeg opens what is open here: by a name it would follow whatever had taken the file's place.
            opened = Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")
            with VideoEncoder(opened, pictures.size, self.rate_hz) as encoder:
                for frame in episode.frames.tolist():
                    encoder.add(pictures.draw(episode.clip.state(frame)))
                    advance()
            if os.fstat(file.fileno()).st_size <= _MARK_AT + len(_MARK):
                raise not_writable(path, "ffmpeg wrote nothing")
            os.pwrite(file.fileno(), _MARK, _MARK_AT)
