"""One ZeroMQ client of the server, over a TCP or UNIX socket."""

import contextlib
import socket as sockets
from collections import deque
from dataclasses import dataclass
from typing import Any

from urlab.config import MAX_REQUEST_BYTES
from urlab.transport.rpc import zmtp

_READ_BYTES = 1 << 16
_LARGE_BYTES = 1 << 16

Message = list[bytes | None]
"""Frames; None stands for one that was too large to keep."""


@dataclass(frozen=True, slots=True)
class RpcLimits:
    """What clients may cost the server. All of it holds per connection, but for ``connections``.

    A message whose frames have more than ``request_bytes`` together is read past and refused; a client that announces
    a frame of more than ``frame_bytes``, or sends more than ``frames`` in one message, is disconnected, and so is one
    that leaves more than ``unsent_bytes`` of replies unread. A client that sends requests ahead of their replies is
    not read from while more than ``ahead`` of them, or ``request_bytes``, wait.
    """

    request_bytes: int = MAX_REQUEST_BYTES
    frame_bytes: int = 1 << 30
    frames: int = 1000
    unsent_bytes: int = 1 << 30
    ahead: int = 1000
    connections: int = 1000


class Connection:
    """Speaks ZMTP on a socket that does not block. One thread uses it.

    ``address`` is the peer's, as `socket.accept` gives it. ``busy`` says that a request is being served; ``waiting``
    are messages that arrived meanwhile, for each client gets its answers in order.
    """

    def __init__(self, socket: sockets.socket, address: Any, limits: RpcLimits) -> None:
        socket.setblocking(False)
        with contextlib.suppress(OSError):
            socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        self.socket = socket
        self.address = address
        self.descriptor = socket.fileno()
        self.busy = False
        self.waiting: deque[Message] = deque()
        self._limits = limits
        self._parser = zmtp.FrameParser(limits.request_bytes, limits.frame_bytes)
        self._greeting = b""
        self._greeted = False
        self._introduced = False
        self._frames: Message = []
        self._frames_bytes = 0
        self._waiting_bytes = 0
        self._received = b""
        self._unsent = b""
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self.send(zmtp.GREETING)

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait until the client reads."""
        return bool(self._unsent)

    @property
    def is_ahead(self) -> bool:
        """Whether so many requests wait that no more are to be received for now."""
        return len(self.waiting) > self._limits.ahead or self._waiting_bytes > self._limits.request_bytes

    def postpone(self, message: Message) -> None:
        """Let a message wait until the one that is being served is answered."""
        self.waiting.append(message)
        self._waiting_bytes += _bytes(message)

    def next_waiting(self) -> Message:
        """The message that has waited longest, which waits no more."""
        message = self.waiting.popleft()
        self._waiting_bytes -= _bytes(message)
        return message

    def receive_request(self) -> bytes | None:
        """What most often arrives: one request of a REQ client, whole. None is for `receive` to look into.

        ConnectionError when the client is gone.
        """
        try:
            count = self.socket.recv_into(self._buffer)
        except BlockingIOError:
            return None
        if not count:
            raise ConnectionResetError("the client has gone")
        data = bytes(self._buffer[:count])
        if self._introduced and not self._frames and self._parser.is_between_frames:
            request = zmtp.lone_request(data)
            if request is not None and len(request) <= self._limits.request_bytes:
                return request
        self._received = data
        return None

    def receive(self) -> list[Message]:
        """The messages that are complete with what `receive_request` left; ProtocolError when the client is no peer."""
        data, self._received = self._received, b""
        if data and not self._greeted:
            data = self._take_greeting(data)
        return self._messages(data) if data else []

    def send(self, data: bytes) -> None:
        """Send as much as the client takes, and keep the rest for `flush`."""
        if self._unsent:
            self._keep(self._unsent + data)
            return
        try:
            sent = self.socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._keep(data[sent:])

    def send_reply(self, body: bytes, delimited: bool) -> None:
        """Send a message of one frame; a large one is not copied for its head."""
        head = zmtp.reply_head(len(body), delimited)
        if len(body) < _LARGE_BYTES or self._unsent:
            self.send(head + body)
            return
        try:
            sent = self.socket.sendmsg((head, body))
        except BlockingIOError:
            sent = 0
        if sent < len(head):
            self._keep(head[sent:] + body)
        elif sent < len(head) + len(body):
            self._keep(body[sent - len(head) :])

    def flush(self) -> None:
        """Send what waits."""
        data, self._unsent = self._unsent, b""
        self.send(data)

    def close(self) -> None:
        """Let go of the socket."""
        self.socket.close()

    def _keep(self, data: bytes) -> None:
        if len(data) > self._limits.unsent_bytes:
            raise ConnectionAbortedError("the client does not read its replies")
        self._unsent = data

    def _take_greeting(self, data: bytes) -> bytes:
        self._greeting += data
        if len(self._greeting) < zmtp.GREETING_BYTES:
            return b""
        zmtp.check_greeting(self._greeting[: zmtp.GREETING_BYTES])
        self._greeted = True
        rest, self._greeting = self._greeting[zmtp.GREETING_BYTES :], b""
        self.send(zmtp.ready_command())
        return rest

    def _messages(self, data: bytes) -> list[Message]:
        messages = []
        for flags, body in self._parser.feed(data):
            if flags & zmtp.COMMAND:
                self._take_command(body)
                continue
            if not self._introduced:
                raise zmtp.ProtocolError("a message came before the handshake was over")
            if len(self._frames) >= self._limits.frames:
                raise zmtp.ProtocolError(f"a message has more than {self._limits.frames} frames")
            self._frames_bytes += len(body or b"")
            self._frames.append(body if self._frames_bytes <= self._limits.request_bytes else None)
            if not flags & zmtp.MORE:
                messages.append(self._frames)
                self._frames, self._frames_bytes = [], 0
        return messages

    def _take_command(self, body: bytes | None) -> None:
        """READY ends the handshake; later a PING wants its PONG. Others are optional."""
        if not self._introduced:
            zmtp.check_ready(body or b"")
            self._introduced = True
        elif body is not None and (pong := zmtp.answer_to_ping(body)) is not None:
            self.send(pong)


def _bytes(message: Message) -> int:
    return sum(len(frame or b"") for frame in message)
