"""``urlab replay``: a film of a saved recording, without a server."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from urlab.cli import options as opt
from urlab.cli.console import FAILED, WRONG_USE, CommandError, LogLevel, print_json, set_up_logging, stderr, stdout
from urlab.config import default_project
from urlab_wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from urlab.scene.project import Project
    from urlab_client import ExportStatus

File = Annotated[str, typer.Argument(metavar="FILE", help="A recording: a file, or its name in the project.")]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="The film, an .mp4 file.", show_default=False)]
Camera = Annotated[
    str | None,
    typer.Option(
        "--camera",
        metavar="NAME",
        help="A camera of the scene: ROBOT/CAMERA, or its bare name.",
        show_default="one that sees the whole scene",
    ),
]
Size = Annotated[
    str | None,
    typer.Option("--size", metavar="WxH", help="Of the film, in pixels.", show_default="1280x720, or the camera's"),
]
Fps = Annotated[float, typer.Option("--fps", min=1, max=240, help="Pictures per simulated second.")]
From = Annotated[
    float | None, typer.Option("--from", metavar="SECONDS", help="Simulated time to begin at.", show_default=False)
]
To = Annotated[
    float | None, typer.Option("--to", metavar="SECONDS", help="Simulated time to end at.", show_default=False)
]
LevelToShow = Annotated[
    str | None,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="What to show it in: a level's name, or a model file.",
        show_default="the level that it was recorded in",
    ),
]
ProjectDir = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="Project folder.", show_default="per-user data folder")
]

WRONG_CODES = frozenset({ErrorCode.BAD_VALUE, ErrorCode.PATH_NOT_READABLE, ErrorCode.PATH_NOT_WRITABLE})


def replay(
    file: File,
    out: Out,
    camera: Camera = None,
    size: Size = None,
    fps: Fps = 30.0,
    from_s: From = None,
    to_s: To = None,
    level: LevelToShow = None,
    project: ProjectDir = None,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """Make a film of a saved recording. A second of it is a second of simulated time; no server is needed.

    Exit code 1: the film could not be made; 2: there is no such recording, level or camera, or the file may not be
    written.

    Example: [bold]urlab replay episode.json --out film.mp4 --size 640x480[/bold]
    """
    set_up_logging(log_level)
    width, height = read_size(size)
    from urlab.cli.watch.clips import check_ffmpeg

    check_ffmpeg()
    options = {"camera": camera, "width": width, "height": height, "fps": fps, "start": from_s, "end": to_s}
    film = exported("drawing", [file], out, project, level, options)
    _report(film, fps, as_json)


def exported(
    doing: str, files: "Sequence[str]", out: Path, project: Path | None, level: str | None, options: dict[str, Any]
) -> "ExportStatus":
    """Write recordings as one file, in the level that the first is of, with a bar; ``options`` are the client's."""
    from urlab.app import launch, open_project
    from urlab_client import URLabRPCError

    folder = project or default_project()
    found = [found_recording(one, open_project(folder)) for one in files]
    shown = level or level_of(found[0], open_project(folder))
    options = {**options, "also": found[1:]} if len(found) > 1 else options
    with launch(shown, play=False, project=folder) as client:
        try:
            with ProgressBar(doing) as bar:
                return client.recording.export(found[0], out.absolute(), progress=bar.show, **options)
        except URLabRPCError as refused:
            raise CommandError(refused.message, WRONG_USE if refused.code in WRONG_CODES else FAILED) from refused


def read_size(text: str | None) -> tuple[int | None, int | None]:
    """``640x480`` as two numbers."""
    if text is None:
        return None, None
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text.strip().lower())
    if found is None:
        raise CommandError(f"--size {text} is no size: use WIDTHxHEIGHT, as in 640x480", WRONG_USE)
    return int(found[1]), int(found[2])


def found_recording(file: str, project: "Project") -> Path:
    """The recording: a file that is there, or one of that name in the project."""
    from urlab.paths import FileRoots
    from urlab.recording import load_path

    named = Path(file).expanduser()
    path = named.resolve() if named.is_file() else load_path(file, project.replays_dir, FileRoots(own_rights=True))
    if not path.is_file():
        raise CommandError(f"there is no recording {file!r}, neither here nor in {project.replays_dir}", WRONG_USE)
    return path


def level_of(recording: Path, project: "Project") -> str:
    """The level that a recording says it is of."""
    from urlab.recording import read_header
    from urlab.scene.names import level_name

    level = read_header(recording).level
    advice = "say what to show it in: --level LEVEL, a level's name or a model file"
    if level is None:
        raise CommandError(f"{recording.name} does not say in which level it was recorded; {advice}", WRONG_USE)
    if level_name(level) not in project.level_names():
        where = f"{level}, which is not in the project {project.folder}"
        raise CommandError(f"{recording.name} was recorded in {where}; {advice}", WRONG_USE)
    return level


class ProgressBar:
    """A progress bar on a terminal, and nothing elsewhere."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __enter__(self) -> "ProgressBar":
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = stderr()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bars = Progress(*columns, console=console, disable=not console.is_terminal)
        self._bars.start()
        self._task = self._bars.add_task(self._word, total=None)
        return self

    def show(self, status: "ExportStatus") -> None:
        """How far it is now."""
        self.tell(status.done, status.total)

    def tell(self, done: int, total: int) -> None:
        """How far it is now, in numbers."""
        self._bars.update(self._task, completed=done, total=total)

    def __exit__(self, *failure: object) -> None:
        self._bars.stop()


def _report(film: "ExportStatus", fps: float, as_json: bool) -> None:
    facts: dict[str, Any] = {
        "file": str(film.path),
        "frames": film.total,
        "fps": fps,
        "seconds": round(film.total / fps, 3),
        "warnings": film.warnings,
    }
    for warning in film.warnings:
        stderr().print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)
    if as_json:
        print_json(facts)
    else:
        length = f"{facts['frames']} frames, {facts['seconds']:g} s at {fps:g} fps"
        stdout().print(f"wrote {escape(facts['file'])}: {length}", soft_wrap=True)
