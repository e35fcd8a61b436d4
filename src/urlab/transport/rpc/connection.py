"""One ZeroMQ client of the server, over a TCP or UNIX socket."""

import contextlib
import socket as sockets
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from urlab.config import MAX_REQUEST_BYTES
from urlab.transport.rpc import zmtp

READ_BYTES = 1 << 16
_LARGE_BYTES = 1 << 16
_BUFFERS_PER_SEND = 64
_FRAMES_PER_TURN = 64
_MOST_HOLDS = 1000
_KEEPALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
"""Seconds, seconds and tries: the system finds out within forty seconds that a machine has gone without a word."""

Message = list[bytes | None]
"""Frames; None stands for one that was too large to keep."""


@dataclass(frozen=True, slots=True)
class RpcLimits:
    """What clients may cost the server.

    Of one connection: a message whose frames have more than ``request_bytes`` together is read past and refused; a
    client that announces a frame of more than ``frame_bytes``, or sends more than ``frames`` in one message, is
    disconnected, and so is one that has not finished its handshake within ``handshake_s``. A client that sends requests
    ahead of their replies is not read from while more than ``ahead`` of them, or ``ahead_bytes``, wait, and neither
    read from nor served while more than ``unsent_bytes`` of replies wait for it to read them.

    Of all together: no more than ``connections``, of which ``connections_per_peer`` may be of one user of this machine
    or of one address; ``all_received_bytes`` of requests that are not served yet, and ``all_unsent_bytes`` of replies.
    Beyond these the client that holds most of the first goes, and the one that has not read for longest of the second.
    """

    request_bytes: int = MAX_REQUEST_BYTES
    frame_bytes: int = 1 << 30
    frames: int = 1000
    handshake_s: float = 5.0
    ahead: int = 1000
    ahead_bytes: int = 4 << 20
    unsent_bytes: int = 4 << 20
    connections: int = 1000
    connections_per_peer: int = 800
    all_received_bytes: int = 256 << 20
    all_unsent_bytes: int = 512 << 20


class Holds:
    """Over which connection a session took hold of bodies: the last one counts. Safe to use from any thread.

    A client that reconnects and takes hold again loses nothing when its old connection is found dead.
    """

    def __init__(self, let_go: Callable[[str], None]) -> None:
        self._let_go = let_go
        self._lock = threading.Lock()
        self._connections: dict[str, object] = {}

    def take(self, session_id: str, connection: object) -> None:
        """A request of that session takes hold of a body."""
        with self._lock:
            self._connections.pop(session_id, None)
            self._connections[session_id] = connection
            while len(self._connections) > _MOST_HOLDS:
                del self._connections[next(iter(self._connections))]

    def end(self, connection: object) -> None:
        """The connection is lost: what sessions hold over it is released."""
        with self._lock:
            ended = [session_id for session_id, one in self._connections.items() if one is connection]
            for session_id in ended:
                del self._connections[session_id]
        for session_id in ended:
            self._let_go(session_id)


class Traffic:
    """Bytes of all connections of a server together: of requests that are not served, of replies that are not sent."""

    __slots__ = ("received", "unsent")

    def __init__(self) -> None:
        self.received = 0
        self.unsent = 0


class Connection:
    """Speaks ZMTP on a socket that does not block. One thread uses it.

    ``address`` is the peer's, as `socket.accept` gives it; ``peer`` is whose it is, the same for all connections of a
    user of this machine or of an address. ``busy`` says that a request is being served; ``waiting`` are messages that
    arrived meanwhile, for each client gets its answers in order. ``in_turn`` and ``watched`` are the server's: whether
    the connection waits for a turn, and the events that the server looks for. ``closed`` may be read on any thread.
    """

    def __init__(
        self, socket: sockets.socket, address: Any, peer: Hashable, limits: RpcLimits, traffic: Traffic
    ) -> None:
        socket.setblocking(False)
        with contextlib.suppress(OSError):
            _set_tcp_options(socket)
        self.socket = socket
        self.address = address
        self.peer = peer
        self.descriptor = socket.fileno()
        self.busy = self.in_turn = self.closed = False
        self.watched = 0
        self.waiting: deque[Message] = deque()
        self.introduced = False
        self.begun_s = self.last_sent_s = time.monotonic()
        self._limits = limits
        self._traffic = traffic
        self._parser = zmtp.FrameParser(limits.request_bytes, limits.frame_bytes)
        self._greeting: bytes | None = b""
        self._frames: Message = []
        self._frames_bytes = 0
        self._waiting_bytes = 0
        self._counted = 0
        self._has_input = False
        self._unsent: deque[memoryview] = deque()
        self.unsent_bytes = 0
        self.send(zmtp.GREETING)

    # -- what the server asks -----------------------------------------------------------------------------------

    @property
    def is_clogged(self) -> bool:
        """Whether so much is unsent that nothing more is served, or received, for now."""
        return self.unsent_bytes > self._limits.unsent_bytes

    @property
    def is_ahead(self) -> bool:
        """Whether so many requests wait that no more are to be received for now."""
        return len(self.waiting) > self._limits.ahead or self._waiting_bytes > self._limits.ahead_bytes

    @property
    def wants_turn(self) -> bool:
        """Whether there is something to do with what was received."""
        if self.is_clogged:
            return False
        if self.busy:
            return self._has_input and not self.is_ahead
        return self._has_input or bool(self.waiting)

    @property
    def wants_bytes(self) -> bool:
        """Whether to read: what was received is taken apart, and there is room for more."""
        return not (self._has_input or self.is_clogged or (self.busy and self.is_ahead))

    @property
    def held_bytes(self) -> int:
        """What is kept of requests that are not served."""
        return self._waiting_bytes + self._frames_bytes + self._parser.held_bytes

    # -- receiving ----------------------------------------------------------------------------------------------

    def receive_request(self, buffer: memoryview) -> bytes | None:
        """What most often arrives: one request of a REQ client, whole. None is for `next_message` to look into.

        ``buffer`` is room for one read, whose contents do not matter. ConnectionError when the client is gone.
        """
        try:
            count = self.socket.recv_into(buffer)
        except BlockingIOError:
            return None
        if not count:
            raise ConnectionResetError("the client has gone")
        data = bytes(buffer[:count])
        if self.introduced and not (self.busy or self.waiting or self._frames) and self._parser.is_between_frames:
            request = zmtp.lone_request(data)
            if request is not None and len(request) <= self._limits.request_bytes:
                return request
        self._take_in(data)
        return None

    def next_message(self) -> Message | None:
        """The message that has waited longest, or the next one that is complete; None when there is none yet.

        Looks at a few frames at most: `wants_turn` says whether to call it again. ProtocolError when the client is no
        peer.
        """
        if self.waiting:
            message = self.waiting.popleft()
            self._waiting_bytes -= _bytes(message)
            self._count()
            return message
        for _ in range(_FRAMES_PER_TURN):
            found = self._parser.next_frame()
            if found is None:
                self._has_input = False
                break
            complete = self._take_frame(*found)
            if complete is not None:
                self._has_input = not self._parser.is_between_frames
                self._count()
                return complete
        self._count()
        return None

    def look_ahead(self) -> None:
        """Take apart some of what was received while a request is being served: a PING in it wants its answer."""
        for _ in range(_FRAMES_PER_TURN):
            if self.is_ahead:
                break
            found = self._parser.next_frame()
            if found is None:
                self._has_input = False
                break
            complete = self._take_frame(*found)
            if complete is not None:
                self.waiting.append(complete)
                self._waiting_bytes += _bytes(complete)
        self._count()

    def _take_in(self, data: bytes) -> None:
        if self._greeting is not None:
            data = self._take_greeting(data)
        if data:
            self._parser.feed(data)
            self._has_input = True
        self._count()

    def _take_greeting(self, data: bytes) -> bytes:
        """The bytes after the peer's greeting, once that is whole."""
        self._greeting = (self._greeting or b"") + data
        zmtp.check_greeting(self._greeting[: zmtp.GREETING_BYTES])
        if len(self._greeting) < zmtp.GREETING_BYTES:
            return b""
        rest, self._greeting = self._greeting[zmtp.GREETING_BYTES :], None
        self.send(zmtp.ready_command())
        return rest

    def _take_frame(self, flags: int, body: bytes | None) -> Message | None:
        """The message that a frame completes, if it does."""
        if flags & zmtp.COMMAND:
            self._take_command(body)
            return None
        if not self.introduced:
            raise zmtp.ProtocolError("a message came before the handshake was over")
        if len(self._frames) >= self._limits.frames:
            raise zmtp.ProtocolError(f"a message has more than {self._limits.frames} frames")
        self._frames_bytes += len(body or b"")
        self._frames.append(body if self._frames_bytes <= self._limits.request_bytes else None)
        if flags & zmtp.MORE:
            return None
        message, self._frames, self._frames_bytes = self._frames, [], 0
        return message

    def _take_command(self, body: bytes | None) -> None:
        """READY ends the handshake; later a PING wants its PONG. Others are optional."""
        if not self.introduced:
            zmtp.check_ready(body or b"")
            self.introduced = True
        elif body is not None and (pong := zmtp.answer_to_ping(body)) is not None:
            self.send(pong)

    def _count(self) -> None:
        """Tell the server's total what this connection holds now."""
        held = self.held_bytes
        self._traffic.received += held - self._counted
        self._counted = held

    # -- sending ------------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send as much as the client takes, and keep the rest for `flush`."""
        if self._unsent:
            self._keep(data, 0)
            return
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._keep(data, sent)

    def send_reply(self, body: bytes, delimited: bool) -> None:
        """Send a message of one frame; a large one is not copied for its head."""
        head = zmtp.reply_head(len(body), delimited)
        if len(body) < _LARGE_BYTES:
            self.send(head + body)
        else:
            self._keep(head, 0)
            self._keep(body, 0)
            self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the client takes it."""
        unsent = self._unsent
        while unsent:
            try:
                sent = self.socket.sendmsg([unsent[index] for index in range(min(len(unsent), _BUFFERS_PER_SEND))])
            except BlockingIOError:
                return
            self.last_sent_s = time.monotonic()
            self.unsent_bytes -= sent
            self._traffic.unsent -= sent
            while sent:
                first = unsent[0]
                if sent < len(first):
                    unsent[0] = first[sent:]
                    break
                sent -= len(first)
                unsent.popleft()

    def _keep(self, data: bytes, sent: int) -> None:
        if not self._unsent:
            self.last_sent_s = time.monotonic()
        self._unsent.append(memoryview(data)[sent:])
        self.unsent_bytes += len(data) - sent
        self._traffic.unsent += len(data) - sent

    def close(self) -> None:
        """Let go of the socket, and of everything that waits. Once is enough."""
        if not self.closed:
            self.closed = True
            self._traffic.unsent -= self.unsent_bytes
            self._traffic.received -= self._counted
            self.socket.close()


def _set_tcp_options(socket: sockets.socket) -> None:
    """Small messages at once; and the system looks whether a peer that says nothing is still there."""
    socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
    socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(sockets, name):
            socket.setsockopt(sockets.IPPROTO_TCP, getattr(sockets, name), value)


def _bytes(message: Message) -> int:
    return sum(len(frame or b"") for frame in message)
