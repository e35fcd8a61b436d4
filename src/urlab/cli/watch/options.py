"""The options of `urlab watch`, and what they ask of one camera. Nothing here imports the client."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from urlab.cli.console import WRONG_USE, CommandError

StatePort = Annotated[
    int | None,
    typer.Option("--state-port", min=1, max=65535, help="Port of the state stream.", show_default="as it tells"),
]
Robot = Annotated[str | None, typer.Option("--robot", metavar="NAME", help="Watch this robot only.")]
Seconds = Annotated[
    float | None, typer.Option("--seconds", min=0.1, help="How long; else until Ctrl-C, 5 for a clip, 3 with --json.")
]
Camera = Annotated[
    str | None, typer.Option("--camera", metavar="NAME", help="Watch this camera only: ROBOT/CAMERA, or its bare name.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Write what the camera sees: .png (a picture), .mp4 or .gif (a clip)."),
]
Frames = Annotated[int | None, typer.Option("--frames", min=1, help="End after so many frames of the camera.")]
Fps = Annotated[
    float | None,
    typer.Option("--fps", min=0.1, max=240, help="Frames per second of a clip.", show_default="30, .gif 10"),
]
NoCameras = Annotated[
    bool, typer.Option("--no-cameras", help="Leave cameras alone: they are rendered while they are watched.")
]

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
