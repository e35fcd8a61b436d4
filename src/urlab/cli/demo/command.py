"""The command line of the demo. What it needs is imported when it runs, so that other commands start quickly."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the recording.")] = Path("demo-output"),
) -> None:
    """Start a server on free ports, drive it in direct, puppet and live mode, record and replay, and say how fast.

    Example: [bold]urlab demo --out demo-output[/bold]
    """
    from urlab.cli.demo.tour import tour

    tour(out.resolve())
