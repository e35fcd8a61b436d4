"""What a person sees while a run goes on, on stderr, and how a person stops it."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from urlab.cli.console import in_words

if TYPE_CHECKING:
    from urlab.evaluation.episode_result import EpisodeResult

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = b"\nstopping, what is done is kept; Ctrl-C again does not wait for the policy\n"


class RunProgress:
    """A bar with the running success, a line for each episode above it; without a terminal the lines alone."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[success]}"),
            TimeElapsedColumn(),
            TextColumn("[dim]left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task("starting", total=None, success="")
        self._total = self._done = self._new = self._solved = 0

    def __enter__(self) -> "RunProgress":
        self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._progress.stop()

    def begin(self, run_id: str, total: int, completed: int) -> None:
        """The server is there."""
        self._total, self._done = total, completed
        self._progress.update(self._bar, description="episodes", total=total, completed=completed)
        again = f", {completed} of them done before" if completed else ""
        episodes = in_words({"episodes": total}) or "no episodes"
        self._console.print(f"run [bold]{escape(run_id)}[/]: {episodes}{again}", soft_wrap=True)

    def episode(self, result: "EpisodeResult") -> None:
        """An episode has ended."""
        self._done += 1
        self._solved += result.success
        self._new += 1
        rate = f"{self._solved}/{self._new} solved, {100 * self._solved / self._new:.0f} %"
        self._progress.update(self._bar, completed=self._done, success=rate)
        word = "[green]solved[/]" if result.success else "[red]failed[/]"
        steps = "" if result.steps is None else f" {result.steps} steps"
        reason = "" if result.success or result.reason is None else f" {escape(result.reason)}"
        self._console.print(
            f"{self._done:>4}/{self._total} {word} {escape(result.task)} {escape(result.seed)} "
            f"score {result.score:.2f}{steps}{reason}  [dim]{rate}[/]",
            soft_wrap=True,
        )


@contextlib.contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Set by the first SIGINT or SIGTERM; the second ends the process at once. To be used on the main thread."""
    event = threading.Event()

    def receive(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of handlers
        if event.is_set():
            raise KeyboardInterrupt
        event.set()
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), _STOPPING)  # no print: the signal may have interrupted one

    before = {one: signal.signal(one, receive) for one in _SIGNALS}
    try:
        yield event
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
