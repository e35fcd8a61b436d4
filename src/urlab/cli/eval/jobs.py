"""`urlab eval submit` and `status`: the job of a server that is running."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from urlab.cli.console import FAILED, WRONG_USE, CommandError, print_json, stdout
from urlab.cli.eval import options as opt
from urlab.cli.options import AsJson

if TYPE_CHECKING:
    from urlab.evaluation.runs.client import EvalClient


Names = Annotated[
    list[str], typer.Argument(metavar="TASK...", help="Tasks by name, a robot's name for all its tasks, or 'all'.")
]
Force = Annotated[bool, typer.Option("--force", help="End a job that is running.")]

_TIMEOUT_S = 60.0
_BAR_WIDTH = 30
_GOOD, _FAIR = 0.8, 0.5


def submit(
    tasks: Names,
    episodes: opt.Episodes = 10,
    seed: opt.Seed = 0,
    run_id: opt.RunId = None,
    url: opt.Url = opt.DEFAULT_URL,
    token: opt.Token = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Start another job at a running server. A run of that name goes on where it stopped.

    Example: [bold]urlab eval submit panda_cube_on_plate --episodes 20 --run-id monday[/bold]
    """
    with _connected(url, token) as client:
        _refuse_to_interrupt(client.status(), force)
        client.submit([name for word in tasks for name in opt.names(word)], run_id=run_id, episodes=episodes, seed=seed)
        _show(client.status(), as_json)


def status(url: opt.Url = opt.DEFAULT_URL, token: opt.Token = None, as_json: AsJson = False) -> None:
    """Show how far the job of a running server is.

    Example: [bold]urlab eval status[/bold]; in a script: [bold]urlab eval status --json | jq .completed_episodes[/bold]
    """
    with _connected(url, token) as client:
        _show(client.status(), as_json)


@contextmanager
def _connected(url: str, token: str | None) -> "Iterator[EvalClient]":
    from urlab.evaluation.runs.client import EvalClient

    address = opt.server_url(url)
    with client_errors_as_command_errors(address), EvalClient(address, (), token=token, timeout_s=_TIMEOUT_S) as client:
        yield client


def _refuse_to_interrupt(status: dict[str, Any], force: bool) -> None:
    from urlab.evaluation.runs.client import running_job

    busy = running_job(status)
    if busy is not None and not force:
        raise CommandError(f"{busy}; --force ends it")


def _show(status: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(status)
        return
    out = stdout()
    done, total = status["completed_episodes"], status["total_episodes"]
    facts = Table.grid(padding=(0, 2))
    facts.add_row("run", f"[bold]{escape(str(status['run_id']))}[/]  {status['status']}")
    facts.add_row("episodes", f"{done} of {total} done, {status['in_progress_episodes']} running")
    facts.add_row("workers", ", ".join(status["active_workers"]) or "none")
    for problem in status.get("problems", [])[-3:]:
        facts.add_row("[yellow]problem[/]", escape(problem))
    out.print(facts)
    if status["results"]:
        out.print(_scores(status["results"]))


def _scores(results: dict[str, float]) -> Table:
    table = Table(title="mean score of the episodes so far", title_justify="left")
    table.add_column("task", overflow="fold")
    table.add_column("")
    table.add_column("score", justify="right")
    for task, score in results.items():
        colour = "green" if score >= _GOOD else "yellow" if score >= _FAIR else "red"
        bar = ProgressBar(1.0, score, width=_BAR_WIDTH, complete_style=colour, finished_style=colour)
        table.add_row(escape(task), bar, f"[{colour}]{score:.2f}[/]")
    return table


@contextmanager
def client_errors_as_command_errors(url: str) -> Iterator[None]:
    """Errors of the client in the block become CommandError with what to do."""
    from urlab.evaluation.runs.client import (
        BadAddress,
        EvalClientError,
        ForeignServer,
        InvalidRequest,
        ServerUnreachable,
        TokenRefused,
    )

    try:
        yield
    except (BadAddress, ForeignServer) as wrong:
        raise CommandError(wrong.message, WRONG_USE if isinstance(wrong, BadAddress) else FAILED) from wrong
    except ServerUnreachable as away:
        raise CommandError(f"{away.message}. Is there a server at {url}? `urlab eval serve` starts one.") from away
    except TokenRefused as refused:
        raise CommandError(f"the server at {url} wants a token: give it with --token") from refused
    except EvalClientError as refused:
        code = WRONG_USE if isinstance(refused, InvalidRequest) else FAILED
        raise CommandError(f"the server at {url} refused: {refused.message}", code) from refused
