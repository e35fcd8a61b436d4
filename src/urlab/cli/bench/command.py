"""The command. What it needs is imported when it runs: other commands should not wait for it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from urlab.cli.bench import option_words as words
from urlab.cli.bench.parts import INSTALL, MACHINE, PARTS, BenchPart, Part
from urlab.cli.complaint import CommandError
from urlab.cli.console import stderr, stdout
from urlab.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import Console


def bench(
    part: Annotated[Part | None, typer.Argument(metavar="|".join(PARTS), help=words.PART, show_default=False)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small run of about a minute.")] = False,
    scenes: Annotated[str | None, typer.Option(metavar="NAME,...", help=words.SCENES, show_default="all")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help=words.ROUNDS)] = None,
    steps: Annotated[int | None, typer.Option(min=1, help=words.STEPS)] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help=words.OUT)] = Path("bench-results"),
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when a bar is not passed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure this machine: step requests against their floors, live pacing, start, memory, and a soak.

    Servers run in processes of their own. Floors are measured in the same run, so that a ratio means the same on
    every machine. Leave the machine alone meanwhile.

    Example: [bold]urlab bench --quick --scenes arm --strict[/bold] measures one scene in seconds, for a script;
    [bold]urlab bench transports[/bold] shows what each way to reach a server costs, [bold]urlab bench ros2[/bold]
    what the bridge to ROS does, [bold]urlab bench eval[/bold] what a step of policy evaluation takes.
    """
    console = stderr() if as_json else stdout()
    measured = MACHINE if part is None else PARTS[part]
    plan = _plan(measured, quick=quick, scenes=scenes, rounds=rounds, steps=steps)
    result = _run(measured, plan, console)
    text = write_files(measured, result, out, console)
    if as_json:
        typer.echo(text)
    raise typer.Exit(1 if strict and not result.passed else 0)


def _plan(part: BenchPart, *, quick: bool, scenes: str | None, rounds: int | None, steps: int | None) -> Any:
    asked = _scenes(scenes, part.scenes)
    if part.soak_steps is not None:
        return part.make_plan(quick=quick, scenes=asked, rounds=rounds, steps=steps)
    if steps is not None:
        subject = part.stem if part.extra is None else part.extra.subject
        raise typer.BadParameter(f"the measurement of {subject} has no soak", param_hint="--steps")
    return part.make_plan(quick=quick, scenes=asked, rounds=rounds)


def _scenes(words: str | None, known: Sequence[str]) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(word.strip() for word in (words or "").split(",") if word.strip()))
    unknown = [name for name in asked if name not in known]
    if unknown or (words is not None and not asked):
        raise typer.BadParameter(
            f"{', '.join(unknown) or 'nothing'} was asked for; there are: {', '.join(known)}", param_hint="--scenes"
        )
    return asked or tuple(known)


def _run(part: BenchPart, plan: Any, console: "Console") -> Any:
    """The result of the part's own kind; every kind has verdicts, and `passed` when all of them are."""
    _refuse_without_psutil()
    from urlab.cli.bench.progress import Watcher

    run = part.runner
    with Watcher(console) as watcher:
        return run(plan, watcher)


def _refuse_without_psutil() -> None:
    try:
        import psutil  # noqa: F401 - asked for here to be able to say what is missing
    except ModuleNotFoundError as missing:
        raise CommandError(f"urlab bench needs {missing.name}, which is not installed: {INSTALL}") from missing


def write_files(part: BenchPart, result: Any, folder: Path, console: "Console") -> str:
    """Show the report; leave the document, and the picture where the plot library is installed; the JSON text."""
    from urlab.cli.bench.results import to_json

    text = to_json(result)
    part.report.load()(result, console)
    document, picture = folder / f"{part.stem}.json", folder / f"{part.stem}.png"
    folder.mkdir(parents=True, exist_ok=True)
    document.write_text(text + "\n", encoding="utf-8")
    written = [document]
    try:
        part.draw.load()(result, picture)
        written.append(picture)
    except ModuleNotFoundError as missing:
        stderr().print(f"No picture, since {missing.name} is not installed: {INSTALL}", markup=False)
    console.print("Wrote " + " and ".join(str(path) for path in written), markup=False)
    return text
