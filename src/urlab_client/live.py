"""Background subscriptions: what a running server publishes, handed to a callback as it arrives."""

import logging
import threading
from collections.abc import Callable
from contextlib import closing

import zmq

POLL_MS = 100
BACKOFF_FIRST_S = 0.25
BACKOFF_LAST_S = 5.0

_log = logging.getLogger(__name__)


class Subscription:
    """One SUB socket on one daemon thread, from construction until `stop`.

    Messages are two frames, topic and payload. When several wait, the callback gets the newest one only. Nobody
    publishing is not an error: ZeroMQ keeps trying to connect, ever more slowly, and so does the thread.
    """

    def __init__(self, endpoint: str, topic: str, on_payload: Callable[[bytes], None]) -> None:
        self._endpoint = endpoint
        self._topic = topic.encode()
        self._on_payload = on_payload
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"urlab-sub {topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the subscription. From its own callback it only asks for the end, else it waits for it."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        backoff_s = BACKOFF_FIRST_S
        while not self._stopping.is_set():
            try:
                self._listen()
            except zmq.ZMQError as broken:
                _log.warning("stream %s: %s; trying again in %.2f s", self._endpoint, broken, backoff_s)
                self._stopping.wait(backoff_s)
                backoff_s = min(2 * backoff_s, BACKOFF_LAST_S)

    def _listen(self) -> None:
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.SUB)
        with closing(socket):
            self._subscribe(socket)
            while not self._stopping.is_set():
                if socket.poll(POLL_MS):
                    self._deliver(_newest(socket))

    def _subscribe(self, socket: "zmq.Socket[bytes]") -> None:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, int(1000 * BACKOFF_FIRST_S))
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, int(1000 * BACKOFF_LAST_S))
        socket.setsockopt(zmq.SUBSCRIBE, self._topic)
        socket.connect(self._endpoint)

    def _deliver(self, message: list[bytes]) -> None:
        if len(message) != 2:
            _log.debug("stream %s: a message of %d frames is ignored", self._endpoint, len(message))
            return
        try:
            self._on_payload(message[1])
        except Exception:  # noqa: BLE001 - a bad message or a failing callback must not end the stream
            _log.exception("stream %s: a message could not be used", self._endpoint)


def _newest(socket: "zmq.Socket[bytes]") -> list[bytes]:
    message = socket.recv_multipart()
    while socket.poll(0):
        message = socket.recv_multipart()
    return message
