"""Replies that were too large for shared memory, kept for the client that asks again over ZeroMQ.

It sends the very same request again. To serve it twice would step twice, so the second one gets the first one's reply.
"""

import threading
import time

KEPT_S = 30.0
_MOST = 4


class KeptReplies:
    """A few replies by request. Any thread may use it; looking at ``waiting`` first costs nothing."""

    def __init__(self) -> None:
        self.waiting = False
        self._turn = threading.Lock()
        self._kept: dict[bytes, tuple[float, bytes]] = {}

    def keep(self, request: bytes, reply: bytes) -> None:
        """Keep a reply until it is taken, for `KEPT_S` at most."""
        with self._turn:
            self._forget_old()
            while len(self._kept) >= _MOST:
                self._kept.pop(next(iter(self._kept)))
            self._kept[request] = (time.monotonic() + KEPT_S, reply)
            self.waiting = True

    def take(self, request: bytes) -> bytes | None:
        """The reply that was kept for a request, once; None when there is none."""
        with self._turn:
            self._forget_old()
            _, reply = self._kept.pop(request, (0.0, None))
            self.waiting = bool(self._kept)
            return reply

    def _forget_old(self) -> None:
        now = time.monotonic()
        self._kept = {request: kept for request, kept in self._kept.items() if kept[0] > now}
