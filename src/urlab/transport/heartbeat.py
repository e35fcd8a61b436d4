"""A thread that does something now and then while somebody wants it, and sleeps otherwise."""

import threading
from collections.abc import Callable

_STOP_LIMIT_S = 3.0


class Heartbeat:
    """Calls ``beat`` at once when it becomes wanted, and every ``period_s`` from then on."""

    def __init__(self, beat: Callable[[], None], period_s: float) -> None:
        self._beat = beat
        self._period_s = period_s
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="urlab-heartbeat", daemon=True)
        self._thread.start()

    def want(self, wanted: bool) -> None:
        """Whether it shall beat."""
        if wanted:
            self._wanted.set()
        else:
            self._wanted.clear()

    def close(self) -> None:
        """End the thread. Once is enough."""
        self._stopping.set()
        self._wanted.set()
        self._thread.join(_STOP_LIMIT_S)

    def _run(self) -> None:
        while self._wanted.wait() and not self._stopping.is_set():
            self._beat()
            self._stopping.wait(self._period_s)
