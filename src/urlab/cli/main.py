"""The command ``urlab``: its subcommands, and what becomes of errors."""

import platform
import sys
from typing import Annotated

import typer

from urlab import __version__
from urlab.cli.bench import bench
from urlab.cli.console import report_error
from urlab.cli.demo import demo
from urlab.cli.doctor import doctor, version_of
from urlab.cli.eval import evaluation
from urlab.cli.keys import keys
from urlab.cli.levels import levels
from urlab.cli.ops import ops
from urlab.cli.ping import ping
from urlab.cli.policies.rollout import rollout
from urlab.cli.policies.run import policy
from urlab.cli.recordings.export import export
from urlab.cli.recordings.replay import replay
from urlab.cli.ros2 import ros2
from urlab.cli.serve import serve
from urlab.cli.settings import config, listen_to_environment, use_default_file
from urlab.cli.watch import watch

app = typer.Typer(
    name="urlab",
    help="A headless robot-simulation server on MuJoCo that speaks URLab's protocol.",
    epilog="Exit codes: 0 done, 1 it did not work, 2 asked in a way that cannot work.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (serve, demo, ping, ops, watch, replay, export, rollout, ros2, doctor, bench, config):
    app.command()(_command)
for _group in (levels, keys, policy, evaluation):
    app.add_typer(_group)


def _print_version(wanted: bool) -> None:
    if wanted:
        mujoco = version_of("mujoco") or "missing"
        typer.echo(f"urlab {__version__} (MuJoCo {mujoco}, Python {platform.python_version()})")
        raise typer.Exit


@app.callback()
def _urlab(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback has taken it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    use_default_file(context)


def main() -> None:
    """Run a command of this process's arguments, and exit with its code."""
    try:
        command = typer.main.get_command(app)
        listen_to_environment(command)
        command(prog_name="urlab")
    except Exception as failed:  # noqa: BLE001 - the last place where an error can be told in a sentence
        sys.exit(report_error(failed))
