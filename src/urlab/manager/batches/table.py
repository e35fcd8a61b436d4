"""The batches that clients have open, by session."""

import threading
from collections.abc import Mapping
from typing import Any

from urlab.errors import BadValue, known
from urlab.manager.batches.copies import SceneCopies, row_bytes
from urlab.manager.manager import Manager

MAX_SIMULATIONS = 16_384
MAX_BATCHES = 4
"""Of one session."""

MAX_STATE_BYTES = 1 << 30
"""Of the states of one batch."""


class BatchTable:
    """Opens, finds and closes batches. Any thread may call it; a batch has a lock of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches: dict[str, dict[str, SceneCopies]] = {}

    def open(
        self, session_id: str, manager: Manager, count: int, threads: int, randomize: Mapping[str, Any] | None
    ) -> tuple[str, SceneCopies]:
        """A new batch of a session, and its id."""
        if not 1 <= count <= MAX_SIMULATIONS:
            raise BadValue(f"num must be from 1 to {MAX_SIMULATIONS:,}, but is {count}")
        if not 0 <= threads <= 256:
            raise BadValue(f"threads must be from 0 (as many as cores) to 256, but is {threads}")
        size = count * row_bytes(manager)
        if size > MAX_STATE_BYTES:
            raise BadValue(f"{count} states of this model take {size >> 20} MB, and a batch {MAX_STATE_BYTES >> 20}")
        with self._lock:
            if len(self._batches.get(session_id, ())) >= MAX_BATCHES:
                raise BadValue(f"a session has {MAX_BATCHES} batches at most: batch_close one first")
        batch = SceneCopies(manager, count, threads, randomize)
        with self._lock:
            mine = self._batches.setdefault(session_id, {})
            batch_id = next(name for number in range(1, MAX_BATCHES + 2) if (name := f"batch-{number}") not in mine)
            mine[batch_id] = batch
        return batch_id, batch

    def find(self, session_id: str, batch_id: str) -> SceneCopies:
        """A batch that the session has open."""
        with self._lock:
            mine = self._batches.get(session_id, {})
            if batch_id not in mine:
                raise BadValue(f"this session has no batch {batch_id[:40]!r}; it has {known(mine)}")
            return mine[batch_id]

    def close(self, session_id: str, batch_id: str) -> None:
        """Give one up."""
        self.find(session_id, batch_id)
        with self._lock:
            self._batches[session_id].pop(batch_id, None)

    def end(self, session_id: str) -> None:
        """Give up those of a session that has ended."""
        with self._lock:
            self._batches.pop(session_id, None)
