"""Who may connect to ZeroMQ's own sockets, which accept by themselves.

Each socket has a monitor, which tells the descriptor of every connection that it accepts, and a ZAP domain, so that
ZeroMQ asks before it ends a connection's handshake. One thread reads both. There is one I/O thread per context, which
tells of a connection before it works on it: so when the question comes, the thread has been told the descriptor. It
ends connections of other users of the machine there and then, and only then answers. Hence such a connection never
gets, or gets through, anything but the first bytes of ZeroMQ's greeting.
"""

import contextlib
import errno
import logging
import os
import socket as sockets
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import zmq

from urlab import access

log = logging.getLogger("urlab.transport")

MOST_CONNECTIONS = 500
"""To one socket at a time."""

HANDSHAKE_MS = 5000
"""A connection that has not ended its handshake by then is closed."""

_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_ZAP_FRAMES = 6
_EVENT = struct.Struct("=HI")
_EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_MONITOR_STOPPED
_STOP_LIMIT_S = 3.0

Accepted = Callable[[int], None]


@dataclass
class _Guarded:
    """A socket that is guarded; ``connections`` are the descriptors of its connections."""

    endpoint: str
    monitor: Any
    on_accept: Accepted | None
    connections: set[int] = field(default_factory=set)

    @property
    def local_name(self) -> str | int:
        """What `socket.getsockname` says of a connection: the port, or the path."""
        path = self.endpoint.removeprefix("ipc://")
        return path if path != self.endpoint else int(self.endpoint.rpartition(":")[2])


class ConnectionGuard:
    """Ends connections of other users of this machine, unless they are welcome, and of those that are too many."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]", *, share: bool = False) -> None:
        """``context`` is that of the sockets; ``share`` lets other users of this machine in."""
        self.context = context
        self._share = share
        self._guarded: dict[bytes, _Guarded] = {}
        self._zap = context.socket(zmq.REP)
        self._zap.setsockopt(zmq.LINGER, 0)
        self._zap.bind(_ZAP_ENDPOINT)
        self._wake_in, self._wake_out = sockets.socketpair()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="urlab-guard", daemon=True)
        self._thread.start()

    def guard(self, socket: Any, endpoint: str, on_accept: Accepted | None = None) -> None:
        """Guard a socket that is about to be bound; on the thread that owns the socket.

        ``on_accept`` is called with the descriptor of each connection before its handshake, on the guard's thread.
        """
        domain = f"urlab-{len(self._guarded)}"
        socket.setsockopt(zmq.ZAP_DOMAIN, domain.encode())
        socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        socket.monitor(f"inproc://{domain}", _EVENTS)
        monitor = self.context.socket(zmq.PAIR)
        monitor.setsockopt(zmq.LINGER, 0)
        monitor.connect(f"inproc://{domain}")
        self._guarded[domain.encode()] = _Guarded(endpoint, monitor, on_accept)
        self._wake()

    def close(self) -> None:
        """End the thread, after the sockets that it guards are closed. Once is enough."""
        if self._stopping:
            return
        self._stopping = True
        self._wake()
        self._thread.join(_STOP_LIMIT_S)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_out.send(b"!")

    # -- the thread's part --------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._serve_once()
        finally:
            for one in self._guarded.values():
                one.monitor.close()
            self._zap.close()
            self._wake_in.close()
            self._wake_out.close()

    def _serve_once(self) -> None:
        events = self._wait()
        try:
            for one in list(self._guarded.values()):
                if one.monitor in events:
                    self._follow(one)
            if self._zap in events:
                self._answer(self._zap.recv_multipart())
        except zmq.ContextTerminated:
            self._stopping = True
        except Exception:
            log.exception("a connection could not be judged")

    def _wait(self) -> dict[Any, int]:
        poller = zmq.Poller()
        poller.register(self._wake_in.fileno(), zmq.POLLIN)
        poller.register(self._zap, zmq.POLLIN)
        for one in list(self._guarded.values()):
            if not one.monitor.closed:
                poller.register(one.monitor, zmq.POLLIN)
        events = dict(poller.poll())
        if self._wake_in.fileno() in events:
            self._wake_in.recv(4096)
        return events

    def _answer(self, question: list[bytes]) -> None:
        """Let ZeroMQ end a handshake, of a connection that has been judged by then."""
        request_id, domain = (question[1], question[2]) if len(question) >= _ZAP_FRAMES else (b"", b"")
        one = self._guarded.get(domain)
        if one is not None:
            self._follow(one)
        status = [b"200", b"OK"] if one is not None else [b"500", b"unknown domain"]
        self._zap.send_multipart([b"1.0", request_id, *status, b"", b""])

    def _follow(self, one: _Guarded) -> None:
        """Take what the monitor of a socket tells, up to now."""
        for event, descriptor in _events(one.monitor):
            if event == zmq.EVENT_ACCEPTED:
                self._judge(one, descriptor)
            elif event == zmq.EVENT_DISCONNECTED:
                one.connections.discard(descriptor)
            elif event == zmq.EVENT_MONITOR_STOPPED:
                one.monitor.close()

    def _judge(self, one: _Guarded, descriptor: int) -> None:
        one.connections.add(descriptor)
        if one.on_accept is not None:
            one.on_accept(descriptor)
        with held(descriptor) as connection:
            if connection is None or not _is_of(connection, one.local_name):
                return  # closed already; the descriptor may be that of another connection by now
            if not self._share and access.is_from_this_machine(connection):
                uid = access.peer_uid(connection)
                if not access.is_own(uid):
                    access.disconnect(connection)
                    access.refusals.refused(one.endpoint, uid)
                    return
            if len(one.connections) > MOST_CONNECTIONS:
                access.disconnect(connection)
                access.refusals.say(one.endpoint, f"{one.endpoint}: {MOST_CONNECTIONS} connections are the most")


@contextlib.contextmanager
def held(descriptor: int) -> Iterator[sockets.socket | None]:
    """A socket of another part of this process, which may close it meanwhile without its number being used anew.

    None when it is closed already. Where there are no descriptors left, the socket is disconnected unseen.
    """
    try:
        connection = sockets.socket(fileno=os.dup(descriptor))
    except OSError as failed:
        if failed.errno in (errno.EMFILE, errno.ENFILE):
            _disconnect_unseen(descriptor)
        yield None
        return
    with connection:
        yield connection


def _disconnect_unseen(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        connection = sockets.socket(fileno=descriptor)
        try:
            access.disconnect(connection)
        finally:
            connection.detach()


def _is_of(connection: sockets.socket, local_name: str | int) -> bool:
    try:
        name = connection.getsockname()
    except OSError:
        return False
    return (name if isinstance(name, str) else name[1]) == local_name


def _events(monitor: Any) -> Iterator[tuple[int, int]]:
    """(event, value) of what a monitor has told by now; for connections the value is the descriptor."""
    with contextlib.suppress(zmq.Again):
        while not monitor.closed:
            event, value = _EVENT.unpack(monitor.recv_multipart(zmq.NOBLOCK)[0])
            yield event, value
