"""The control stream: setpoints, gains and twists of any sender, staged before the next step."""

import contextlib
import logging
import socket as sockets
import threading
import time
from collections.abc import Callable, Sequence

import zmq

from urlab.access import Role
from urlab.transport.endpoint import ListeningSocket
from urlab.transport.guard import ConnectionGuard
from urlab.transport.streams.publishing import bind
from urlab_wire.streams import ControlOutcome

log = logging.getLogger("urlab.transport")

MAX_FRAME_BYTES = 256 * 1024
"""The sender of a larger frame is disconnected before it is read."""

KEPT_MESSAGES = 100
"""Per sender, until they are taken; more wait at the sender."""

_TAKEN_AT_ONCE = 64
_STOP_LIMIT_S = 3.0
_SHOWN_BYTES = 80
_WARN_EVERY_S = 10.0
"""Of each outcome; what comes in between is counted."""

Message = tuple[bytes, bytes]
Take = Callable[[Sequence[Message]], Sequence[ControlOutcome]]
Hint = Callable[[bytes, bytes], str]
"""(topic, payload) -> which ids a message asks for, and which exist; empty when that is not what is wrong."""


class ControlReceiver:
    """Receives on a thread of its own and hands messages to the running scene; what is wrong is dropped and counted."""

    def __init__(self, guard: ConnectionGuard, listener: ListeningSocket) -> None:
        self.endpoint = listener.endpoint
        """Where senders connect."""

        self._listener = listener
        self._take: Take = _nothing_plays
        self._hint: Hint = _no_hint
        self._warned: dict[ControlOutcome, tuple[float, int]] = {}
        self._counts = dict.fromkeys(ControlOutcome, 0)
        self._stopping = False
        self._socket, self._guarded = bind(
            guard, zmq.SUB, listener, Role.OPERATOR, RCVHWM=KEPT_MESSAGES, MAXMSGSIZE=MAX_FRAME_BYTES
        )
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._wake_in, self._wake_out = sockets.socketpair()
        self._thread = threading.Thread(target=self._run, name="urlab-control-in", daemon=True)
        self._thread.start()

    def attach(self, take: Take, hint: Hint) -> None:
        """Hand messages, (topic, payload), to ``take``, which tells what became of each; ``hint`` helps the log."""
        self._take, self._hint = take, hint

    def detach(self) -> None:
        """Drop messages until the next scene."""
        self._take, self._hint = _nothing_plays, _no_hint

    def counters(self) -> dict[str, int]:
        """How many messages were received, and how many met with each outcome."""
        counts = {str(outcome): count for outcome, count in self._counts.items()}
        return {"received": sum(counts.values()), **counts}

    def close(self) -> None:
        """End the thread and give the port back. Once is enough."""
        if self._stopping:
            return
        self._stopping = True
        with contextlib.suppress(OSError):
            self._wake_out.send(b"!")
        self._thread.join(_STOP_LIMIT_S)

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._wake_in.fileno(), zmq.POLLIN)
        while not self._stopping:
            poller.poll()
            try:
                self._serve(self._received())
            except Exception:
                log.exception("control messages could not be served")
        self._socket.close()
        self._listener.close()
        self._wake_in.close()
        self._wake_out.close()

    def _received(self) -> list[list[bytes]]:
        """What waits now, up to a limit: everything of one turn is staged together."""
        received: list[list[bytes]] = []
        with contextlib.suppress(zmq.Again):
            while len(received) < _TAKEN_AT_ONCE:
                received.append(self._receive_one())
        return received

    def _receive_one(self) -> list[bytes]:
        first = self._socket.recv(zmq.NOBLOCK, copy=False)
        frames = [first.bytes, *(self._socket.recv_multipart(zmq.NOBLOCK) if first.more else ())]
        use = self._guarded.use_by(first)
        if use is not None:
            use.deliver(sum(map(len, frames)), len(frames))
        return frames

    def _serve(self, received: list[list[bytes]]) -> None:
        messages = [(frames[0], frames[1]) for frames in received if len(frames) == 2]
        if messages:
            for (topic, payload), outcome in zip(messages, self._take(messages), strict=True):
                self._count(outcome, topic, payload)
        for frames in received:
            if len(frames) != 2:
                self._count(ControlOutcome.MALFORMED, frames[0], b"")

    def _count(self, outcome: ControlOutcome, topic: bytes, payload: bytes) -> None:
        """Log a message that is not applied, and count it: what is counted has been logged."""
        if outcome is not ControlOutcome.APPLIED:
            self._log(outcome, topic, payload)
        self._counts[outcome] += 1

    def _log(self, outcome: ControlOutcome, topic: bytes, payload: bytes) -> None:
        now, (due_s, told) = time.monotonic(), self._warned.get(outcome, (0.0, 0))
        if now < due_s:
            log.debug("a control message for %r is not applied: %s", _shown(topic), outcome)
            return
        count = self._counts[outcome] + 1
        self._warned[outcome] = (now + _WARN_EVERY_S, count)
        more = f" ({count - told} such messages since this was last said)" if told else ""
        hint = self._hint(topic, payload) if outcome is ControlOutcome.UNKNOWN_ID else ""
        log.warning("a control message for %r is not applied: %s%s%s", _shown(topic), outcome, hint, more)


def _shown(topic: bytes) -> str:
    return topic[:_SHOWN_BYTES].decode(errors="backslashreplace")


def _no_hint(topic: bytes, payload: bytes) -> str:  # noqa: ARG001 - a `Hint`
    return ""


def _nothing_plays(messages: Sequence[Message]) -> Sequence[ControlOutcome]:
    return [ControlOutcome.NOT_LIVE] * len(messages)
