"""The command ``urlab``: its subcommands, and what becomes of errors."""

import platform
import sys
from importlib import metadata
from typing import Annotated

import typer

from urlab import __version__
from urlab.cli.bench import bench
from urlab.cli.console import report_error
from urlab.cli.demo import demo
from urlab.cli.doctor import doctor
from urlab.cli.eval import evaluation
from urlab.cli.levels import levels
from urlab.cli.ops import ops
from urlab.cli.ping import ping
from urlab.cli.ros2 import ros2
from urlab.cli.serve import serve
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
for _command in (serve, demo, ping, ops, watch, ros2, doctor, bench):
    app.command()(_command)
for _group in (levels, evaluation):
    app.add_typer(_group)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"urlab {__version__} (MuJoCo {_mujoco_version()}, Python {platform.python_version()})")
        raise typer.Exit


def _mujoco_version() -> str:
    try:
        return metadata.version("mujoco")
    except metadata.PackageNotFoundError:
        return "missing"


@app.callback()
def _urlab(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run a command of this process's arguments, and exit with its code."""
    try:
        app(prog_name="urlab")
    except Exception as failed:  # noqa: BLE001 - the last place where an error can be told in a sentence
        sys.exit(report_error(failed))
