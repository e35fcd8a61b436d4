"""Which of many sockets have something to do.

On Linux that is epoll as it is: the standard library's selectors, which hide what each system offers, cost more than
the system call. Elsewhere they do it.
"""

import select
import selectors
from typing import Protocol

READ, WRITE = 1, 4
"""What to watch for; the numbers are epoll's. A socket that is closed or broken counts as readable."""


class Poller(Protocol):
    """Watches file descriptors. One thread uses it."""

    def register(self, descriptor: int, events: int, /) -> object:
        """Watch a descriptor."""

    def modify(self, descriptor: int, events: int, /) -> object:
        """Watch it for something else."""

    def unregister(self, descriptor: int, /) -> object:
        """Watch it no more."""

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        """(descriptor, events) of those with something to do, within so many seconds; None waits for as long as it
        takes."""

    def close(self) -> object:
        """Let go of what it holds."""


class SelectorPoller:
    """The same with the standard library's selectors."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, descriptor: int, events: int, /) -> None:
        self._selector.register(descriptor, _selector_events(events))

    def modify(self, descriptor: int, events: int, /) -> None:
        self._selector.modify(descriptor, _selector_events(events))

    def unregister(self, descriptor: int, /) -> None:
        self._selector.unregister(descriptor)

    def poll(self, timeout: float | None = None, /) -> list[tuple[int, int]]:
        return [
            (key.fd, (READ if events & selectors.EVENT_READ else 0) | (WRITE if events & selectors.EVENT_WRITE else 0))
            for key, events in self._selector.select(timeout)
        ]

    def close(self) -> None:
        self._selector.close()


def make_poller() -> Poller:
    """The quickest that this system has."""
    return select.epoll() if hasattr(select, "epoll") else SelectorPoller()


def _selector_events(events: int) -> int:
    return (selectors.EVENT_READ if events & READ else 0) | (selectors.EVENT_WRITE if events & WRITE else 0)
