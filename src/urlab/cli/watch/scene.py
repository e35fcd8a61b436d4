"""Watching a scene: the table, or the JSON document at the end."""

from functools import partial

from urlab.cli.complaint import WRONG_USE, CommandError
from urlab.cli.console import print_json, stdout
from urlab.cli.watch.display import Display, beats
from urlab.cli.watch.lookout import Lookout
from urlab.cli.watch.report import report
from urlab.cli.watch.server import Server
from urlab.cli.watch.table import table

DEFAULT_REPORT_S = 3.0
_SPAN_S = 2.0
_SETTLE_S = 1.0


def show_scene(server: Server, robot: str | None, *, with_cameras: bool, seconds: float | None) -> None:
    """Show a table for some seconds, or until Ctrl-C."""
    _check_robot(server, robot)
    with Lookout(server, robot, with_cameras=with_cameras, span_s=_SPAN_S) as lookout, Display(stdout()) as display:
        for is_last in beats(seconds):
            display.show(partial(table, lookout.look()), is_last=is_last)


def report_scene(server: Server, robot: str | None, *, with_cameras: bool, seconds: float | None) -> None:
    """Watch for some seconds, or until Ctrl-C, then print one JSON document."""
    _check_robot(server, robot)
    with Lookout(server, robot, with_cameras=with_cameras, span_s=None) as lookout:
        lookout.settle(_SETTLE_S)
        try:
            for _ in beats(seconds or DEFAULT_REPORT_S):
                reading = lookout.look()
        except KeyboardInterrupt:
            reading = lookout.look()
        print_json(report(reading))


def _check_robot(server: Server, robot: str | None) -> None:
    """While nothing plays nobody knows which robots there will be."""
    if robot is not None and server.is_playing and robot not in server.robots:
        known = ", ".join(server.robots) or "none"
        raise CommandError(f"there is no robot {robot!r}; there are: {known}", WRONG_USE)
