"""RPC for clients with keys, from any machine: a ROUTER socket of ZeroMQ itself, with CURVE.

Encryption is ZeroMQ's own, so the sockets are too; the server beside this one, which speaks the protocol itself and is
quicker, has none and stays on loopback. Requests are served alike: quick ones on this thread, those that may take long
or would have to wait in pools, each client's own in their order. ZeroMQ takes one message of each connection in turn.
"""

import contextlib
import logging
import socket as sockets
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import zmq

from urlab.access import KeysFolder, RpcCaller
from urlab.config import MAX_REQUEST_BYTES
from urlab.monitoring.watchdog import Turns
from urlab.transport.endpoint import listen
from urlab.transport.guard import Connected, ConnectionGuard, ConnectionUse, key_name, source
from urlab.transport.repeats import RequestRegistry, RunningRequest
from urlab.transport.rpc.connection import Holds
from urlab.transport.rpc.server import POOLS, UNREAD_BYTES, ParsedRequest, RequestHandler
from urlab_wire import ErrorCode, encode
from urlab_wire.envelope import error

log = logging.getLogger("urlab.transport")

_STOP_LIMIT_S = 3.0
_LINGER_MS = 200
_REPLIES_AHEAD = 16
_REQUESTS_AHEAD = 64
_TAKEN_AT_ONCE = 64
_OVERHEAD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """What all connections of one key together may send: on average, with a second's worth at once."""

    requests_per_s: float = 5000.0
    bytes_per_s: float = 2.0 * MAX_REQUEST_BYTES
    ahead: int = _REQUESTS_AHEAD
    ahead_bytes: int = MAX_REQUEST_BYTES
    """Of requests that one connection sends before their replies; a connection with more is ended."""


class KeyUse:
    """What a key has left of its share: a caller, and two buckets that fill up with time."""

    def __init__(self, caller: RpcCaller, registry: RequestRegistry, limits: KeyLimits) -> None:
        self.caller = caller
        self.registry = registry
        self._limits = limits
        self._requests = limits.requests_per_s
        self._bytes = limits.bytes_per_s
        self._at_s = time.monotonic()

    def take(self, size: int) -> bool:
        """Whether a request of that size is within the share; it counts then."""
        now, limits = time.monotonic(), self._limits
        passed_s, self._at_s = now - self._at_s, now
        self._requests = min(limits.requests_per_s, self._requests + passed_s * limits.requests_per_s)
        self._bytes = min(limits.bytes_per_s, self._bytes + passed_s * limits.bytes_per_s)
        if self._requests < 1 or self._bytes < size:
            return False
        self._requests -= 1
        self._bytes -= size
        return True


@dataclass(eq=False, slots=True)
class CurveClient:
    """A connection while it is being served; ``waiting`` are its requests that came meanwhile."""

    identity: bytes
    descriptor: int
    key: KeyUse
    delimited: bool
    use: ConnectionUse
    waiting: deque[bytes] = field(default_factory=deque)
    waiting_bytes: int = 0


class CurveRpcServer:
    """Serves requests of clients with keys on an endpoint, until it is stopped."""

    def __init__(
        self,
        endpoint_base: str,
        port: int,
        handler: RequestHandler,
        keys: KeysFolder,
        make_registry: Callable[[], RequestRegistry] = RequestRegistry,
        limits: KeyLimits | None = None,
        on_connected: Connected | None = None,
    ) -> None:
        """``make_registry`` makes one for each key: requests of one are never repeats of another's.

        ConfigError when the port cannot be had.
        """
        self._handler = handler
        self._keys = keys
        self._make_registry = make_registry
        self._limits = limits or KeyLimits()
        self._uses: dict[str, KeyUse] = {}
        self._busy: dict[bytes, CurveClient] = {}
        self._finished: deque[tuple[CurveClient, bytes]] = deque()
        self._stopping = False
        listener = listen(endpoint_base, port, option="--step-port", share=True)
        self.endpoint = listener.endpoint
        self._listener = listener
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._guard = ConnectionGuard(self._context, keys=keys, on_connected=on_connected)
        self._socket = self._open()
        self._holds = Holds(handler.let_go)
        self._guarded.on_end = self._holds.end
        self._wake_in, self._wake_out = sockets.socketpair()
        for one in (self._wake_in, self._wake_out):
            one.setblocking(False)
        self._pools = {
            name: ThreadPoolExecutor(threads, thread_name_prefix=f"urlab-op-{name}") for name, threads in POOLS.items()
        }
        self._watched = Turns("urlab-curve-rpc")
        self._thread = threading.Thread(target=self._run, name="urlab-curve-rpc", daemon=True)

    def _open(self) -> Any:
        socket = self._context.socket(zmq.ROUTER)
        for option, value in (
            (zmq.LINGER, _LINGER_MS),
            (zmq.IPV6, int(self._listener.socket.family == sockets.AF_INET6)),
            (zmq.ROUTER_MANDATORY, 1),
            (zmq.MAXMSGSIZE, MAX_REQUEST_BYTES + _OVERHEAD_BYTES),
            (zmq.RCVHWM, 2),  # the first one is the connection's identity
            (zmq.SNDHWM, _REPLIES_AHEAD),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, 10),
            (zmq.TCP_KEEPALIVE_INTVL, 5),
            (zmq.TCP_KEEPALIVE_CNT, 3),
        ):
            socket.setsockopt(option, value)
        self._guarded = self._guard.guard(socket, self._listener.endpoint, most_undelivered_bytes=4 * MAX_REQUEST_BYTES)
        self._listener.socket.setblocking(False)
        socket.setsockopt(zmq.USE_FD, self._listener.socket.detach())
        return socket

    def start(self) -> None:
        """Begin to serve."""
        self._socket.bind(self._listener.endpoint)
        self._thread.start()

    def stop(self, timeout_s: float = _STOP_LIMIT_S) -> None:
        """Answer what is being served, then close the socket. Once is enough."""
        if self._stopping:
            return
        for waits in (False, True):
            for pool in self._pools.values():
                pool.shutdown(wait=waits)
        self._stopping = True
        self._wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        else:
            self._close()
        self._guard.close()
        self._context.term()
        self._listener.close()

    # -- the loop -----------------------------------------------------------------------------------------------

    def queues(self) -> dict[str, int]:
        """How much there is of what may pile up. Any thread; the numbers are of about this moment."""
        busy = list(self._busy.values())
        return {
            "connections": len(self._guarded.connections),
            "waiting_requests": sum(len(one.waiting) for one in busy),
            "running_requests": len(busy),
        }

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._wake_in.fileno(), zmq.POLLIN)
        self._watched.open()
        try:
            while not self._stopping:
                events = dict(poller.poll())
                self._watched.busy()
                if self._wake_in.fileno() in events:
                    self._take_finished()
                if self._socket in events:
                    self._receive()
                self._watched.idle()
            self._take_finished()
        finally:
            self._watched.close()
            self._close()

    def _close(self) -> None:
        self._socket.close()
        self._wake_in.close()
        self._wake_out.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_out.send(b"!")

    def _receive(self) -> None:
        """Take what has come, up to a limit: finished requests are not to wait for long."""
        with contextlib.suppress(zmq.Again):
            for _ in range(_TAKEN_AT_ONCE):
                first = self._socket.recv(zmq.NOBLOCK, copy=False)
                frames = self._socket.recv_multipart(zmq.NOBLOCK) if first.more else []
                try:
                    self._take(first, frames)
                except Exception:
                    log.exception("a request could not be served; its sender is disconnected")
                    self._guarded.refuse(source(first), "its request could not be served")
                self._watched.turn()

    def _take(self, first: zmq.Frame, frames: list[bytes]) -> None:
        use = self._guarded.use_by(first)
        if use is not None:
            use.deliver(sum(map(len, frames)), 1 + len(frames))
        identity = first.bytes
        client = self._busy.get(identity)
        delimited = bool(frames) and frames[0] == b""
        body = frames[1:] if delimited else frames
        if client is None:
            key = self._key_of(key_name(first), first)
            if key is None:
                self._guarded.refuse(source(first), "its key was revoked")
                return
            client = CurveClient(identity, source(first), key, delimited, use or ConnectionUse(ended=True))
        if len(body) != 1:
            self._answer(client, _refusal(ErrorCode.BAD_REQUEST, f"a request is one frame, this one has {len(body)}"))
        elif identity in self._busy:
            self._postpone(client, body[0])
        else:
            self._serve(client, body[0])

    def _key_of(self, name: str, frame: zmq.Frame) -> KeyUse | None:
        """The share of a key, with the role that it has now; None when it was revoked."""
        known = self._keys.by_name(name)
        use = self._uses.get(name)
        if known is None:
            return None
        if use is None or use.caller.role is not known.role:
            address = str(frame.get("Peer-Address"))
            registry = use.registry if use is not None else self._make_registry()
            use = self._uses[name] = KeyUse(RpcCaller(name, known.role, address), registry, self._limits)
        return use

    def _postpone(self, client: CurveClient, request: bytes) -> None:
        client.waiting.append(request)
        client.waiting_bytes += len(request)
        if len(client.waiting) > self._limits.ahead or client.waiting_bytes > self._limits.ahead_bytes:
            client.waiting.clear()
            self._guarded.refuse(client.descriptor, f"more than {self._limits.ahead} requests wait for their turn")

    # -- requests -----------------------------------------------------------------------------------------------

    def _serve(self, client: CurveClient, request: bytes) -> None:
        key = client.key
        if not key.take(len(request)):
            limits = self._limits
            share = f"{limits.requests_per_s:g} requests and {limits.bytes_per_s:g} bytes a second"
            self._answer(client, _refusal(ErrorCode.RATE_LIMITED, f"a key may send {share}"))
            return
        if len(request) > UNREAD_BYTES:
            self._submit("editing", client, request, None)
            return
        running = key.registry.begin(request, self)
        if running.owner is not self:
            self._busy[client.identity] = client
            key.registry.attach(running, lambda reply: self._hand_back(client, reply))
            return
        try:
            parsed: ParsedRequest = self._handler.read(request)
            reply = None if parsed.takes_long else self._handler.serve_now(parsed, key.caller)
        except Exception:
            key.registry.finish(running, _CRASHED)
            raise
        if reply is None:
            self._submit(parsed.pool, client, parsed, running)
            return
        key.registry.finish(running, reply)
        self._note_hold(client, parsed)
        self._answer(client, reply)

    def _submit(self, pool: str, client: CurveClient, request: Any, running: RunningRequest | None) -> None:
        self._busy[client.identity] = client
        try:
            self._pools[pool].submit(self._serve_in_pool, client, request, running)
        except RuntimeError:  # the pool is closing
            self._serve_in_pool(client, request, running)

    def _serve_in_pool(self, client: CurveClient, request: Any, running: RunningRequest | None) -> None:
        registry = client.key.registry
        try:
            if running is None:
                running = registry.begin(request, self)
                if running.owner is not self:
                    registry.attach(running, lambda reply: self._hand_back(client, reply))
                    return
                request = self._handler.read(request)
            reply = self._handler.serve(request, client.key.caller)
            self._note_hold(client, request)
        except Exception:
            log.exception("a request could not be served")
            reply = _CRASHED
        if running is not None:
            registry.finish(running, reply)
        self._hand_back(client, reply)

    def _hand_back(self, client: CurveClient, reply: bytes) -> None:
        """Give the reply to the socket's thread."""
        self._finished.append((client, reply))
        self._wake()

    def _take_finished(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_in.recv(4096)
        while self._finished:
            client, reply = self._finished.popleft()
            self._busy.pop(client.identity, None)
            self._answer(client, reply)
            while client.waiting and client.identity not in self._busy:
                request = client.waiting.popleft()
                client.waiting_bytes -= len(request)
                self._serve(client, request)
                self._watched.turn()

    def _note_hold(self, client: CurveClient, parsed: ParsedRequest) -> None:
        """After a request was served: what it holds is released when its connection ends, or has ended. Any thread."""
        if parsed.holder is not None:
            self._holds.take(parsed.holder, client.use)
            if client.use.ended:
                self._holds.end(client.use)

    def _answer(self, client: CurveClient, reply: bytes) -> None:
        frames = [client.identity, b"", reply] if client.delimited else [client.identity, reply]
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK, copy=len(reply) < UNREAD_BYTES)
        except zmq.Again:
            client.waiting.clear()
            self._guarded.refuse(client.descriptor, "it does not read its replies")
        except zmq.ZMQError:  # it has gone
            client.waiting.clear()


def _refusal(code: ErrorCode, message: str) -> bytes:
    return encode(error(code, message))


_CRASHED = _refusal(ErrorCode.INTERNAL_ERROR, "the request could not be served")
