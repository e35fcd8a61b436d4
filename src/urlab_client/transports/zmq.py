"""REQ/REP over ZeroMQ: the transport that works between machines."""

import os
import re
import socket as tcp
import threading
import time

import zmq

from urlab_client.errors import TRANSPORT_ERROR, ServerEndedError, URLabRPCError, URLabTimeoutError
from urlab_client.transports.base import DEFAULT_TIMEOUT_MS, REQUEST_ID
from urlab_client.transports.keys import ClientKey, find_key, reason_of_silence
from urlab_client.transports.zmq_streams import StreamingTransport

PROBE_TIMEOUT_S = 0.5
LIFE_CHECK_MS = 250
"""A request that takes longer looks this often whether the connection to the server still stands."""

_NOBLOCK = int(zmq.NOBLOCK)
_HEAD_BYTES = 200
_ID_WORD, _HELLO_WORD = REQUEST_ID.encode(), b"hello"
_KEEPALIVE = (
    (zmq.TCP_KEEPALIVE, 1),
    (zmq.TCP_KEEPALIVE_IDLE, 5),
    (zmq.TCP_KEEPALIVE_INTVL, 2),
    (zmq.TCP_KEEPALIVE_CNT, 5),
)
"""The system asks a machine that is silent whether it is still there: that of a server that is stopped or busy answers,
one that has lost its power does not."""


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


class _ConnectionLost(Exception):
    """The server closed the connection before it answered, or is not there any more."""


class _StepSocket:
    """A REQ socket with one connection, and a monitor that tells when that is lost. One thread uses it at a time."""

    def __init__(self, where: str, key: ClientKey | None) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        # Without IMMEDIATE a send without a peer succeeds, and an absent server looks like a slow one.
        for option, value in (*_KEEPALIVE, (zmq.LINGER, 0), (zmq.IMMEDIATE, 1)):
            self._socket.setsockopt(option, value)
        if key is not None:
            key.secure(self._socket)
        self._monitor: zmq.Socket[bytes] = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._armed_timeout_ms = -1
        try:
            self._socket.connect(where)
        except zmq.ZMQError as broken:
            self.close()
            raise URLabRPCError(TRANSPORT_ERROR, f"cannot connect to {where}: {broken}") from broken

    def send(self, frame: bytes) -> bool:
        """Send a request; False when there is no connection to a server."""
        try:
            self._socket.send(frame, _NOBLOCK)
        except zmq.Again:
            return False
        return True

    def has_connection(self, patience_ms: int) -> bool:
        """Whether there is a connection to a server by then."""
        return bool(self._socket.poll(patience_ms, zmq.POLLOUT))

    def receive(self, patience_ms: int) -> bytes | None:
        """The reply, or None when there is none by then; `_ConnectionLost` when there will not be one."""
        if patience_ms != self._armed_timeout_ms:
            self._socket.setsockopt(zmq.RCVTIMEO, patience_ms)
            self._armed_timeout_ms = patience_ms
        try:
            return self._socket.recv()
        except zmq.Again:
            pass
        if not self._monitor.poll(0):
            return None
        try:  # the reply may have come just before the end
            return self._socket.recv(_NOBLOCK)
        except zmq.Again:
            raise _ConnectionLost from None

    def close(self) -> None:
        """Let go of both sockets."""
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close()


class ZmqTransport(StreamingTransport):
    """One REQ socket, shared by all threads, and a SUB socket per stream.

    A request waits at most ``connect_timeout_ms`` for a server that listens, and for both that and the answer its own
    timeout. A server that has answered before, and is not there any more, is noticed at once, however long the answer
    may take; only a hello waits for one that comes back. A request whose connection broke is sent again if it has an
    id: a server that knows it gives it the reply of the first. Any failure drops the socket, so that the next request
    starts with a fresh connection. Streams are looked for on the host of ``step_endpoint``.
    """

    def __init__(
        self,
        step_endpoint: str,
        *,
        state_endpoint: str | None = None,
        connect_timeout_ms: int = DEFAULT_TIMEOUT_MS,
        follow_handshake: bool = True,
        key: ClientKey | str | os.PathLike[str] | None = None,
    ) -> None:
        """``key`` is the client's key, or its file; None is what the variable ``URLAB_KEY`` names, if it does."""
        base = step_endpoint.rpartition(":")[0]
        super().__init__(base, state_endpoint, follow_handshake=follow_handshake, key=find_key(key))
        self.step_endpoint = step_endpoint
        self._connect_timeout_ms = connect_timeout_ms
        self._request_lock: threading.RLock = threading.RLock()
        self._socket: _StepSocket | None = None
        self._was_answered = False

    def request(self, frame: bytes, *, timeout_ms: int) -> bytes:
        """One round trip over the REQ socket."""
        with self._request_lock:
            try:
                reply = self._ask(frame, timeout_ms)
            except zmq.ZMQError as broken:
                self._drop()
                raise URLabRPCError(TRANSPORT_ERROR, f"{self.step_endpoint}: {broken}") from broken
            except BaseException:
                self._drop()
                raise
            self._was_answered = True
            return reply

    def close(self) -> None:
        """Stop the streams and close the socket."""
        super().close()
        with self._request_lock:
            self._drop()

    def _ask(self, frame: bytes, timeout_ms: int) -> bytes:
        """Send a request, again on another connection if one breaks, until it is answered."""
        begin_s, left_ms = time.monotonic(), timeout_ms
        while True:
            try:
                socket = self._socket = self._socket or _StepSocket(self.step_endpoint, self.key)
                if not socket.send(frame):
                    self._wait_for_connection(socket, frame, min(left_ms, self._connect_timeout_ms))
                    socket.send(frame)
                    left_ms = timeout_ms - _passed_ms(begin_s)
                return self._receive(socket, begin_s, timeout_ms, left_ms)
            except _ConnectionLost:
                self._drop()
                left_ms = timeout_ms - _passed_ms(begin_s)
                head = frame[:_HEAD_BYTES]
                if _HELLO_WORD not in head and not is_listening(self.step_endpoint):
                    raise ServerEndedError(self.step_endpoint, time.monotonic() - begin_s) from None
                if left_ms <= 0 or not (_HELLO_WORD in head or _ID_WORD in head):
                    message = f"{self.step_endpoint} closed the connection before it answered"
                    raise URLabRPCError(TRANSPORT_ERROR, message) from None

    def _wait_for_connection(self, socket: _StepSocket, frame: bytes, patience_ms: int) -> None:
        """Wait for a server that listens. A request of a session does not wait for one that has ended."""
        expected = self._was_answered and _HELLO_WORD not in frame[:_HEAD_BYTES]
        begin_s, left_ms = time.monotonic(), patience_ms
        while not socket.has_connection(max(1, min(left_ms, LIFE_CHECK_MS if expected else left_ms))):
            left_ms = patience_ms - _passed_ms(begin_s)
            listens = is_listening(self.step_endpoint)
            if expected and not listens:
                raise ServerEndedError(self.step_endpoint, time.monotonic() - begin_s)
            if left_ms <= 0:
                reason = reason_of_silence(self.step_endpoint, self.key) if listens else None
                raise URLabTimeoutError(self.step_endpoint, patience_ms / 1000, connected=listens, message=reason)

    def _receive(self, socket: _StepSocket, begin_s: float, timeout_ms: int, left_ms: int) -> bytes:
        reply = socket.receive(max(1, min(left_ms, LIFE_CHECK_MS)))
        while reply is None:
            left_ms = timeout_ms - _passed_ms(begin_s)
            if left_ms <= 0:
                listens = is_listening(self.step_endpoint)
                reason = reason_of_silence(self.step_endpoint, self.key) if listens else None
                raise URLabTimeoutError(self.step_endpoint, timeout_ms / 1000, connected=listens, message=reason)
            reply = socket.receive(max(1, min(left_ms, LIFE_CHECK_MS)))
        return reply

    def _drop(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()


def _passed_ms(begin_s: float) -> int:
    return int(1000 * (time.monotonic() - begin_s))
