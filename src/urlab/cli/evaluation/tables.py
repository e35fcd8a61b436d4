"""Results on a terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from urlab.cli.console import stdout

if TYPE_CHECKING:
    from urlab.evaluation.report import Run, TaskSummary


def print_summary(runs: "Sequence[Run]") -> None:
    """A table for each run, and a sentence for each comparison with the first."""
    from urlab.evaluation.report import compare_runs, summarise, verdict

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
