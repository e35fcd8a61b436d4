"""`urlab eval`: policies on manipulation tasks, over HTTP.

`run` evaluates a policy from start to report, `serve` runs the server, `jobs` has the commands `submit` and `status`,
`report` the commands `report` and `tasks`. `options` are those that several of them share.
"""

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
