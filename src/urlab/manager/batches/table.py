"""The batches that clients have open, by session."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from urlab.errors import BadValue, SessionExpired, known
from urlab.manager.batches.copies import SceneCopies, row_bytes
from urlab.manager.manager import Manager

MAX_SIMULATIONS = 16_384
MAX_THREADS = 64
MAX_BATCHES = 4
"""Of one session."""

MAX_STATE_BYTES = 1 << 30
"""Of the states of all batches of a server."""


@dataclass(slots=True)
class _Place:
    """What a batch takes, from before it is made."""

    size: int
    batch: SceneCopies | None = None


class BatchTable:
    """Opens, finds and closes batches. Any thread may call it; a batch has a lock of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, dict[str, _Place]] = {}

    def open(
        self, session_id: str, manager: Manager, count: int, threads: int, randomize: Mapping[str, Any] | None
    ) -> tuple[str, SceneCopies]:
        """A new batch of a session, and its id."""
        if not 1 <= count <= MAX_SIMULATIONS:
            raise BadValue(f"num must be from 1 to {MAX_SIMULATIONS:,}, but is {count}")
        if not 0 <= threads <= MAX_THREADS:
            raise BadValue(f"threads must be from 0 (as many as cores) to {MAX_THREADS}, but is {threads}")
        batch_id = self._reserve(session_id, count * row_bytes(manager))
        try:
            batch = SceneCopies(manager, count, threads, randomize)
        except BaseException:
            self._remove(session_id, batch_id)
            raise
        with self._lock:
            place = self._places.get(session_id, {}).get(batch_id)
            if place is None:
                raise SessionExpired("the session, or the play, ended while the batch was opened")
            place.batch = batch
        return batch_id, batch

    def find(self, session_id: str, batch_id: str) -> SceneCopies:
        """A batch that the session has open."""
        with self._lock:
            mine = {name: one.batch for name, one in self._places.get(session_id, {}).items() if one.batch is not None}
        if batch_id not in mine:
            raise BadValue(f"this session has no batch {batch_id[:40]!r}; it has {known(mine)}")
        return mine[batch_id]

    def close(self, session_id: str, batch_id: str) -> None:
        """Give one up."""
        self.find(session_id, batch_id)
        self._remove(session_id, batch_id)

    def end(self, session_id: str) -> None:
        """Give up those of a session that has ended."""
        with self._lock:
            self._places.pop(session_id, None)

    def clear(self) -> None:
        """Give up all: the play has ended."""
        with self._lock:
            self._places.clear()

    def _reserve(self, session_id: str, size: int) -> str:
        with self._lock:
            mine = self._places.setdefault(session_id, {})
            if len(mine) >= MAX_BATCHES:
                raise BadValue(f"a session has {MAX_BATCHES} batches at most: batch_close one first")
            taken = sum(place.size for places in self._places.values() for place in places.values())
            if taken + size > MAX_STATE_BYTES:
                raise BadValue(
                    f"the states of this batch take {size >> 20} MB and those of others {taken >> 20}; a server has "
                    f"{MAX_STATE_BYTES >> 20} MB for all: ask for fewer, or batch_close one first"
                )
            batch_id = next(name for number in range(1, MAX_BATCHES + 1) if (name := f"batch-{number}") not in mine)
            mine[batch_id] = _Place(size)
            return batch_id

    def _remove(self, session_id: str, batch_id: str) -> None:
        with self._lock:
            self._places.get(session_id, {}).pop(batch_id, None)
