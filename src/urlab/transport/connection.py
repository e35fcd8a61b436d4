"""One ZeroMQ client of the server, over a TCP or UNIX socket."""

import contextlib
import socket as sockets
from collections import deque

from urlab.transport import zmtp

MAX_UNSENT_BYTES = 1 << 30
"""A client that leaves more than this unread is disconnected."""

_READ_BYTES = 1 << 16
_LARGE_BYTES = 1 << 16

Message = list[bytes | None]
"""Frames; None stands for one that was too large to keep."""


class Connection:
    """Speaks ZMTP on a socket that does not block. One thread uses it.

    ``waiting`` are messages that arrived while another one was being served: each client gets its answers in order.
    """

    def __init__(self, socket: sockets.socket, limit: int, hard_limit: int) -> None:
        socket.setblocking(False)
        with contextlib.suppress(OSError):
            socket.setsockopt(sockets.IPPROTO_TCP, sockets.TCP_NODELAY, 1)
        self.socket = socket
        self.descriptor = socket.fileno()
        self.busy = False
        self.waiting: deque[Message] = deque()
        self._limit = limit
        self._parser = zmtp.FrameParser(limit, hard_limit)
        self._greeting = b""
        self._greeted = False
        self._introduced = False
        self._frames: Message = []
        self._received = b""
        self._unsent = b""
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self.send(zmtp.GREETING)

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait until the client reads."""
        return bool(self._unsent)

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
            if request is not None and len(request) <= self._limit:
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
        if len(data) > MAX_UNSENT_BYTES:
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
            self._frames.append(body)
            if not flags & zmtp.MORE:
                messages.append(self._frames)
                self._frames = []
        return messages

    def _take_command(self, body: bytes | None) -> None:
        """READY ends the handshake; what other commands ask is optional."""
        if not self._introduced:
            zmtp.check_ready(body or b"")
            self._introduced = True
