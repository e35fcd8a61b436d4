"""REQ/REP over ZeroMQ: the transport that works between machines."""

import re
import socket as tcp
import threading
import time

import zmq

from urlab_client.errors import TRANSPORT_ERROR, URLabRPCError, URLabTimeoutError
from urlab_client.transports.base import DEFAULT_TIMEOUT_MS
from urlab_client.transports.zmq_streams import StreamingTransport

PROBE_TIMEOUT_S = 0.5

_NOBLOCK = int(zmq.NOBLOCK)


def endpoint(address: str, port: int) -> str:
    """The endpoint of one channel: the base address with its port; localhost means 127.0.0.1."""
    if re.fullmatch(r"tcp://.*:\d+", address):
        raise ValueError(
            f"address {address!r} already has a port: give the base address (tcp://host) and pass step_port="
        )
    return f"{re.sub(r'^tcp://localhost$', 'tcp://127.0.0.1', address)}:{port}"


def is_listening(where: str) -> bool:
    """Whether a plain connection to an endpoint succeeds: a process that is stuck still listens."""
    scheme, _, place = where.partition("://")
    host, _, port = place.rpartition(":")
    try:
        if scheme == "ipc":
            with tcp.socket(tcp.AF_UNIX, tcp.SOCK_STREAM) as probe:
                probe.settimeout(PROBE_TIMEOUT_S)
                probe.connect(place)
        else:
            tcp.create_connection((host.strip("[]"), int(port)), PROBE_TIMEOUT_S).close()
    except (OSError, ValueError):
        return False
    return True


class ZmqTransport(StreamingTransport):
    """One REQ socket, shared by all threads, and a SUB socket per stream.

    A request waits at most ``connect_timeout_ms`` for a server that listens, and for both that and the answer its own
    timeout. Any failure drops the socket, so that the next request starts with a fresh connection. Streams are looked
    for on the host of ``step_endpoint``.
    """

    def __init__(
        self,
        step_endpoint: str,
        *,
        state_endpoint: str | None = None,
        connect_timeout_ms: int = DEFAULT_TIMEOUT_MS,
        follow_handshake: bool = True,
    ) -> None:
        super().__init__(step_endpoint.rpartition(":")[0], state_endpoint, follow_handshake=follow_handshake)
        self.step_endpoint = step_endpoint
        self._connect_timeout_ms = connect_timeout_ms
        self._lock = threading.RLock()
        self._socket: zmq.Socket[bytes] | None = None
        self._armed_timeout_ms = -1

    def request(self, frame: bytes, *, timeout_ms: int) -> bytes:
        """One round trip over the REQ socket."""
        with self._lock:
            socket = self._socket or self._connect()
            try:
                try:
                    socket.send(frame, _NOBLOCK)
                except zmq.Again:
                    timeout_ms = self._send_when_connected(socket, frame, timeout_ms)
                return self._receive(socket, timeout_ms)
            except zmq.ZMQError as broken:
                self._drop()
                raise URLabRPCError(TRANSPORT_ERROR, f"{self.step_endpoint}: {broken}") from broken
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """Stop the streams and close the socket."""
        super().close()
        with self._lock:
            self._drop()

    def _connect(self) -> "zmq.Socket[bytes]":
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        socket.setsockopt(zmq.LINGER, 0)
        # Without IMMEDIATE a send without a peer succeeds, and an absent server looks like a slow one.
        socket.setsockopt(zmq.IMMEDIATE, 1)
        try:
            socket.connect(self.step_endpoint)
        except zmq.ZMQError as broken:
            socket.close()
            raise URLabRPCError(TRANSPORT_ERROR, f"cannot connect to {self.step_endpoint}: {broken}") from broken
        self._socket = socket
        return socket

    def _send_when_connected(self, socket: "zmq.Socket[bytes]", frame: bytes, timeout_ms: int) -> int:
        """Send once a server is there; returns how many milliseconds of the timeout are left."""
        begin_s, patience_ms = time.monotonic(), min(timeout_ms, self._connect_timeout_ms)
        if not socket.poll(patience_ms, zmq.POLLOUT):
            listens = is_listening(self.step_endpoint)
            raise URLabTimeoutError(self.step_endpoint, patience_ms / 1000, connected=listens) from None
        socket.send(frame, _NOBLOCK)
        return max(1, timeout_ms - int(1000 * (time.monotonic() - begin_s)))

    def _receive(self, socket: "zmq.Socket[bytes]", timeout_ms: int) -> bytes:
        if timeout_ms != self._armed_timeout_ms:
            socket.setsockopt(zmq.RCVTIMEO, timeout_ms)
            self._armed_timeout_ms = timeout_ms
        try:
            return socket.recv()
        except zmq.Again:
            listens = is_listening(self.step_endpoint)
            raise URLabTimeoutError(self.step_endpoint, timeout_ms / 1000, connected=listens) from None

    def _drop(self) -> None:
        socket, self._socket = self._socket, None
        self._armed_timeout_ms = -1
        if socket is not None:
            socket.close()
