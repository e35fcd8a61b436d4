"""The words of `urlab eval`."""

import typer

from urlab.cli.evaluation.jobs import status, submit
from urlab.cli.evaluation.report import report
from urlab.cli.evaluation.run import run
from urlab.cli.evaluation.serve import serve
from urlab.cli.evaluation.tasks import tasks

evaluation = typer.Typer(
    name="eval",
    help="Evaluate policies on manipulation tasks: serve them, run a policy, look at the results.",
    epilog="Example: urlab eval run --policy oracle --tasks all --episodes 2 --report out.html",
    rich_markup_mode="rich",
    no_args_is_help=True,
)
for _command in (run, serve, submit, status, report, tasks):
    evaluation.command()(_command)
