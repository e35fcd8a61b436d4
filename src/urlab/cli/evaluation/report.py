"""`urlab eval report`: results as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from urlab.cli.complaint import WRONG_USE, CommandError
from urlab.cli.console import print_json, stderr
from urlab.cli.evaluation import options as opt
from urlab.cli.evaluation.tables import print_summary
from urlab.cli.options import AsJson

Runs = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Folders of runs, or their names; the first is compared to.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the page there.", show_default="RUN.html")
]


def report(
    runs: Runs, output: Output = None, results: opt.Results = opt.DEFAULT_RESULTS, as_json: AsJson = False
) -> None:
    """Make one HTML page of runs: success per task with its uncertainty, failures, conditions. Several are compared.

    With --json the numbers go to stdout, and the page is written only if --output asks for it.

    Example: [bold]urlab eval report eval-results/urlab/monday -o monday.html[/bold]; two runs side by side:
    [bold]urlab eval report before after -o change.html[/bold]
    """
    from urlab.evaluation.report import RunFolderError, document, read_run, write_report

    try:
        read = [read_run(_folder(word, results)) for word in runs]
    except RunFolderError as wrong:
        raise CommandError(str(wrong), WRONG_USE) from wrong
    target = output or (None if as_json else Path(f"{read[0].folder.name}.html"))
    if target is not None:
        write_report(read, target)
    if as_json:
        print_json(document(read))
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
