"""Requests that a client repeats on another transport, and what they get: one reply, of one run.

A client that gives up waiting in shared memory, or is told there that its reply is too large, sends the very same bytes
again over ZeroMQ. To serve them twice would step twice. All transports of a server share one `RequestRegistry`, which
knows what runs now and keeps the few replies that may still be asked for.
"""

import threading
import time
from collections.abc import Callable

CLIENT_PATIENCE_S = 5.0
"""How long the original's clients wait in shared memory before they ask again over ZeroMQ."""

LIFETIME_S = 30.0
_MOST_KEPT = 4

TakeReply = Callable[[bytes], None]


class RunningRequest:
    """One request from its arrival to its reply; ``owner`` is the transport that serves it.

    ``takers`` are repeats on other transports: each is given the reply.
    """

    __slots__ = ("owner", "reply", "request", "takers")

    def __init__(self, request: bytes, owner: object) -> None:
        self.request = request
        self.owner = owner
        self.reply: bytes | None = None
        self.takers: list[TakeReply] | None = None


class _KeptReply:
    """A reply that its client may not have; ``withdraw`` takes back what was sent in its place, if that was late."""

    def __init__(self, finished: RunningRequest, withdraw: Callable[[], None] | None) -> None:
        self.finished = finished
        self.withdraw = withdraw
        self.until_s = time.monotonic() + LIFETIME_S


class RequestRegistry:
    """Which requests run, on which transport, and replies kept for a repeat. Any thread may use it.

    A repeat is: the same bytes, session included, on another transport. The same bytes on the same transport, or after
    the first reply was taken, are a request of their own.
    """

    def __init__(self, patience_s: float = CLIENT_PATIENCE_S) -> None:
        """``patience_s`` is how long clients wait before they ask again elsewhere."""
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._running: dict[bytes, RunningRequest] = {}
        self._kept: dict[bytes, _KeptReply] = {}

    def begin(self, request: bytes, owner: object) -> RunningRequest:
        """A request has arrived at the transport ``owner``.

        If the result has the same owner, that transport serves the request and calls `finish`. Otherwise the request
        is a repeat: `attach` gives it the reply.
        """
        running = RunningRequest(request, owner)
        first = self._running.setdefault(request, running)  # one operation: no other thread comes between
        # Kept replies are looked at second: what ends is kept first, and only then does it no longer run.
        if self._kept and (kept := self._repeated(running, owner)) is not None:
            return kept
        if first is running or first.owner is owner or b"session_id" not in request:
            return running  # the first, of another client, or meant to run again
        return first

    def attach(self, running: RunningRequest, take: TakeReply) -> None:
        """Give ``take`` the reply, once: now if there is one, else when it comes, on the thread that served it."""
        with self._lock:
            reply = running.reply
            if reply is None:
                running.takers = [*(running.takers or ()), take]
            elif (kept := self._kept.get(running.request)) is not None and kept.finished is running:
                self._hand_over(kept)  # it ended between begin and attach
        if reply is not None:
            take(reply)

    def finish(self, running: RunningRequest, reply: bytes) -> None:
        """The reply is there, and its client will be sent it: repeats get it too."""
        with self._lock:
            takers = self._end(running, reply)
        for take in takers or ():
            take(reply)

    def abandon(self, running: RunningRequest) -> bool:
        """Leave a request of a client that has gone unserved, before it has begun; False when a repeat waits for it."""
        with self._lock:
            if running.takers is not None:
                return False
            self._end(running, b"")
            return True

    def finish_in_turn(
        self,
        running: RunningRequest,
        reply: bytes,
        took_s: float,
        fits: bool,
        settle: Callable[[bool], None],
        withdraw: Callable[[], None],
    ) -> None:
        """The same for a transport whose replies do not name their request, so that none may come late.

        A repeat gets the reply alone. ``settle`` is told whether there was one; if not it sends the reply, or that it
        does not fit. A reply that does not fit is kept before that, and so is one that took as long as clients wait:
        its own may have given up just before it came. If that client asks again after all, ``withdraw`` takes back
        what was sent. Both are called with the registry locked.
        """
        with self._lock:
            late = took_s >= self._patience_s
            running.reply = reply
            if running.takers is None and (late or not fits):
                self._keep(_KeptReply(running, withdraw if late else None))
            takers = self._end(running, reply)
            settle(takers is not None)
        for take in takers or ():
            take(reply)

    def _end(self, running: RunningRequest, reply: bytes) -> list[TakeReply] | None:
        if self._running.get(running.request) is running:
            del self._running[running.request]
        running.reply = reply
        return running.takers

    def _keep(self, kept: _KeptReply) -> None:
        while len(self._kept) >= _MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[kept.finished.request] = kept

    def _repeated(self, running: RunningRequest, owner: object) -> RunningRequest | None:
        """The finished request that this one repeats, and whose reply is kept; this one then never runs."""
        with self._lock:
            kept = self._take_kept(running.request, owner)
            takers = self._end(running, kept.reply) if kept is not None and kept.reply is not None else None
        for take in takers or ():
            take(running.reply or b"")
        return kept

    def _take_kept(self, request: bytes, owner: object) -> RunningRequest | None:
        """The finished request that this one repeats. A transport that goes on has no use for what was late there."""
        now = time.monotonic()
        for key, kept in list(self._kept.items()):
            gone_on = kept.finished.owner is owner and (kept.withdraw is not None or key == request)
            if gone_on or kept.until_s < now:
                del self._kept[key]
        found = self._kept.get(request)
        if found is None:
            return None
        self._hand_over(found)
        return found.finished

    def _hand_over(self, kept: _KeptReply) -> None:
        """A repeat gets the reply: it is not kept any more, and a late one is taken back."""
        del self._kept[kept.finished.request]
        if kept.withdraw is not None:
            kept.withdraw()
