"""RPC over ZeroMQ: one ROUTER socket, so that REQ clients come and go as they like.

A quick request is served on the socket's own thread, which costs no hand-over. A request that may take long, and
whatever arrives while one runs, goes to a small pool, so that nobody waits behind it. A pool thread that is done
wakes the socket's thread with a message to the same socket, from inside the process: so that thread has one thing to
wait for, and waits without polling.
"""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import zmq

from urlab.transport.endpoint import bind, remove_ipc_file
from urlab_wire import ErrorCode, encode
from urlab_wire.envelope import error

log = logging.getLogger("urlab.transport")

_POOL_THREADS = 8
_HARD_LIMIT_BYTES = 1 << 30
"""A peer that announces a larger frame is disconnected before it is read."""

_INSIDE = "inproc://wake"
_WAKER = b"urlab-waker"
_STOP_LIMIT_S = 3.0

Handle = Callable[[bytes], bytes]
Route = tuple[bytes, ...]
"""The way back to a client: its identity and, for REQ, an empty frame."""


class ZmqRpcServer:
    """Serves ``handle`` on an endpoint until it is stopped."""

    def __init__(self, endpoint_base: str, port: int, handle: Handle, takes_long: Callable[[bytes], bool]) -> None:
        self._handle = handle
        self._takes_long = takes_long
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 200)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _HARD_LIMIT_BYTES)
        try:
            self.endpoint = bind(self._socket, endpoint_base, port, option="--step-port")
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._socket.bind(_INSIDE)
        self._waker = _Waker(self._context)
        self._finished: deque[tuple[Route, bytes]] = deque()
        self._running_in_pool = 0
        self._stopping = False
        self._pool = ThreadPoolExecutor(_POOL_THREADS, thread_name_prefix="urlab-op")
        self._thread = threading.Thread(target=self._run, name="urlab-zmq-rpc", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self, timeout_s: float = _STOP_LIMIT_S) -> None:
        """Answer what is being served and what waits for its turn, then close the socket. Once is enough."""
        if self._stopping:
            return
        self._pool.shutdown(wait=True)
        self._stopping = True
        self._waker.wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        else:
            self._close()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._serve_one()
            self._send_finished()
        finally:
            self._close()

    def _serve_one(self) -> None:
        try:
            self._serve(*self._receive())
        except zmq.ZMQError:
            raise
        except Exception:
            log.exception("a request could not be served; its sender gets no reply")

    def _receive(self) -> tuple[Route, list[bytes]]:
        """Who sent what. A REQ client's frames follow an empty one; the rest of a message is there once it begins."""
        socket = self._socket
        sender, first = socket.recv(), socket.recv()
        route, body = ((sender,), [first]) if first else ((sender, first), [])
        while socket.getsockopt(zmq.RCVMORE):
            body.append(socket.recv())
        return route, body

    def _serve(self, route: Route, body: list[bytes]) -> None:
        if route[0] == _WAKER:
            self._send_finished()
        elif len(body) != 1:
            self._send(route, _not_one_frame(len(body)))
        elif self._running_in_pool or self._takes_long(body[0]):
            self._submit(route, body[0])
        else:
            self._send(route, self._handle(body[0]))

    def _submit(self, route: Route, frame: bytes) -> None:
        try:
            self._pool.submit(self._serve_in_pool, route, frame)
        except RuntimeError:  # the pool is closing
            self._send(route, self._handle(frame))
        else:
            self._running_in_pool += 1

    def _serve_in_pool(self, route: Route, frame: bytes) -> None:
        self._finished.append((route, self._handle(frame)))
        self._waker.wake()

    def _send_finished(self) -> None:
        while self._finished:
            route, reply = self._finished.popleft()
            self._running_in_pool -= 1
            self._send(route, reply)

    def _send(self, route: Route, reply: bytes) -> None:
        """Never waits: what a client does not take is dropped."""
        with contextlib.suppress(zmq.Again):
            for frame in route:
                self._socket.send(frame, zmq.SNDMORE | zmq.DONTWAIT)
            self._socket.send(reply, zmq.DONTWAIT)

    def _close(self) -> None:
        self._waker.close()
        self._socket.close()
        self._context.term()
        remove_ipc_file(self.endpoint)


class _Waker:
    """Wakes the socket's thread, from any other."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]") -> None:
        self._lock = threading.Lock()
        self._socket = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.ROUTING_ID, _WAKER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(_INSIDE)

    def wake(self) -> None:
        """Send a word; nothing happens when the server is closed already."""
        with self._lock, contextlib.suppress(zmq.ZMQError):
            self._socket.send(b"done", zmq.DONTWAIT)

    def close(self) -> None:
        """Let go of the socket."""
        with self._lock:
            self._socket.close()


def _not_one_frame(count: int) -> bytes:
    return encode(error(ErrorCode.BAD_REQUEST, f"a request is one frame, but this one has {count}"))
