"""SIGINT, SIGTERM and SIGHUP as a request to stop."""

import contextlib
import queue
import signal
from types import FrameType
from typing import Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""SIGHUP comes when the terminal or the connection to this machine is closed."""


_LOOK_S = 0.5


class Stopped(BaseException):
    """A stop was asked for while the server was starting."""


class StopSignals:
    """While entered, a stop signal is kept for `wait`, and until `hold` it also ends what runs, with `Stopped`.

    Leaving it swallows `Stopped`. To be used on the main thread. Repeated signals change nothing: some supervisors
    send them twice.
    """

    def __init__(self) -> None:
        # Of all ways to wait, SimpleQueue is the one that may be filled by a handler at any moment.
        self._received: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._held = False

    def __enter__(self) -> Self:
        for one in STOP_SIGNALS:
            if signal.getsignal(one) is not signal.SIG_IGN:  # what nohup or a shell's & has switched off stays off
                signal.signal(one, self._receive)
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> bool:
        self._held = True
        return kind is Stopped

    def hold(self) -> None:
        """From now on a signal interrupts nothing; it is there for `wait`."""
        self._held = True

    def wait(self) -> str:
        """Sleep until there is a signal; returns its name.

        It wakes now and then: the system may give a signal to another thread, and then Python's handler runs only when
        this one does.
        """
        while True:
            with contextlib.suppress(queue.Empty):
                return signal.Signals(self._received.get(timeout=_LOOK_S)).name

    def _receive(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of handlers
        self._received.put(number)
        if not self._held:
            self._held = True
            raise Stopped
