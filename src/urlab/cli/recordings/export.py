"""``urlab export``: saved recordings and evaluation runs in the formats of other tools, without a server."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from urlab.cli import options as opt
from urlab.cli.console import FAILED, WRONG_USE, CommandError, LogLevel, print_json, set_up_logging, stderr, stdout
from urlab.cli.recordings.replay import (
    WRONG_CODES,
    From,
    LevelToShow,
    ProgressBar,
    ProjectDir,
    Size,
    exported,
    read_size,
)
from urlab.errors import UrlabError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from urlab.evaluation.exporting import ExportedRun


class ExportWord(StrEnum):
    """The formats of ``--to``; films are made by ``urlab replay``."""

    MCAP = "mcap"
    PARQUET = "parquet"
    HDF5 = "hdf5"
    LEROBOT = "lerobot"


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...", help="Recordings: files, or their names in the project. Or the folder of one evaluation run."
    ),
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
        show_default="lerobot: all of the scene, or of the policy; other formats: none",
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
    typer.Option(
        "--task", metavar="TEXT", help="What is done, in words.", show_default="the recording's name; the instruction"
    ),
]
Until = Annotated[
    float | None, typer.Option("--until", metavar="SECONDS", help="Simulated time to end at.", show_default=False)
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="TASK", help="Of a run, the episodes of this task; may be repeated."),
]
Successful = Annotated[bool, typer.Option("--successful", help="Of a run, the episodes that succeeded.")]
TaskFiles = Annotated[
    list[Path] | None,
    typer.Option("--task-file", metavar="FILE", help="The file of a task of the run that is not shipped."),
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
    only: Only = None,
    successful: Successful = False,
    task_file: TaskFiles = None,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """Write saved recordings, or an evaluation run, as MCAP, Parquet, HDF5 (robomimic's layout) or a LeRobot dataset.

    No server is needed. Of a run, every control step is a sample: what the policy was shown, and the action that it
    sent. What its cameras saw is drawn from the states that the run has kept.

    The file appears when it is whole. A LeRobot export that was killed goes on after the last episode that it had
    finished when the same command is given again.

    Exit code 1: it could not be written; 2: there is no such recording, run, level or camera, or the file may not be
    written.

    Example: [bold]urlab export wave --to lerobot --out wave_dataset --fps 30 --task "wave"[/bold]; a run:
    [bold]urlab export eval-results/urlab/monday --to lerobot --out monday_dataset --successful[/bold]
    """
    set_up_logging(log_level)
    width, height = read_size(size)
    cameras = None if camera is None else [one for one in camera if one != _NO_CAMERA]
    of_runs = {"--only": only, "--successful": successful or None, "--task-file": task_file}
    of_recordings = {"--fps": fps, "--from": from_s, "--until": until_s, "--level": level, "--project": project}
    if any(Path(one).is_dir() for one in files):
        _refuse(of_recordings, "is for recordings: a run has its own rate, scenes and episodes")
        of_run = {"cameras": cameras, "size": None if width is None else (width, height), "task": task}
        made = _export_run(files, to, out, (tuple(only or ()), successful), task_file or [], of_run)
        _report(made.frames, made.path, made.format, made.warnings, as_json, {"episodes": made.episodes})
        return
    _refuse(of_runs, f"is for evaluation runs, and {files[0]} is no folder")
    options = {"format": to.value, "task": task, "cameras": cameras, "width": width, "height": height, "fps": fps}
    done = exported("exporting", files, out, project, level, {**options, "start": from_s, "end": until_s})
    _report(done.total, done.path, done.format, done.warnings, as_json)


def _refuse(options: "Mapping[str, object]", why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise CommandError(f"{name} {why}", WRONG_USE)


def _export_run(
    files: list[str],
    to: ExportWord,
    out: Path,
    chosen: tuple[tuple[str, ...], bool],
    task_files: list[Path],
    options: dict[str, Any],
) -> "ExportedRun":
    from urlab.evaluation.exporting import RunSelection, export_run
    from urlab.evaluation.runs.results import RunFolderError
    from urlab.evaluation.tasks.task import load_task

    if len(files) > 1:
        raise CommandError(f"a run is exported alone, but {len(files)} files and folders are named", WRONG_USE)
    selection = RunSelection(*chosen)
    try:
        own = [load_task(one) for one in task_files]
        with ProgressBar("exporting") as bar:
            return export_run(
                Path(files[0]), out, to.value, chosen=selection, own_tasks=own, progress=bar.tell, **options
            )
    except RunFolderError as wrong:
        raise CommandError(str(wrong), WRONG_USE) from wrong
    except UrlabError as refused:
        raise CommandError(refused.message, WRONG_USE if refused.code in WRONG_CODES else FAILED) from refused


def _report(
    frames: int, path: object, word: str, warnings: "Sequence[str]", as_json: bool, more: dict[str, Any] | None = None
) -> None:
    facts: dict[str, Any] = {"file": str(path), "format": word, **(more or {}), "frames": frames}
    facts["warnings"] = warnings
    for warning in warnings:
        stderr().print(f"[yellow]warning:[/] {escape(warning)}", soft_wrap=True)
    if as_json:
        print_json(facts)
    else:
        stdout().print(f"wrote {escape(facts['file'])}: {frames} frames as {word}", soft_wrap=True)
