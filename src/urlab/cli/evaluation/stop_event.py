"""SIGINT and SIGTERM as an event; a second one ends the process at once."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING = b"\nstopping, what is done is kept; Ctrl-C again does not wait for the policy\n"


@contextlib.contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Set by the first signal. To be used on the main thread."""
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
