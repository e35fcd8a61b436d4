"""Counting what a socket brings."""

import threading

from urlab.cli.watch.window import Tally
from urlab_client.live import Message


class Meter:
    """A channel of `urlab_client.live.Listener` that counts by topic; ``newest`` is the last payload of topic ``kept``.

    Sizes are those of whole messages, topic and payload. It is fed on the listener's thread; any thread may read.
    """

    def __init__(self, endpoint: str, topics: tuple[str, ...], kept: str, queue: int) -> None:
        self.endpoint = endpoint
        self.topics: tuple[bytes, ...] = tuple(topic.encode() for topic in topics)
        self.queue = queue
        self.newest: bytes | None = None
        self._kept = kept.encode()
        self._lock = threading.Lock()
        self._counts: dict[bytes, list[int]] = {}

    def feed(self, message: Message) -> None:
        """Count one message; what is not topic and payload is ignored."""
        if len(message) != 2:
            return
        topic = message[0].bytes.rstrip(b" ")
        with self._lock:
            count = self._counts.setdefault(topic, [0, 0])
            count[0] += 1
            count[1] += len(message[0]) + len(message[1])
        if topic == self._kept:
            self.newest = message[1].bytes

    def flush(self) -> None:
        """Nothing waits."""

    def tallies(self) -> dict[str, Tally]:
        """What came so far, by topic."""
        with self._lock:
            return {topic.decode(errors="replace"): Tally(*count) for topic, count in self._counts.items()}
