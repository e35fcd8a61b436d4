"""``urlab ops``: every op of the protocol, as a server tells it or as it is built in."""

from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape
from rich.table import Table

from urlab import __version__
from urlab.cli import options as opt
from urlab.cli.console import LogLevel, print_json, set_up_logging, stdout
from urlab.cli.options import connected

Offline = Annotated[bool, typer.Option("--offline", help="Ask no server: show the catalogue of this installation.")]


def ops(
    address: opt.Address = opt.DEFAULT_ADDRESS,
    step_port: opt.StepPort = opt.DEFAULT_STEP_PORT,
    key: opt.Key = None,
    timeout_s: opt.TimeoutS = opt.DEFAULT_TIMEOUT_S,
    offline: Offline = False,
    as_json: opt.AsJson = False,
    log_level: opt.Log = LogLevel.WARNING,
) -> None:
    """List the ops: what each needs, what it answers, and whether the server has it.

    Exit code 1: no server answers.

    Example: [bold]urlab ops --offline[/bold]; in a script: [bold]urlab ops --json | jq -r '.ops[].name'[/bold]
    """
    set_up_logging(log_level)
    opt.use_key(key)
    report = _built_in() if offline else _ask(address, step_port, timeout_s)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _built_in() -> dict[str, Any]:
    from urlab.ops.handlers.session import catalogue_entries

    return _report(f"urlab/{__version__}", None, msgspec.to_builtins(catalogue_entries()))


def _ask(address: str, step_port: int, timeout_s: float) -> dict[str, Any]:
    with connected(address, step_port, timeout_s) as transport:
        from urlab_client.rpc import RpcChannel

        channel = RpcChannel(transport, round(1000 * timeout_s))
        version = channel.call("hello", {"observer": True})["urlab_version"]
        return _report(str(version), transport.step_endpoint, channel.call("meta")["ops"])


def _report(version: str, endpoint: str | None, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"urlab_version": version, "endpoint": endpoint, "ops": [_entry(entry) for entry in entries]}


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": entry["name"],
        "namespace": entry["namespace"],
        "category": entry["category"],
        "required_fields": entry.get("required_fields") or [],
        "reply_fields": entry.get("reply_fields") or [],
        "served": entry.get("served"),
    }


def _show(report: dict[str, Any]) -> None:
    where = report["endpoint"] or "built in"
    missing = sum(one["served"] is False for one in report["ops"])
    title = escape(f"{len(report['ops'])} ops of {report['urlab_version']} ({where})")
    table = Table(title=title, title_justify="left")
    for heading in ("op", "served", "needs", "required fields", "reply fields"):
        table.add_column(heading, overflow="fold")
    entries = sorted(report["ops"], key=itemgetter("namespace"))
    for namespace, group in groupby(entries, key=itemgetter("namespace")):
        table.add_row(f"[bold cyan]{escape(namespace) or 'session and stepping'}[/]")
        for one in group:
            table.add_row(*_cells(one))
        table.add_section()
    console = stdout()
    console.print(table)
    if missing:
        console.print(f"[dim]{missing} ops are in the protocol but not in this server: it answers not_in_editor.[/]")


def _cells(entry: dict[str, Any]) -> list[str]:
    served = {True: "[green]yes[/]", False: "[red]no[/]", None: "?"}[entry["served"]]
    answers = (field for field in entry["reply_fields"] if not field.startswith("op:"))
    return [
        escape(f"  {entry['name']}"),
        served,
        escape(entry["category"].replace("_", " ")),
        escape(", ".join(entry["required_fields"])),
        escape(", ".join(answers)),
    ]
