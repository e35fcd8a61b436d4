"""RPC for ZeroMQ clients (REQ or DEALER, over TCP or ipc).

The sockets are served directly, without libzmq: its I/O thread would add two hand-overs between threads to every
request, which cost more than a step. A quick request is served on this thread too. One that may take long, and
whatever arrives while one runs, goes to a small pool, so that nobody waits behind it; a client's own requests are
answered in their order.
"""

import contextlib
import logging
import socket as sockets
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from urlab.config import MAX_REQUEST_BYTES
from urlab.transport import zmtp
from urlab.transport.connection import Connection, Message
from urlab.transport.eagerness import Eagerness
from urlab.transport.endpoint import listen
from urlab.transport.poller import READ, WRITE, make_poller
from urlab.transport.shm.kept_replies import KeptReplies
from urlab_wire import ErrorCode, encode
from urlab_wire.envelope import error

log = logging.getLogger("urlab.transport")

MAX_CONNECTIONS = 1000
_POOL_THREADS = 8
_HARD_LIMIT_BYTES = 1 << 30
"""A client that announces a larger frame is disconnected before it is read."""

_STOP_LIMIT_S = 3.0
_LINGER_S = 0.2


class Call(Protocol):
    """A request that a service has read."""

    @property
    def takes_long(self) -> bool:
        """Whether others should not wait behind it."""


class Service(Protocol):
    """Who answers: any number of calls at once, from any thread."""

    def read(self, frame: bytes) -> Any:
        """A `Call`, for `serve`."""

    def serve(self, call: Any) -> bytes:
        """The reply."""


class ZmqRpcServer:
    """Serves a service on an endpoint until it is stopped."""

    def __init__(self, endpoint_base: str, port: int, service: Service, kept: KeptReplies | None = None) -> None:
        """``kept`` are replies that somebody may ask for again here."""
        self._service = service
        self._kept = kept or KeptReplies()
        self._listener = listen(endpoint_base, port, option="--step-port")
        self._listener.socket.setblocking(False)
        self.endpoint = self._listener.endpoint
        self._wake_in, self._wake_out = sockets.socketpair()
        self._wake_in.setblocking(False)
        self._poller = make_poller()
        self._chores = {self._listener.socket.fileno(): self._accept, self._wake_in.fileno(): self._take_finished}
        for descriptor in self._chores:
            self._poller.register(descriptor, READ)
        self._eagerness = Eagerness()
        self._connections: dict[int, Connection] = {}
        self._finished: deque[tuple[Connection, bool, bytes]] = deque()
        self._running_in_pool = 0
        self._stopping = False
        self._pool = ThreadPoolExecutor(_POOL_THREADS, thread_name_prefix="urlab-op")
        self._thread = threading.Thread(target=self._run, name="urlab-zmq-rpc", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self, timeout_s: float = _STOP_LIMIT_S) -> None:
        """Answer what is being served and what waits for its turn, then close every socket. Once is enough."""
        if self._stopping:
            return
        self._pool.shutdown(wait=True)
        self._stopping = True
        self._wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        else:
            self._close()

    # -- the loop -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping:
                for descriptor, events in self._eagerness.wait(self._poller.poll):
                    connection = self._connections.get(descriptor)
                    if connection is not None:
                        self._attend(connection, events)
                    elif descriptor in self._chores:
                        self._chores[descriptor]()
            self._take_finished()
            self._linger()
        finally:
            self._close()

    def _accept(self) -> None:
        try:
            socket, _ = self._listener.socket.accept()
        except OSError:  # it went away before its turn
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            log.warning("a client is turned away: there are %d already", len(self._connections))
            socket.close()
            return
        try:
            connection = Connection(socket, MAX_REQUEST_BYTES, _HARD_LIMIT_BYTES)
        except OSError:  # it is gone already
            socket.close()
            return
        self._connections[connection.descriptor] = connection
        self._poller.register(connection.descriptor, READ)

    def _attend(self, connection: Connection, events: int) -> None:
        try:
            if events & WRITE:
                connection.flush()
                self._watch(connection)
            if events & ~WRITE:
                self._receive(connection)
        except zmtp.ProtocolError as stranger:
            log.warning("a client is disconnected: %s", stranger)
            self._drop(connection)
        except OSError:
            self._drop(connection)
        except Exception:
            log.exception("a request could not be served; its sender is disconnected")
            self._drop(connection)

    def _receive(self, connection: Connection) -> None:
        request = connection.receive_request()
        if request is None:
            for message in connection.receive():
                self._take(connection, message)
        elif connection.busy:
            connection.waiting.append([b"", request])
        else:
            self._serve(connection, True, request)

    def _watch(self, connection: Connection) -> None:
        """Look for room to write only while something waits to be written."""
        self._poller.modify(connection.descriptor, READ | WRITE if connection.has_unsent else READ)

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.descriptor, None) is not None:
            self._poller.unregister(connection.descriptor)
            connection.close()

    # -- requests -----------------------------------------------------------------------------------------------

    def _take(self, connection: Connection, message: Message) -> None:
        if connection.busy:
            connection.waiting.append(message)
            return
        delimited = message[0] == b""
        body = message[1:] if delimited else message
        request = body[0] if len(body) == 1 else None
        if request is None:
            self._answer(connection, delimited, _not_a_request(body))
        else:
            self._serve(connection, delimited, request)

    def _serve(self, connection: Connection, delimited: bool, request: bytes) -> None:
        if self._kept.waiting and (reply := self._kept.take(request)):
            self._answer(connection, delimited, reply)
            return
        call: Call = self._service.read(request)
        if self._running_in_pool or call.takes_long:
            self._submit(connection, delimited, call)
        else:
            self._answer(connection, delimited, self._service.serve(call))

    def _answer(self, connection: Connection, delimited: bool, reply: bytes) -> None:
        connection.send_reply(reply, delimited)
        if connection.has_unsent:
            self._watch(connection)

    def _submit(self, connection: Connection, delimited: bool, call: Call) -> None:
        connection.busy = True
        self._running_in_pool += 1
        try:
            self._pool.submit(self._serve_in_pool, connection, delimited, call)
        except RuntimeError:  # the pool is closing
            self._finished.append((connection, delimited, self._service.serve(call)))
            self._take_finished()

    def _serve_in_pool(self, connection: Connection, delimited: bool, call: Call) -> None:
        self._finished.append((connection, delimited, self._service.serve(call)))
        self._wake()

    def _take_finished(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_in.recv(4096)
        while self._finished:
            connection, delimited, reply = self._finished.popleft()
            self._running_in_pool -= 1
            connection.busy = False
            if self._connections.get(connection.descriptor) is connection:
                self._finish(connection, delimited, reply)

    def _finish(self, connection: Connection, delimited: bool, reply: bytes) -> None:
        try:
            connection.send_reply(reply, delimited)
            self._watch(connection)
            while connection.waiting and not connection.busy:
                self._take(connection, connection.waiting.popleft())
        except OSError:
            self._drop(connection)

    # -- the end ------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_out.send(b"!")

    def _linger(self) -> None:
        """Give clients a moment to take what was answered."""
        deadline = time.monotonic() + _LINGER_S
        while time.monotonic() < deadline and any(one.has_unsent for one in self._connections.values()):
            for descriptor, events in self._poller.poll(0.01):
                connection = self._connections.get(descriptor)
                if connection is not None and events & WRITE:
                    self._attend(connection, WRITE)

    def _close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._poller.close()
        self._listener.close()
        self._wake_in.close()
        self._wake_out.close()


def _not_a_request(body: Message) -> bytes:
    reason = f"a request is one frame, but this one has {len(body)}"
    if len(body) == 1:
        reason = f"a request has at most {MAX_REQUEST_BYTES} bytes, and this one has more"
    return encode(error(ErrorCode.BAD_REQUEST, reason))
