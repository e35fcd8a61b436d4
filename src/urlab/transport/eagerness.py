"""When to look again at once rather than go to sleep.

A thread that sleeps until the next request is woken by the kernel, and runs on a cold processor: together that costs
more than serving the request. So while requests follow each other closely, a wait begins by looking again and again
for a short while. When they do not, nothing is gained by that, and the thread sleeps at once.
"""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Event = TypeVar("Event")

LOOK_S = 200e-6
"""How long to look. A client in lockstep that does little between its steps comes back sooner; a longer look would
lower the median a little further, and cost its slowest requests more, where there are few cores."""

_MOST = 8


class Eagerness:
    """How closely events have followed each other of late. One thread uses it."""

    def __init__(self) -> None:
        self._score = 0

    def wait(self, poll: Callable[[float | None], Sequence[Event]]) -> Sequence[Event]:
        """The next events of ``poll(timeout)``: by looking, if that has been worth it, or by sleeping."""
        begin = time.perf_counter()
        while self._score and time.perf_counter() - begin < LOOK_S:
            if events := poll(0):
                self._score = min(_MOST, self._score + 1)
                return events
        events = poll(None)
        soon = time.perf_counter() - begin < LOOK_S
        self._score = min(_MOST, self._score + 1) if soon else max(0, self._score - 2)
        return events
