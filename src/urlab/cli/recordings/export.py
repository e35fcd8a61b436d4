"""``urlab export``: saved recordings in the formats of other tools, without a server."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from urlab.cli import options as opt
from urlab.cli.console import LogLevel, print_json, set_up_logging, stderr, stdout
from urlab.cli.recordings.replay import From, LevelToShow, ProjectDir, Size, exported, read_size

if TYPE_CHECKING:
    from urlab_client import ExportStatus


class ExportWord(StrEnum):
    """The formats of ``--to``; films are made by ``urlab replay``."""

    MCAP = "mcap"
    PARQUET = "parquet"
    HDF5 = "hdf5"
    LEROBOT = "lerobot"


Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Recordings: files, or their names in the project."),
]
To_ = Annotated[ExportWord, typer.Option("--to", help="The format.", show_default=False)]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="PATH", help="The file; of a LeRobot dataset the folder.", show_default=False),
]
Cameras = Annotated[
    list[str] | None,
    typer.Option(
        "--camera",
        metavar="NAME",
        help="Draw what this camera would have seen; may be repeated; none for no camera.",
        show_default="lerobot: all of the scene; other formats: none",
    ),
]
Fps = Annotated[
    float | None,
    typer.Option(
        "--fps", min=1, max=240, help="Samples per simulated second.", show_default="every frame, or 30 for learners"
    ),
]
Task = Annotated[
    str | None,
    typer.Option("--task", metavar="TEXT", help="What is done, in words.", show_default="the recording's name"),
]
Until = Annotated[
    float | None, typer.Option("--until", metavar="SECONDS", help="Simulated time to end at.", show_default=False)
]
_NO_CAMERA = "none"


def export(
    files: Files,
    to: To_,
    out: Out,
    camera: Cameras = None,
    size: Size = None,
    fps: Fps = None,
    task: Task = None,
    from_s: From = None,
    until_s: Until = None,
    level: LevelToShow = None,
    project: ProjectDir = None,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """Write saved recordings as MCAP, Parquet, HDF5 (robomimic's layout) or a LeRobot dataset. No server is needed.

    The file appears when it is whole. A LeRobot export that was killed goes on after the last episode that it had
    finished when the same command is given again.

    Exit code 1: it could not be written; 2: there is no such recording, level or camera, or the file may not be
    written.

    Example: [bold]urlab export wave --to lerobot --out wave_dataset --fps 30 --task "wave"[/bold]
    """
    set_up_logging(log_level)
    width, height = read_size(size)
    cameras = None if camera is None else [one for one in camera if one != _NO_CAMERA]
    options = {"format": to.value, "task": task, "cameras": cameras, "width": width, "height": height, "fps": fps}
    done = exported("exporting", files, out, project, level, {**options, "start": from_s, "end": until_s})
    _report(done, as_json)


def _report(done: "ExportStatus", as_json: bool) -> None:
    facts: dict[str, Any] = {"file": str(done.path), "format": done.format, "frames": done.total}
    facts["warnings"] = done.warnings
    for warning in done.warnings:
        stderr().print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)
    if as_json:
        print_json(facts)
    else:
        stdout().print(f"wrote {escape(facts['file'])}: {facts['frames']} frames as {done.format}", soft_wrap=True)
