"""Something that changes, shown again and again."""

import math
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live

BEAT_S = 0.1
SNAPSHOT_S = 1.0


class Display:
    """On a terminal it is redrawn in place; elsewhere there is a snapshot every `SNAPSHOT_S`, as plain text."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._next_snapshot_s = time.monotonic() + SNAPSHOT_S

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, draw: Callable[[], RenderableType], *, is_last: bool) -> None:
        """Show what ``draw`` gives, if it is time to; the last one is always shown."""
        if self._live is not None:
            self._live.update(draw(), refresh=True)
        elif is_last or time.monotonic() >= self._next_snapshot_s:
            self._next_snapshot_s += SNAPSHOT_S
            self._console.print(draw())


def beats(seconds: float | None) -> Iterator[bool]:
    """Ten times a second until the time is over; each tells whether it is the last. None goes on for ever."""
    end_s = math.inf if seconds is None else time.monotonic() + seconds
    is_last = False
    while not is_last:
        time.sleep(min(BEAT_S, max(0.0, end_s - time.monotonic())))
        is_last = time.monotonic() >= end_s
        yield is_last
