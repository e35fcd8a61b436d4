"""RPC for ZeroMQ clients (REQ or DEALER, over TCP or ipc).

The sockets are served directly, without libzmq: its I/O thread would add two hand-overs between threads to every
request. Measured side by side on two cores, client and server pinned to one each, an echo takes 46 us here and 116 us
over a libzmq ROUTER, a step of the demo level 248 us and 333 us (medians; 53 and 92, 244 and 293 us when not pinned).
A quick request is served on this thread too. One that may take long, and whatever arrives while one runs, goes to a
small pool, so that no client waits behind another one's; a client's own requests are answered in their order.
"""

import contextlib
import logging
import select
import socket as sockets
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from urlab.errors import ConfigError
from urlab.transport.endpoint import listen
from urlab.transport.repeats import RequestRegistry, RunningRequest
from urlab.transport.rpc import zmtp
from urlab.transport.rpc.connection import Connection, Message, RpcLimits
from urlab_wire import ErrorCode, encode
from urlab_wire.envelope import error
from urlab_wire.shm_wait import AdaptiveSpin

log = logging.getLogger("urlab.transport")

_READ, _WRITE = 1, 4
"""EPOLLIN and EPOLLOUT. A socket that is closed or broken is reported by other bits, and counts as readable."""

_POOL_THREADS = 8
_STOP_LIMIT_S = 3.0
_LINGER_S = 0.2


class ParsedRequest(Protocol):
    """A request that a `RequestHandler` has read."""

    @property
    def takes_long(self) -> bool:
        """Whether other clients should not wait behind it."""


class RequestHandler(Protocol):
    """Answers requests: any number at once, from any thread."""

    def read(self, frame: bytes) -> Any:
        """A `ParsedRequest`, for `serve`."""

    def serve(self, request: Any, /) -> bytes:
        """The reply to a request that `read` gave."""


class ZmqRpcServer:
    """Serves requests on an endpoint until it is stopped."""

    def __init__(
        self,
        endpoint_base: str,
        port: int,
        handler: RequestHandler,
        registry: RequestRegistry | None = None,
        limits: RpcLimits | None = None,
    ) -> None:
        """``registry`` knows the requests of the other transports, which clients may repeat here.

        ConfigError when the port cannot be had, or where there is no epoll.
        """
        if not hasattr(select, "epoll"):
            raise ConfigError("the server's sockets need Linux; urlab.launch() runs without sockets")
        self._handler = handler
        self._registry = registry or RequestRegistry()
        self._limits = limits or RpcLimits()
        self._listener = listen(endpoint_base, port, option="--step-port")
        self._listener.socket.setblocking(False)
        self.endpoint = self._listener.endpoint
        self._wake_in, self._wake_out = sockets.socketpair()
        self._wake_in.setblocking(False)
        self._poller = select.epoll()
        self._handlers = {self._listener.socket.fileno(): self._accept, self._wake_in.fileno(): self._take_finished}
        for descriptor in self._handlers:
            self._poller.register(descriptor, _READ)
        self._spin = AdaptiveSpin()
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
                for descriptor, events in self._next_events():
                    connection = self._connections.get(descriptor)
                    if connection is not None:
                        self._attend(connection, events)
                    elif descriptor in self._handlers:
                        self._handlers[descriptor]()
            self._take_finished()
            self._linger()
        finally:
            self._close()

    def _next_events(self) -> list[tuple[int, int]]:
        """(descriptor, events): by polling for a moment while requests follow each other closely, else asleep."""
        spin, poll = self._spin, self._poller.poll
        begin = time.perf_counter()
        while spin.active and time.perf_counter() - begin < spin.spin_s:
            if events := poll(0):
                spin.learn(True)
                return events
        events = poll()
        spin.learn(time.perf_counter() - begin < spin.spin_s)
        return events

    def _accept(self) -> None:
        try:
            socket, address = self._listener.socket.accept()
        except OSError:  # it went away before its turn
            return
        if len(self._connections) >= self._limits.connections:
            log.warning("a client is turned away: there are %d already", len(self._connections))
            socket.close()
            return
        try:
            connection = Connection(socket, address, self._limits)
        except OSError:  # it is gone already
            socket.close()
            return
        self._connections[connection.descriptor] = connection
        self._poller.register(connection.descriptor, _READ)

    def _attend(self, connection: Connection, events: int) -> None:
        try:
            if events & _WRITE:
                connection.flush()
                self._watch(connection)
            if events & ~_WRITE:
                self._receive(connection)
        except zmtp.ProtocolError as wrong:
            log.warning("the client at %s is disconnected: %s", connection.address, wrong)
            self._drop(connection)
        except OSError:
            self._drop(connection)
        except Exception:
            log.exception("a request could not be served; its sender is disconnected")
            self._drop(connection)

    def _receive(self, connection: Connection) -> None:
        request = connection.receive_request()
        if request is not None and not connection.busy:
            self._serve(connection, True, request)
            return
        messages: list[Message] = connection.receive() if request is None else [[b"", request]]
        for message in messages:
            self._take(connection, message)
        if connection.has_unsent or connection.is_ahead:
            self._watch(connection)

    def _watch(self, connection: Connection) -> None:
        """Look for room to write while something waits to be written, and read no more of a client that is ahead."""
        reading = 0 if connection.is_ahead else _READ
        self._poller.modify(connection.descriptor, reading | _WRITE if connection.has_unsent else reading)

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.descriptor, None) is not None:
            self._poller.unregister(connection.descriptor)
            connection.close()

    # -- requests -----------------------------------------------------------------------------------------------

    def _take(self, connection: Connection, message: Message) -> None:
        if connection.busy:
            connection.postpone(message)
            return
        delimited = message[0] == b""
        body = message[1:] if delimited else message
        request = body[0] if len(body) == 1 else None
        if request is None:
            self._answer(connection, delimited, _not_a_request(body, self._limits.request_bytes))
        else:
            self._serve(connection, delimited, request)

    def _serve(self, connection: Connection, delimited: bool, request: bytes) -> None:
        running = self._registry.begin(request, self)
        if running.owner is not self:
            self._await_reply(connection, delimited, running)
            return
        try:
            parsed: ParsedRequest = self._handler.read(request)
            if self._running_in_pool or parsed.takes_long:
                self._submit(connection, delimited, parsed, running)
                return
            reply = self._handler.serve(parsed)
        except Exception:
            self._registry.finish(running, _CRASHED)
            raise
        self._registry.finish(running, reply)
        self._answer(connection, delimited, reply)

    def _await_reply(self, connection: Connection, delimited: bool, running: RunningRequest) -> None:
        """Answer a repeat when the request that it repeats is answered, on whichever transport that is served."""
        connection.busy = True
        self._running_in_pool += 1

        def take(reply: bytes) -> None:
            self._finished.append((connection, delimited, reply))
            self._wake()

        self._registry.attach(running, take)

    def _answer(self, connection: Connection, delimited: bool, reply: bytes) -> None:
        connection.send_reply(reply, delimited)
        if connection.has_unsent:
            self._watch(connection)

    def _submit(self, connection: Connection, delimited: bool, parsed: ParsedRequest, running: RunningRequest) -> None:
        connection.busy = True
        self._running_in_pool += 1
        try:
            self._pool.submit(self._serve_in_pool, connection, delimited, parsed, running)
        except RuntimeError:  # the pool is closing
            self._serve_in_pool(connection, delimited, parsed, running)

    def _serve_in_pool(
        self, connection: Connection, delimited: bool, parsed: ParsedRequest, running: RunningRequest
    ) -> None:
        try:
            reply = self._handler.serve(parsed)
        except Exception:
            log.exception("a request could not be served")
            reply = _CRASHED
        self._registry.finish(running, reply)
        self._finished.append((connection, delimited, reply))
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
            while connection.waiting and not connection.busy:
                self._take(connection, connection.next_waiting())
            self._watch(connection)
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
                if connection is not None and events & _WRITE:
                    self._attend(connection, _WRITE)

    def _close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._poller.close()
        self._listener.close()
        self._wake_in.close()
        self._wake_out.close()


_CRASHED = encode(error(ErrorCode.INTERNAL_ERROR, "the request could not be served"))


def _not_a_request(body: Message, limit: int) -> bytes:
    reason = f"a request is one frame, but this one has {len(body)}"
    if len(body) == 1:
        reason = f"a request has at most {limit} bytes, and this one has more"
    return encode(error(ErrorCode.BAD_REQUEST, reason))
