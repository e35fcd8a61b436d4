"""Requests that a client repeats, and what they get: one reply, of one run.

A client whose connection broke, or that gave up waiting, does not know whether its request was served. So a request
may carry an id: one that comes again with the same id, on any transport and any connection, gets the reply of the
first. All transports of a server share one `RequestRegistry`, which knows what runs now and keeps replies for a while.

Clients that send no ids are known by their bytes: one that gives up waiting in shared memory, or is told there that its
reply is too large, sends the very same bytes again over ZeroMQ. To serve them twice would step twice.
"""

import threading
import time
from collections.abc import Callable
from itertools import islice

from urlab_wire import ErrorCode, encode
from urlab_wire.codec import looks_like_json
from urlab_wire.enums import Encoding
from urlab_wire.envelope import error

CLIENT_PATIENCE_S = 5.0
"""How long the original's clients wait in shared memory before they ask again over ZeroMQ."""

LIFETIME_S = 30.0
_MOST_KEPT = 4
_SHOWN_CHARACTERS = 100

TakeReply = Callable[[bytes], None]
RequestKey = tuple[str, str | int]
"""(session, id of the request)."""

Identify = Callable[[bytes], RequestKey | None]
"""Finds the id in the bytes of a request; None when it carries none."""


class RunningRequest:
    """One request from its arrival to its reply; ``owner`` is the transport that serves it, None that of a repeat.

    ``key`` are its bytes, or its session and id; of the latter ``digest`` tells whether the rest is the same as well.
    ``takers`` are repeats: each is given the reply. ``first`` is, of a repeat, the request that it repeats.
    """

    __slots__ = ("digest", "first", "key", "owner", "reply", "takers")

    def __init__(self, key: bytes | RequestKey, owner: object, digest: int = 0) -> None:
        self.key = key
        self.owner = owner
        self.digest = digest
        self.first: RunningRequest | None = None
        self.reply: bytes | None = None
        self.takers: list[TakeReply] | None = None

    def repeat(self) -> "RunningRequest":
        """A repeat of this one, which no transport serves."""
        repeat = RunningRequest(self.key, None)
        repeat.first = self
        return repeat


class _KeptReply:
    """A reply that its client may not have; ``withdraw`` takes back what was sent in its place, if that was late."""

    def __init__(self, finished: RunningRequest, withdraw: Callable[[], None] | None) -> None:
        self.finished = finished
        self.withdraw = withdraw
        self.until_s = time.monotonic() + LIFETIME_S


class _SessionReplies:
    """The requests of a session that were answered, by id, oldest first, and the bytes of their replies."""

    __slots__ = ("by_id", "bytes", "last_s")

    def __init__(self) -> None:
        self.by_id: dict[str | int, RunningRequest] = {}
        self.bytes = 0
        self.last_s = time.monotonic()


class AnsweredRequests:
    """What was answered lately, within bounds. The owner of the registry's lock changes it, any thread may `find`.

    Of a session at least the last ``requests`` are known, and at most twice as many; and the replies of the last ones
    that have ``session_bytes`` together (the last one whatever its size). All sessions together keep ``all_bytes``. A
    session is forgotten when it has been silent for ``lifetime_s``.
    """

    def __init__(
        self, requests: int = 64, session_bytes: int = 8 << 20, all_bytes: int = 64 << 20, lifetime_s: float = 120.0
    ) -> None:
        self._most = 2 * requests
        self._session_bytes = session_bytes
        self._all_bytes = all_bytes
        self._lifetime_s = lifetime_s
        self._sessions: dict[str, _SessionReplies] = {}
        self.bytes = 0

    def find(self, key: RequestKey) -> RunningRequest | None:
        """The answered request of that key; its reply is empty when that is not kept any more."""
        session = self._sessions.get(key[0])
        return None if session is None else session.by_id.get(key[1])

    def keep(self, key: RequestKey, answered: RunningRequest, size: int) -> None:
        """Remember a request that was answered just now, with a reply of so many bytes."""
        session = self._sessions.get(key[0])
        if session is None:
            self._forget_old()
            session = self._sessions[key[0]] = _SessionReplies()
        session.by_id[key[1]] = answered
        session.last_s = time.monotonic()
        session.bytes += size
        self.bytes += size
        if len(session.by_id) > self._most or session.bytes > self._session_bytes or self.bytes > self._all_bytes:
            self._make_room(session)

    def _make_room(self, session: _SessionReplies) -> None:
        """Forget half of the requests of a session when there are many, and the oldest replies where they are large."""
        by_id = session.by_id
        if len(by_id) > self._most:
            for name in list(islice(by_id, len(by_id) - self._most // 2)):
                self._shorten(session, by_id.pop(name))
        if session.bytes > self._session_bytes:
            for one in list(by_id.values())[:-1]:
                self._shorten(session, one)
                if session.bytes <= self._session_bytes:
                    break
        while self.bytes > self._all_bytes:
            largest = max(self._sessions.values(), key=lambda one: one.bytes)
            self._shorten(largest, next(one for one in largest.by_id.values() if one.reply))

    def _shorten(self, session: _SessionReplies, answered: RunningRequest) -> None:
        """Let go of a reply; that the request was answered may stay known."""
        size = len(answered.reply or b"")
        session.bytes -= size
        self.bytes -= size
        answered.reply = b""

    def _forget_old(self) -> None:
        now = time.monotonic()
        for name, session in list(self._sessions.items()):
            if now - session.last_s > self._lifetime_s:
                self.bytes -= session.bytes
                del self._sessions[name]


class RequestRegistry:
    """Which requests run, on which transport, and replies kept for a repeat. Any thread may use it.

    A repeat is: the same session and id, wherever it comes from; of requests without an id, the same bytes, session
    included, on another transport. Without an id the same bytes on the same transport, or after the first reply was
    taken, are a request of their own.
    """

    def __init__(
        self,
        patience_s: float = CLIENT_PATIENCE_S,
        identify: Identify | None = None,
        answered: AnsweredRequests | None = None,
    ) -> None:
        """``patience_s`` is how long clients wait before they ask elsewhere. Without ``identify`` no id counts."""
        self._patience_s = patience_s
        self._identify = identify
        self._lock = threading.Lock()
        self._running: dict[bytes | RequestKey, RunningRequest] = {}
        self._kept: dict[bytes, _KeptReply] = {}
        self._answered = answered or AnsweredRequests()

    def begin(self, request: bytes, owner: object, key: RequestKey | None = None) -> RunningRequest:
        """A request has arrived at the transport ``owner``; ``key`` saves the look for its id where that is known.

        If the result has the same owner, that transport serves the request and calls `finish`. Otherwise the request
        is a repeat: `attach` gives it the reply.
        """
        if key is None and self._identify is not None:
            key = self._identify(request)
        if key is not None:
            running = RunningRequest(key, owner, hash(request))
            first = self._running.setdefault(key, running)
            if first is running:
                answered = self._answered.find(key)  # second, as with kept replies below
                if answered is None:
                    return running
                del self._running[key]
                first = answered
            return _repeat(first, running.digest, key, request)
        running = RunningRequest(request, owner)
        first = self._running.setdefault(request, running)  # one operation: no other thread comes between
        # Kept replies are looked at second: what ends is kept first, and only then does it no longer run.
        if self._kept and (kept := self._repeated(running, request, owner)) is not None:
            return kept
        if first is running or first.owner is owner or b"session_id" not in request:
            return running  # the first, of another client, or meant to run again
        return first

    def attach(self, running: RunningRequest, take: TakeReply) -> None:
        """Give ``take`` the reply, once: now if there is one, else when it comes, on the thread that served it."""
        first = running.first or running
        with self._lock:
            reply = first.reply
            if reply is None:
                first.takers = [*(first.takers or ()), take]
            elif reply == b"" and isinstance(first.key, tuple):
                reply = _refusal(first.key, b"", "its reply is not kept any more")
            elif isinstance(first.key, bytes):
                self._hand_over(first)  # it ended between begin and attach
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
            if self._running.get(running.key) is running:
                del self._running[running.key]
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
            if running.takers is None and (late or not fits) and isinstance(running.key, bytes):
                self._keep(_KeptReply(running, withdraw if late else None), running.key)
            takers = self._end(running, reply)
            settle(takers is not None)
        for take in takers or ():
            take(reply)

    def _end(self, running: RunningRequest, reply: bytes) -> list[TakeReply] | None:
        key = running.key
        running.reply = reply
        if type(key) is tuple:
            self._answered.keep(key, running, len(reply))
        if self._running.get(key) is running:
            del self._running[key]
        return running.takers

    def _keep(self, kept: _KeptReply, request: bytes) -> None:
        while len(self._kept) >= _MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[request] = kept

    def _repeated(self, running: RunningRequest, request: bytes, owner: object) -> RunningRequest | None:
        """The finished request that this one repeats, and whose reply is kept; this one then never runs."""
        with self._lock:
            kept = self._take_kept(request, owner)
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
        self._hand_over(found.finished)
        return found.finished

    def _hand_over(self, finished: RunningRequest) -> None:
        """A repeat gets the reply: it is not kept any more, and a late one is taken back."""
        key = finished.key
        if isinstance(key, bytes) and key in self._kept and self._kept[key].finished is finished:
            kept = self._kept.pop(key)
            if kept.withdraw is not None:
                kept.withdraw()


def _repeat(first: RunningRequest, digest: int, key: RequestKey, request: bytes) -> RunningRequest:
    """A repeat of ``first``; one that is refused where only the id is the same."""
    if first.digest == digest:
        return first.repeat()
    refused = RunningRequest(key, None)
    refused.reply = _refusal(key, request, "it was another one")
    return refused


def _refusal(key: RequestKey, request: bytes, reason: str) -> bytes:
    shown = repr(key[1])[:_SHOWN_CHARACTERS]
    message = f"a request with the id {shown} was served before, and {reason}: every request needs an id of its own"
    encoding = Encoding.JSON if looks_like_json(request) else Encoding.MSGPACK
    return encode(error(ErrorCode.BAD_REQUEST, message), encoding)
