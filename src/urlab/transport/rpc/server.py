"""RPC for ZeroMQ clients (REQ or DEALER, over TCP or ipc).

The sockets are served directly, without libzmq: its I/O thread would add two hand-overs between threads to every
request. Measured side by side on two cores, client and server pinned to one each, an echo takes 46 us here and 116 us
over a libzmq ROUTER, a step of the demo level 248 us and 333 us (medians; 53 and 92, 244 and 293 us when not pinned).
A quick request is served on this thread too, if it need not wait for the simulation. Every other one goes to a pool of
threads, so that no client waits behind another one's; a client's own requests are answered in their order. Connections
take turns: of each, one message at a time, however many it sends.
"""

import contextlib
import logging
import os
import select
import socket as sockets
import threading
import time
from collections import deque
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from urlab import access
from urlab.access import RpcCaller
from urlab.errors import ConfigError
from urlab.monitoring.watchdog import Turns
from urlab.transport.endpoint import listen
from urlab.transport.repeats import RequestKey, RequestRegistry, RunningRequest
from urlab.transport.rpc import zmtp
from urlab.transport.rpc.acceptor import Acceptor
from urlab.transport.rpc.connection import READ_BYTES, Connection, Holds, Message, RpcLimits, Traffic
from urlab_wire import ErrorCode, encode
from urlab_wire.envelope import error
from urlab_wire.shm_wait import AdaptiveSpin

log = logging.getLogger("urlab.transport")

_READ, _WRITE = 1, 4
_GONE = 0x2000 | 0x10 | 0x8
"""EPOLLIN and EPOLLOUT; EPOLLRDHUP, EPOLLHUP and EPOLLERR: the peer is gone, or will not take an answer."""

POOLS = {"simulation": 8, "reading": 4, "editing": 8}
"""Threads by pool: requests that wait for the simulation, or edit for long, leave a thread to those that only read."""

UNREAD_BYTES = 1 << 18
"""A larger request is also read in a pool: that alone may take long."""

_STOP_LIMIT_S = 3.0
_LINGER_S = 0.2


class ParsedRequest(Protocol):
    """A request that a `RequestHandler` has read."""

    @property
    def takes_long(self) -> bool:
        """Whether other clients should not wait behind it."""

    @property
    def pool(self) -> str:
        """Where it is served if it takes long or has to wait: "simulation", "reading" or "editing"."""

    @property
    def key(self) -> RequestKey | None:
        """Its session and id, if it has an id."""

    @property
    def holder(self) -> str | None:
        """The session for which it takes hold of a body, if it does."""


class RequestHandler(Protocol):
    """Answers requests: any number at once, from any thread."""

    def read(self, frame: bytes) -> Any:
        """A `ParsedRequest`, for `serve`."""

    def serve(self, request: Any, /, caller: RpcCaller = ...) -> bytes:
        """The reply to a request that `read` gave; without ``caller`` it is the server's own user that asks."""

    def serve_now(self, request: Any, /, caller: RpcCaller = ...) -> bytes | None:
        """The same, for one that does not take long; None, and nothing is done, when it would have to wait."""

    def let_go(self, session_id: str, /) -> None:
        """Release what a session holds: the client that took hold of it is gone."""


class ZmqRpcServer:
    """Serves requests on an endpoint until it is stopped."""

    def __init__(
        self,
        endpoint_base: str,
        port: int,
        handler: RequestHandler,
        registry: RequestRegistry | None = None,
        limits: RpcLimits | None = None,
        *,
        share: bool = False,
    ) -> None:
        """``registry`` knows the requests of the other transports, which clients may repeat here.

        ``share`` lets other users of this machine in. ConfigError when the port cannot be had, or where there is no
        epoll.
        """
        if not hasattr(select, "epoll"):
            raise ConfigError("the server's sockets need Linux; urlab.launch() runs without sockets")
        self._handler = handler
        self._registry = registry or RequestRegistry()
        self._limits = limits or RpcLimits()
        self._most_connections = min(self._limits.connections, os.sysconf("SC_OPEN_MAX") // 2)
        listener = listen(endpoint_base, port, option="--step-port", share=share)
        self.endpoint = listener.endpoint
        self._acceptor = Acceptor(listener, self._admit, share=share)
        self._arrivals: deque[tuple[sockets.socket, Any, Hashable]] = deque()
        self._wake_in, self._wake_out = sockets.socketpair()
        for one in (self._wake_in, self._wake_out):
            one.setblocking(False)
        self._poller = select.epoll()
        self._poller.register(self._wake_in.fileno(), _READ)
        self._spin = AdaptiveSpin()
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._traffic = Traffic()
        self._holds = Holds(handler.let_go)
        self._connections: dict[int, Connection] = {}
        self._silent: dict[Connection, None] = {}
        self._per_peer: dict[Hashable, int] = {}
        self._turns: deque[Connection] = deque()
        self._finished: deque[tuple[Connection, bool, bytes | None]] = deque()
        self._running_in_pool = 0
        self._stopping = False
        self._pools = {
            name: ThreadPoolExecutor(threads, thread_name_prefix=f"urlab-op-{name}") for name, threads in POOLS.items()
        }
        self._thread = threading.Thread(target=self._run, name="urlab-zmq-rpc", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()
        self._acceptor.start()

    def stop(self, timeout_s: float = _STOP_LIMIT_S) -> None:
        """Answer what is being served and what waits for its turn, then close every socket. Once is enough."""
        if self._stopping:
            return
        for waits in (False, True):  # none takes a request while another one ends its last
            for pool in self._pools.values():
                pool.shutdown(wait=waits)
        self._stopping = True
        self._acceptor.stop()
        self._wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        else:
            self._close()

    def queues(self) -> dict[str, int]:
        """How much there is of what may pile up. Any thread; the numbers are of about this moment."""
        connections = list(self._connections.values())
        return {
            "connections": len(connections),
            "waiting_requests": sum(len(one.waiting) for one in connections),
            "running_requests": self._running_in_pool,
            "received_bytes": self._traffic.received,
            "unsent_bytes": self._traffic.unsent,
        }

    # -- the loop -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        watched = Turns("urlab-zmq-rpc").open()
        try:
            while not self._stopping:
                happened = self._next_events()
                watched.busy()
                for descriptor, events in happened:
                    connection = self._connections.get(descriptor)
                    if connection is not None:
                        self._attend(connection, events)
                    elif descriptor == self._wake_in.fileno():
                        self._take_finished()
                if self._turns:  # one, and then a look at what has come: a burst of one client holds up no other
                    self._attend(self._turns.popleft(), 0)
                if self._arrivals:
                    self._take_arrivals()
                if self._silent:
                    self._drop_silent()
                watched.idle()
            self._take_finished()
            self._linger()
        finally:
            watched.close()
            self._close()

    def _next_events(self) -> list[tuple[int, int]]:
        """(descriptor, events): by polling for a moment while requests follow each other closely, else asleep."""
        spin, poll = self._spin, self._poller.poll
        if self._turns:
            return poll(0)
        begin = time.perf_counter()
        while spin.active and time.perf_counter() - begin < spin.spin_s:
            if events := poll(0):
                spin.learn(True)
                return events
        events = poll(self._patience_s() if self._silent else None)
        spin.learn(time.perf_counter() - begin < spin.spin_s)
        return events

    def _attend(self, connection: Connection, events: int) -> None:
        """Serve a connection something happened to; without events it is its turn to be served what it sent before."""
        if connection.closed:
            return
        try:
            if events & _GONE:  # its replies would reach no client, so what waits is not served
                self._drop(connection)
                return
            if events & _READ:
                request = connection.receive_request(self._buffer)
                if request is not None:
                    self._serve(connection, True, request)
                    if connection.unsent_bytes:
                        self._watch(connection)
                        self._bound_traffic(connection)
                    return
            if events & _WRITE:
                connection.flush()
            self._give_turn(connection, events)
        except zmtp.ProtocolError as wrong:
            self._end(connection, "breaks the protocol", str(wrong))
        except OSError:
            self._drop(connection)
        except Exception:
            log.exception("a request could not be served; its sender is disconnected")
            self._drop(connection)

    def _give_turn(self, connection: Connection, events: int) -> None:
        """Serve one message of a connection, and queue it for another turn if it has more."""
        if not events:
            connection.in_turn = False
        if connection.busy:
            connection.look_ahead()
        elif not connection.is_clogged and (message := connection.next_message()) is not None:
            self._take(connection, message)
        if connection.introduced and connection in self._silent:
            del self._silent[connection]
        self._queue(connection)
        self._watch(connection)
        self._bound_traffic(connection)

    def _queue(self, connection: Connection) -> None:
        if connection.wants_turn and not connection.in_turn:
            connection.in_turn = True
            self._turns.append(connection)

    def _watch(self, connection: Connection) -> None:
        """Look for room to write while something waits to be written, and for bytes while there is room for them."""
        wanted = _GONE | (_READ if connection.wants_bytes else 0) | (_WRITE if connection.unsent_bytes else 0)
        if wanted != connection.watched and not connection.closed:
            connection.watched = wanted
            self._poller.modify(connection.descriptor, wanted)

    # -- connections --------------------------------------------------------------------------------------------

    def _admit(self, socket: sockets.socket, address: Any, peer: Hashable) -> None:
        """Take a connection; on the acceptor's thread."""
        self._arrivals.append((socket, address, peer))
        self._wake()

    def _take_arrivals(self) -> None:
        while self._arrivals:
            socket, address, peer = self._arrivals.popleft()
            try:
                self._add(socket, address, peer)
            except OSError:  # it is gone already
                socket.close()

    def _add(self, socket: sockets.socket, address: Any, peer: Hashable) -> None:
        if not self._make_room(peer):
            self._say("full", f"a client is turned away: there are {len(self._connections)} already")
            socket.close()
            return
        connection = Connection(socket, address, peer, self._limits, self._traffic)
        connection.watched = _GONE | _READ
        self._poller.register(connection.descriptor, connection.watched)
        self._connections[connection.descriptor] = connection
        self._per_peer[peer] = self._per_peer.get(peer, 0) + 1
        self._silent[connection] = None

    def _make_room(self, peer: Hashable) -> bool:
        """Whether there is room for one more of a peer. Where there is none, the oldest that said nothing goes."""
        own_full = self._per_peer.get(peer, 0) >= self._limits.connections_per_peer
        if not own_full and len(self._connections) < self._most_connections:
            return True
        for one in self._silent:
            if not own_full or one.peer == peer:
                self._end(one, "silent", "it has said nothing, and makes room for another")
                return True
        return False

    def _patience_s(self) -> float:
        """How long the oldest connection without a handshake still has."""
        oldest = next(iter(self._silent))
        return max(0.0, oldest.begun_s + self._limits.handshake_s - time.monotonic())

    def _drop_silent(self) -> None:
        while self._silent and self._patience_s() <= 0:
            oldest = next(iter(self._silent))
            self._end(oldest, "silent", f"no handshake of ZeroMQ within {self._limits.handshake_s:g} s")

    def _bound_traffic(self, connection: Connection) -> None:
        """Disconnect clients while all together hold more than there is room for."""
        limits, traffic = self._limits, self._traffic
        while traffic.received > limits.all_received_bytes:
            largest = max(self._connections.values(), key=lambda one: one.held_bytes)
            self._end(largest, "held", "too many bytes of requests wait to be served")
        while traffic.unsent > limits.all_unsent_bytes:
            others = [one for one in self._connections.values() if one.unsent_bytes and one is not connection]
            stuck = min(others, key=lambda one: one.last_sent_s, default=None)
            if stuck is None:
                return
            self._end(stuck, "unread", "it does not read its replies")

    def _end(self, connection: Connection, kind: str, reason: str) -> None:
        """Disconnect a client, and say why: of each kind of reasons some in a while, for clients can provoke them."""
        self._say(kind, f"the client at {connection.address or 'a socket file'} is disconnected: {reason}")
        self._drop(connection)

    def _say(self, kind: str, message: str) -> None:
        access.refusals.say(f"{self.endpoint} {kind}", f"{self.endpoint}: {message}")

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.descriptor, None) is None:
            return
        self._silent.pop(connection, None)
        self._poller.unregister(connection.descriptor)
        connection.close()
        if not connection.busy:
            self._holds.end(connection)
        self._per_peer[connection.peer] -= 1
        if not self._per_peer[connection.peer]:
            del self._per_peer[connection.peer]

    # -- requests -----------------------------------------------------------------------------------------------

    def _take(self, connection: Connection, message: Message) -> None:
        delimited = message[0] == b""
        body = message[1:] if delimited else message
        request = body[0] if len(body) == 1 else None
        if request is None:
            connection.send_reply(_not_a_request(body, self._limits.request_bytes), delimited)
        else:
            self._serve(connection, delimited, request)

    def _serve(self, connection: Connection, delimited: bool, request: bytes) -> None:
        if len(request) > UNREAD_BYTES:
            self._submit("editing", connection, delimited, request, None)
            return
        parsed: ParsedRequest = self._handler.read(request)
        if parsed.holder is not None:
            self._holds.take(parsed.holder, connection)
        running = self._registry.begin(request, self, parsed.key)
        if running.owner is not self:
            self._await_reply(connection, delimited, running)
            return
        try:
            reply = None if parsed.takes_long else self._handler.serve_now(parsed)
        except Exception:
            self._registry.finish(running, _CRASHED)
            raise
        if reply is None:
            self._submit(parsed.pool, connection, delimited, parsed, running)
            return
        self._registry.finish(running, reply)
        connection.send_reply(reply, delimited)

    def _await_reply(self, connection: Connection, delimited: bool, running: RunningRequest) -> None:
        """Answer a repeat when the request that it repeats is answered, on whichever transport that is served."""
        connection.busy = True
        self._running_in_pool += 1
        self._registry.attach(running, lambda reply: self._hand_back(connection, delimited, reply))

    def _submit(
        self, pool: str, connection: Connection, delimited: bool, request: Any, running: RunningRequest | None
    ) -> None:
        """Have a request served in a pool: one that was read, or, without ``running``, its bytes."""
        connection.busy = True
        self._running_in_pool += 1
        begun = threading.Lock()

        def serve() -> None:
            if begun.acquire(blocking=False):
                self._serve_in_pool(connection, delimited, request, running)

        try:
            self._pools[pool].submit(serve)
        except RuntimeError:  # the pool is closing, or gets no thread; then it may still begin with this later
            serve()

    def _serve_in_pool(
        self, connection: Connection, delimited: bool, request: Any, running: RunningRequest | None
    ) -> None:
        try:
            if running is None:
                frame, request = request, self._handler.read(request)
                running = self._registry.begin(frame, self, request.key)
                if running.owner is not self:
                    self._registry.attach(running, lambda reply: self._hand_back(connection, delimited, reply))
                    return
            if connection.closed and self._registry.abandon(running):
                self._hand_back(connection, delimited, None)
                return
            reply = self._handler.serve(request)
        except Exception:
            log.exception("a request could not be served")
            reply = _CRASHED
        if running is not None:
            self._registry.finish(running, reply)
        self._hand_back(connection, delimited, reply)

    def _hand_back(self, connection: Connection, delimited: bool, reply: bytes | None) -> None:
        """Give the reply to the socket's thread."""
        self._finished.append((connection, delimited, reply))
        self._wake()

    def _take_finished(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_in.recv(4096)
        while self._finished:
            connection, delimited, reply = self._finished.popleft()
            self._running_in_pool -= 1
            connection.busy = False
            if connection.closed:
                self._holds.end(connection)
            elif reply is not None:
                self._finish(connection, delimited, reply)

    def _finish(self, connection: Connection, delimited: bool, reply: bytes) -> None:
        try:
            connection.send_reply(reply, delimited)
            self._queue(connection)
            self._watch(connection)
            self._bound_traffic(connection)
        except OSError:
            self._drop(connection)

    # -- the end ------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_out.send(b"!")

    def _linger(self) -> None:
        """Answer what waits as quickly as that goes, and give clients a moment to take what was answered."""
        deadline = time.monotonic() + _LINGER_S
        while time.monotonic() < deadline and (
            self._turns or any(one.unsent_bytes for one in self._connections.values())
        ):
            while self._turns and time.monotonic() < deadline:
                self._attend(self._turns.popleft(), 0)
            self._take_finished()
            for descriptor, events in self._poller.poll(0.01):
                connection = self._connections.get(descriptor)
                if connection is not None and events & _WRITE:
                    self._attend(connection, _WRITE)

    def _close(self) -> None:
        for socket, _, _ in self._arrivals:
            socket.close()
        for connection in list(self._connections.values()):
            self._drop(connection)
        self._poller.close()
        self._wake_in.close()
        self._wake_out.close()


_CRASHED = encode(error(ErrorCode.INTERNAL_ERROR, "the request could not be served"))


def _not_a_request(body: Message, limit: int) -> bytes:
    reason = f"a request is one frame, but this one has {len(body)}"
    if len(body) == 1:
        reason = f"a request has at most {limit} bytes, and this one has more"
    return encode(error(ErrorCode.BAD_REQUEST, reason))
