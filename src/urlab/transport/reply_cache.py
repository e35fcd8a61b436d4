"""Replies that were too large for shared memory, for the client that asks again over ZeroMQ.

It sends the very same request again. To serve it twice would step twice, so the second one gets the first one's reply.
"""

import threading
import time

LIFETIME_S = 30.0
_MOST = 4


class ReplyCache:
    """A few replies by request. Any thread may use it; looking at ``waiting`` first costs nothing."""

    def __init__(self) -> None:
        self.waiting = False
        self._lock = threading.Lock()
        self._replies: dict[bytes, tuple[float, bytes]] = {}

    def put(self, request: bytes, reply: bytes) -> None:
        """Hold a reply until it is taken, for `LIFETIME_S` at most."""
        with self._lock:
            self._forget_old()
            while len(self._replies) >= _MOST:
                self._replies.pop(next(iter(self._replies)))
            self._replies[request] = (time.monotonic() + LIFETIME_S, reply)
            self.waiting = True

    def take(self, request: bytes) -> bytes | None:
        """The reply to that request, once; None when there is none."""
        with self._lock:
            self._forget_old()
            _, reply = self._replies.pop(request, (0.0, None))
            self.waiting = bool(self._replies)
            return reply

    def _forget_old(self) -> None:
        now = time.monotonic()
        self._replies = {request: one for request, one in self._replies.items() if one[0] > now}
