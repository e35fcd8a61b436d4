"""The command. What it needs is imported when it runs: other commands should not wait for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from urlab.cli.bench.plan import SCENES, Plan, make_plan
from urlab.cli.complaint import CommandError
from urlab.cli.console import stderr, stdout
from urlab.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import Console

    from urlab.cli.bench.results import BenchResult

INSTALL = "pip install 'urlab-headless[bench]'"


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A small run of well under a minute.")] = False,
    scenes: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Scenes to measure, of {', '.join(SCENES)}.")
    ] = ",".join(SCENES),
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds over all cases: 20, or 3 when quick.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Requests of the soak: 200000, or 5000 when quick.")] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for bench.json and bench.png.")] = Path(
        "bench-results"
    ),
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a bar is not passed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure this machine: step requests against their floors, live pacing, start, memory, and a soak.

    Servers run in processes of their own. Floors are measured in the same run, so that a ratio means the same on
    every machine. Leave the machine alone meanwhile.

    Example: [bold]urlab bench --quick --scenes arm --strict[/bold] measures one scene in seconds, for a script.
    """
    plan = make_plan(quick=quick, scenes=_scenes(scenes), rounds=rounds, steps=steps)
    console = stderr() if as_json else stdout()
    result = _measure(plan, console)
    text = write_files(result, out, console)
    if as_json:
        typer.echo(text)
    raise typer.Exit(1 if strict and not result.passed else 0)


def _scenes(words: str) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    unknown = [name for name in asked if name not in SCENES]
    if unknown or not asked:
        raise typer.BadParameter(
            f"{', '.join(unknown) or 'nothing'} was asked for; there are: {', '.join(SCENES)}", param_hint="--scenes"
        )
    return asked


def _measure(plan: Plan, console: "Console") -> "BenchResult":
    try:
        import psutil  # noqa: F401 - asked for here to be able to say what is missing
    except ModuleNotFoundError as missing:
        raise CommandError(f"urlab bench needs {missing.name}, which is not installed: {INSTALL}") from missing
    from urlab.cli.bench.progress import Watcher
    from urlab.cli.bench.runner import run

    with Watcher(console) as watcher:
        return run(plan, watcher)


def write_files(result: "BenchResult", folder: Path, console: "Console") -> str:
    """Show the report and leave the files; the JSON text."""
    from urlab.cli.bench.report import print_report
    from urlab.cli.bench.results import to_json

    text = to_json(result)
    print_report(result, console)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(text + "\n", encoding="utf-8")
    written = [folder / "bench.json"]
    try:
        from urlab.cli.bench.plot import draw
    except ModuleNotFoundError as missing:
        stderr().print(f"No picture, since {missing.name} is not installed: {INSTALL}", markup=False)
    else:
        draw(result, folder / "bench.png")
        written.append(folder / "bench.png")
    console.print("Wrote " + " and ".join(str(path) for path in written), markup=False)
    return text
