"""The command itself: run every check, show what was found."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import chain
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from urlab.cli import options as opt
from urlab.cli.console import LogLevel, print_json, set_up_logging, stdout
from urlab.cli.doctor import graphics, machine, mujoco_install, packages
from urlab.cli.doctor.finding import Finding, Status
from urlab.config import default_project

Check = Callable[[], list[Finding]]

_MARKS = {
    Status.OK: ("ok", "green"),
    Status.NOTE: ("note", "cyan"),
    Status.WARNING: ("warning", "yellow"),
    Status.PROBLEM: ("problem", "bold red"),
}

ProjectDir = Annotated[
    str | None, typer.Option("--project", metavar="DIR", help="Check this project folder.", show_default=False)
]


def doctor(project: ProjectDir = None, as_json: opt.AsJson = False, log_level: opt.Log = LogLevel.WARNING) -> None:
    """Check this machine: packages, graphics, ports, folders, timing.

    Exit code 0: the server can run; 1: it cannot.

    Example: [bold]urlab doctor[/bold]; in a script: [bold]urlab doctor --json | jq -r '.checks[].advice'[/bold]
    """
    set_up_logging(log_level)
    findings = examine(project or str(default_project()))
    healthy = all(one.status is not Status.PROBLEM for one in findings)
    if as_json:
        print_json({"ok": healthy, "checks": [asdict(one) for one in findings]})
    else:
        _show(findings, healthy)
    if not healthy:
        raise typer.Exit(1)


def examine(project: str) -> list[Finding]:
    """Every finding. The checks that wait for child processes run side by side."""
    checks: list[Check] = [
        packages.check_python,
        mujoco_install.check,
        packages.check_versions,
        graphics.check,
        machine.check_ports,
        machine.check_shared_memory,
        lambda: machine.check_project(project),
        machine.check_cores,
        packages.check_extras,
    ]
    with ThreadPoolExecutor(len(checks)) as pool:
        findings = list(chain.from_iterable(pool.map(lambda check: check(), checks)))
    return [*findings, *machine.check_timer()]


def _show(findings: list[Finding], healthy: bool) -> None:
    table = Table.grid(padding=(0, 2))
    for one in findings:
        word, style = _MARKS[one.status]
        table.add_row(Text(word, style), one.name, Text(one.detail))
        if one.advice:
            table.add_row("", "", Text(f"-> {one.advice}", "italic"))
    console = stdout()
    console.print(table)
    verdict = ("The server can run here.", "bold green") if healthy else ("The server cannot run here.", "bold red")
    console.print(Text(*verdict))
