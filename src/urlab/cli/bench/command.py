"""The command. What it needs is imported when it runs: other commands should not wait for it."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from urlab.cli.bench.plan import SCENES, Plan, make_plan
from urlab.cli.bench.transports import SCENE_NAMES, TransportsPlan, make_transports_plan
from urlab.cli.complaint import CommandError
from urlab.cli.console import stderr, stdout
from urlab.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import Console

    from urlab.cli.bench.results import BenchResult
    from urlab.cli.bench.transports.results import TransportsResult

INSTALL = "pip install 'urlab-headless[bench]'"


class Part(StrEnum):
    """What can be measured instead of the machine as a whole."""

    TRANSPORTS = "transports"


def bench(
    part: Annotated[
        Part | None,
        typer.Argument(
            metavar="transports",
            help="Compare the transports instead: in process, shared memory, ZMQ over ipc and over TCP.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small run of well under a minute.")] = False,
    scenes: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=f"Scenes to measure, of {', '.join(SCENES)}; of {', '.join(SCENE_NAMES)} for the transports.",
            show_default="all",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds over all cases: 20 (12 for the transports), or 3 when quick."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Requests of the soak: 200000 (1000000 for the transports), or 5000 when quick."),
    ] = None,
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Folder for bench.json and bench.png, or transports.json and .png.")
    ] = Path("bench-results"),
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a bar is not passed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure this machine: step requests against their floors, live pacing, start, memory, and a soak.

    Servers run in processes of their own. Floors are measured in the same run, so that a ratio means the same on
    every machine. Leave the machine alone meanwhile.

    Example: [bold]urlab bench --quick --scenes arm --strict[/bold] measures one scene in seconds, for a script;
    [bold]urlab bench transports[/bold] shows what each way to reach a server costs.
    """
    console = stderr() if as_json else stdout()
    asked = _scenes(scenes, SCENE_NAMES if part else tuple(SCENES))
    if part is Part.TRANSPORTS:
        passed, text = _bench_transports(
            make_transports_plan(quick=quick, scenes=asked, rounds=rounds, steps=steps), out, console
        )
    else:
        passed, text = _bench(make_plan(quick=quick, scenes=asked, rounds=rounds, steps=steps), out, console)
    if as_json:
        typer.echo(text)
    raise typer.Exit(1 if strict and not passed else 0)


def _scenes(words: str | None, known: Sequence[str]) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(word.strip() for word in (words or "").split(",") if word.strip()))
    unknown = [name for name in asked if name not in known]
    if unknown or (words is not None and not asked):
        raise typer.BadParameter(
            f"{', '.join(unknown) or 'nothing'} was asked for; there are: {', '.join(known)}", param_hint="--scenes"
        )
    return asked or tuple(known)


def _bench(plan: Plan, out: Path, console: "Console") -> tuple[bool, str]:
    """Whether every bar is passed, and the JSON text."""
    _refuse_without_psutil()
    from urlab.cli.bench.progress import Watcher
    from urlab.cli.bench.runner import run

    with Watcher(console) as watcher:
        result = run(plan, watcher)
    return result.passed, write_files(result, out, console)


def _bench_transports(plan: TransportsPlan, out: Path, console: "Console") -> tuple[bool, str]:
    """Whether every bar is passed, and the JSON text."""
    _refuse_without_psutil()
    from urlab.cli.bench.progress import Watcher
    from urlab.cli.bench.transports.runner import run_transports

    with Watcher(console) as watcher:
        result = run_transports(plan, watcher)
    return result.passed, write_transports_files(result, out, console)


def _refuse_without_psutil() -> None:
    try:
        import psutil  # noqa: F401 - asked for here to be able to say what is missing
    except ModuleNotFoundError as missing:
        raise CommandError(f"urlab bench needs {missing.name}, which is not installed: {INSTALL}") from missing


def write_files(result: "BenchResult", folder: Path, console: "Console") -> str:
    """Show the report and leave the files; the JSON text."""
    from urlab.cli.bench.report import print_report
    from urlab.cli.bench.results import to_json

    def draw_it(path: Path) -> None:
        from urlab.cli.bench.plot import draw

        draw(result, path)

    text = to_json(result)
    print_report(result, console)
    _leave_files(text, draw_it, folder / "bench", console)
    return text


def write_transports_files(result: "TransportsResult", folder: Path, console: "Console") -> str:
    """The same for a comparison of the transports."""
    from urlab.cli.bench.results import to_json
    from urlab.cli.bench.transports.report import print_transports

    def draw_it(path: Path) -> None:
        from urlab.cli.bench.transports.plot import draw_transports

        draw_transports(result, path)

    text = to_json(result)
    print_transports(result, console)
    _leave_files(text, draw_it, folder / "transports", console)
    return text


def _leave_files(text: str, draw: Callable[[Path], None], stem: Path, console: "Console") -> None:
    """Write the document, and the picture where the plot library is installed; say which."""
    document, picture = stem.with_suffix(".json"), stem.with_suffix(".png")
    document.parent.mkdir(parents=True, exist_ok=True)
    document.write_text(text + "\n", encoding="utf-8")
    written = [document]
    try:
        draw(picture)
        written.append(picture)
    except ModuleNotFoundError as missing:
        stderr().print(f"No picture, since {missing.name} is not installed: {INSTALL}", markup=False)
    console.print("Wrote " + " and ".join(str(path) for path in written), markup=False)
