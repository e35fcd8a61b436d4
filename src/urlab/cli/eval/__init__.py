"""`urlab eval`: policies on manipulation tasks, over HTTP."""

import typer

from urlab.cli.eval.jobs import status, submit
from urlab.cli.eval.report import report, tasks
from urlab.cli.eval.run import run
from urlab.cli.eval.serve import serve

__all__ = ["evaluation"]

evaluation = typer.Typer(
    name="eval",
    help="Evaluate policies on manipulation tasks: serve them, run a policy, look at the results.",
    epilog="Example: urlab eval run --policy oracle --tasks all --episodes 2 --report out.html",
    rich_markup_mode="rich",
    no_args_is_help=True,
)
for _command in (run, serve, submit, status, report, tasks):
    evaluation.command()(_command)
