"""The connections of the evaluation server: of whom, how many, and how long one may be silent.

A connection of another user of this machine is ended before anything of it is read. A request must come soon
and its head be small, wherever in it a client stops. When there are too many connections, the one that has waited
longest for its client goes: connections that say nothing keep no client out.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from urlab import access
from urlab.config import is_local
from urlab.evaluation.settings import TimeLimits

MOST_CONNECTIONS = 400
"""Below the 1024 descriptors that a process commonly has, of which workers take some."""
MOST_OF_A_PEER = 100
"""Of one address beyond this machine."""
MAX_HEAD_BYTES = 64 << 10


class HttpConnection(HttpToolsProtocol):
    """One connection, on the event loop's thread. ``admits_all``: it may be another user's of this machine."""

    def __init__(self, *arguments: Any, admits_all: bool, limits: TimeLimits, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._admits_all, self._limits = admits_all, limits
        self._waiting_since_s = 0.0
        self._head_bytes = 0
        """Received since the last part of a request that was made use of: what the parser keeps grows no further."""
        self._is_complete = True
        """No body is under way."""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting_since_s = self.loop.time()
        if not self._is_admitted(transport) or not self._finds_room():
            transport.abort()
        else:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > MAX_HEAD_BYTES:
            self.send_400_response(f"The head of a request has at most {MAX_HEAD_BYTES} bytes.")
        elif self._deadline is None:
            if not self._is_complete:
                self._deadline = self.loop.call_later(self._limits.body_s, self.end)
            elif self._head_bytes:
                self._expect_head()

    def on_message_begin(self) -> None:
        self._head_bytes = max(1, self._head_bytes)  # it may follow another request in the same data
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self._is_complete = False
        self._cancel_deadline()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._is_complete = True
        self._cancel_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._waiting_since_s = self.loop.time()
        super().on_response_complete()

    @property
    def waiting_since_s(self) -> float | None:
        """The event loop's time since when it waits for its client; None while a request is being answered."""
        is_answering = self.cycle is not None and self._is_complete and not self.cycle.response_complete
        return None if is_answering else self._waiting_since_s

    def end(self) -> None:
        """Close it, whatever it is at."""
        self.transport.abort()

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(self._limits.head_s, self.end)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _is_admitted(self, transport: asyncio.Transport) -> bool:
        socket = transport.get_extra_info("socket")
        if self._admits_all or socket is None or not access.is_stranger(socket):
            return True
        access.refusals.refused(self._endpoint, socket)
        return False

    @property
    def _endpoint(self) -> str:
        return f"http port {self.server[1] if self.server else '?'}"

    def _finds_room(self) -> bool:
        """Whether there is room for this connection, after the one that has waited longest has gone if need be."""
        others = [one for one in self.connections if one is not self and isinstance(one, HttpConnection)]
        if len(others) < MOST_OF_A_PEER:
            return True
        address = self.client[0] if self.client else ""
        if not is_local(address):
            siblings = [one for one in others if one.client and one.client[0] == address]
            if len(siblings) >= MOST_OF_A_PEER:
                return self._replaces_one_of(siblings, address)
        return len(others) < MOST_CONNECTIONS or self._replaces_one_of(others, address)

    def _replaces_one_of(self, others: "list[HttpConnection]", address: str) -> bool:
        waiting = [(one.waiting_since_s, one) for one in others if one.waiting_since_s is not None]
        if not waiting:
            access.refusals.say(
                f"{self._endpoint} full",
                f"{self._endpoint}: a connection from {address} is refused; there are too many, and all are busy",
            )
            return False
        min(waiting, key=lambda pair: pair[0])[1].end()
        return True
