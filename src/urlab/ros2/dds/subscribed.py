"""A topic that somebody listens to."""

import logging
import threading
from collections.abc import Callable

from urlab.ros2.dds.dispatcher import Dispatcher
from urlab.ros2.dds.reader import Reader
from urlab.ros2.dds.user_data import gid_of_writer

log = logging.getLogger("urlab.ros2")


class Subscribed:
    """Hands every payload of a reader to a function, with who wrote it, on the dispatcher's thread, until closed."""

    def __init__(
        self,
        reader: Reader,
        dispatcher: Dispatcher,
        name: str,
        deliver: Callable[[bytes, int], None],
        *closed: Callable[[], object],
    ) -> None:
        """``closed`` are called once, when it is."""
        self._reader = reader
        self._dispatcher = dispatcher
        self._name = name
        self._deliver = deliver
        self._closed = closed
        self._writer = 0
        self._open = True
        # Held during a delivery, so that closing waits for it; it is re-entrant for a callback that closes.
        self._lock = threading.RLock()
        self._key = dispatcher.add(reader.condition, self._take)

    def source(self) -> str | None:
        """Who wrote the message that is being delivered; see `urlab.ros2.backend.Attributed`."""
        return gid_of_writer(self._reader.handle, self._writer)

    def close(self) -> None:
        """End it; a delivery that is under way is waited for, unless it is the one that closes."""
        with self._lock:
            if not self._open:
                return
            self._open = False
            self._dispatcher.remove(self._reader.condition, self._key)
            self._reader.close()
            for closed in self._closed:
                closed()

    def _take(self) -> None:
        with self._lock:
            if self._open:
                for payload, writer in self._reader.take():
                    self._hand_over(payload, writer)

    def _hand_over(self, payload: bytes, writer: int) -> None:
        """Deliver it, unless the delivery before it has closed us."""
        if not self._open:
            return
        self._writer = writer
        try:
            self._deliver(payload, writer)
        except Exception:
            log.exception("%s: a message of %d bytes was not taken", self._name, len(payload))
