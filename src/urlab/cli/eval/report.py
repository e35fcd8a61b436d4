"""`urlab eval report` and `tasks`: results as a page and as tables, and what a policy can be asked to do."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from urlab.cli.console import WRONG_USE, CommandError, print_json, stderr, stdout
from urlab.cli.eval import options as opt
from urlab.cli.options import AsJson

if TYPE_CHECKING:
    from urlab.evaluation.report import Run, TaskSummary

Runs = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Folders of runs, or their names; the first is compared to.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the page there.", show_default="RUN.html")
]


Force = Annotated[bool, typer.Option("--force", help="Compare runs whose pictures were drawn differently.")]

_TASK_FIELDS = ("name", "embodiment", "category", "num_steps", "title", "instructions")


def report(
    runs: Runs,
    output: Output = None,
    results: opt.Results = opt.DEFAULT_RESULTS,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make one HTML page of runs: success per task with its uncertainty, failures, conditions. Several are compared.

    With --json the numbers go to stdout, and the page is written only if --output asks for it.

    Example: [bold]urlab eval report eval-results/urlab/monday -o monday.html[/bold]; two runs side by side:
    [bold]urlab eval report before after -o change.html[/bold]
    """
    from urlab.evaluation.report import RunFolderError, UnlikeRuns, document, read_run, refuse_unlike, write_report

    try:
        read = [read_run(_folder(word, results)) for word in runs]
        if not force:
            refuse_unlike(read)
    except (RunFolderError, UnlikeRuns) as wrong:
        raise CommandError(str(wrong), WRONG_USE) from wrong
    target = output or (None if as_json else Path(f"{read[0].folder.name}.html"))
    if target is not None:
        write_report(read, target, force=force)
    if as_json:
        print_json(document(read, force=force))
        return
    print_summary(read)
    stderr().print(f"wrote {target}", markup=False, soft_wrap=True)


def _folder(word: str, results: Path) -> Path:
    """A folder, or the name of a run in the results; CommandError lists those there are."""
    from urlab.evaluation.settings import BENCHMARK

    places = (Path(word), results / BENCHMARK / word)
    for place in places:
        if place.is_dir():
            return place
    home = results / BENCHMARK
    known = sorted(path.name for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    listed = ", ".join(known[-10:]) or "none"
    raise CommandError(
        f"there is no run {word!r}; runs in {home} are: {listed} (--results names another folder)", WRONG_USE
    )


def print_summary(runs: "Sequence[Run]") -> None:
    """A table for each run, and a sentence for each comparison with the first."""
    from urlab.evaluation.report import summarise
    from urlab.evaluation.report.page import verdict
    from urlab.evaluation.report.statistics import compare_runs

    out = stdout()
    for run in runs:
        summary = summarise(run)
        table = Table(title=escape(f"{summary.name}: {summary.policy}"), title_justify="left", show_footer=True)
        total = _cells(summary.overall)
        for heading, footer in zip(("task", "success", "", "95 % interval", "score"), ("all", *total), strict=True):
            table.add_column(heading, footer=footer, justify="left" if heading == "task" else "right")
        for one in summary.tasks:
            table.add_row(escape(one.task), *_cells(one))
        out.print(table)
    for other in runs[1:]:
        out.print(escape(verdict(compare_runs(runs[0], other), runs[0].name, other.name)))


def _cells(found: "TaskSummary") -> tuple[str, str, str, str]:
    interval = found.interval
    return (
        f"{found.successes}/{found.episodes}",
        f"{100 * found.rate:.0f} %",
        f"{100 * interval.low:.0f} to {100 * interval.high:.0f} %",
        f"{found.mean_score:.2f}",
    )


def tasks(as_json: AsJson = False) -> None:
    """List the tasks that are shipped.

    Example: [bold]urlab eval tasks[/bold]; in a script: [bold]urlab eval tasks --json | jq -r '.[].name'[/bold]
    """
    opt.need_packages(opt.FOR_TASKS)
    rows = _rows()
    if as_json:
        print_json(rows)
        return
    table = Table(title="tasks", title_justify="left")
    for heading in ("task", "robot", "kind", "steps", "what"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "steps" else "left")
    for row in rows:
        cells = (row["name"], row["embodiment"], row["category"], str(row["num_steps"]), row["title"])
        table.add_row(*map(escape, cells))
    stdout().print(table)


def _rows() -> list[dict[str, Any]]:
    from urlab.evaluation.tasks.task import find_task, task_names

    return [{field: getattr(task, field) for field in _TASK_FIELDS} for task in map(find_task, task_names())]
