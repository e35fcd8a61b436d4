"""What is asked of one camera. Nothing here waits for the client to be imported."""

from dataclasses import dataclass
from pathlib import Path

from urlab.cli.complaint import WRONG_USE, CommandError

PICTURE = ".png"
DEFAULT_FPS = {".mp4": 30.0, ".gif": 10.0}
DEFAULT_CLIP_S = 5.0
FASTEST_GIF_FPS = 50.0
"""Players take frames that are shown for less than 2/100 s for a mistake, and slow them down."""


@dataclass(frozen=True, slots=True)
class CameraOrder:
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


def check(order: CameraOrder) -> CameraOrder:
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
