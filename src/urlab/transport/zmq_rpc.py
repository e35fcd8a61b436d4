"""RPC over ZeroMQ: one ROUTER socket, so that REQ clients come and go as they like.

A quick request is served on the socket's own thread, which costs no hand-over. A request that may take long, and
whatever arrives while one runs, goes to a small pool, so that nobody waits behind it.
"""

import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import zmq

from urlab.transport.endpoint import bind
from urlab_wire import ErrorCode, encode
from urlab_wire.envelope import error

log = logging.getLogger("urlab.transport")

_POOL_THREADS = 8
_HARD_LIMIT_BYTES = 1 << 30
"""A peer that announces a larger frame is disconnected before it is read."""

Handle = Callable[[bytes], bytes]


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
        self._wake_read, self._wake_write = os.pipe()
        self._finished: deque[tuple[list[bytes], bytes]] = deque()
        self._running_in_pool = 0
        self._stopping = False
        self._pool = ThreadPoolExecutor(_POOL_THREADS, thread_name_prefix="urlab-op")
        self._thread = threading.Thread(target=self._run, name="urlab-zmq-rpc", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self, timeout_s: float = 3.0) -> None:
        """Answer what is being served, then close the socket."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._stopping = True
        self._wake()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        else:
            self._close()

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._wake_read, zmq.POLLIN)
        try:
            while not self._stopping:
                ready = dict(poller.poll())
                if self._wake_read in ready:
                    os.read(self._wake_read, 4096)
                self._send_finished()
                if self._socket in ready:
                    self._serve(self._socket.recv_multipart())
            self._send_finished()
        finally:
            self._close()

    def _serve(self, parts: Sequence[bytes]) -> None:
        route, body = _split(parts)
        if len(body) != 1:
            self._send(route, _not_one_frame(len(body)))
        elif self._running_in_pool or self._takes_long(body[0]):
            self._running_in_pool += 1
            self._pool.submit(self._serve_in_pool, route, body[0])
        else:
            self._send(route, self._handle(body[0]))

    def _serve_in_pool(self, route: list[bytes], frame: bytes) -> None:
        self._finished.append((route, self._handle(frame)))
        self._wake()

    def _send_finished(self) -> None:
        while self._finished:
            route, reply = self._finished.popleft()
            self._running_in_pool -= 1
            self._send(route, reply)

    def _send(self, route: list[bytes], reply: bytes) -> None:
        with contextlib.suppress(zmq.Again):
            self._socket.send_multipart([*route, reply], flags=zmq.DONTWAIT)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"!")

    def _close(self) -> None:
        self._socket.close()
        self._context.term()
        for descriptor in (self._wake_read, self._wake_write):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _split(parts: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The way back to a client (its identity and, for REQ, the empty frame), and what it sent."""
    head = 2 if len(parts) > 1 and parts[1] == b"" else 1
    return list(parts[:head]), list(parts[head:])


def _not_one_frame(count: int) -> bytes:
    return encode(error(ErrorCode.BAD_REQUEST, f"a request is one frame, but this one has {count}"))
