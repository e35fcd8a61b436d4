"""Commands over the control stream, for drivers that need no session."""

import contextlib
import threading

import zmq

_KEPT_MESSAGES = 100


class ControlSender:
    """A PUB socket to a server's control port. Any thread may use it.

    Nothing tells whether a command arrived; while nobody listens, or too much waits, commands are dropped. So is what
    is sent in the first moments, until the connection is there.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._turn = threading.Lock()
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, _KEPT_MESSAGES)
        self._socket.setsockopt(zmq.IPV6, int("[" in endpoint))
        self._socket.connect(endpoint)

    def send(self, topic: str, payload: bytes) -> None:
        """Send one command; it never waits. Nothing is sent once closed."""
        with self._turn, contextlib.suppress(zmq.ZMQError):
            if not self._socket.closed:
                self._socket.send_multipart([topic.encode(), payload], zmq.NOBLOCK)

    def close(self) -> None:
        """Close the socket. Once is enough."""
        with self._turn:
            self._socket.close()
