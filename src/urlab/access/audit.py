"""The audit log of a server: which caller connected, was refused, took the driver's seat, wrote or deleted what.

One JSON object a line: ``time`` (UTC), ``event``, ``caller``, ``address``, and what belongs to the event. The file is
for the server's user alone. When it has grown to `MAX_BYTES` it is renamed to ``.1``, in the place of the one before.
"""

import json
import logging
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

log = logging.getLogger("urlab.audit")

MAX_BYTES = 4 * 1024 * 1024
_LONGEST_WORD = 500


class AuditLog:
    """Appends to one file; any thread may use it. A file that cannot be written costs a line of the log, once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._is_lost = False

    def record(self, event: str, caller: str, address: str = "", **detail: Any) -> None:
        """Add a line: what happened, of whom, from where. Long words are cut."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"time": now, "event": event, "caller": caller, "address": address, **detail}
        text = json.dumps({key: _cut(value) for key, value in line.items() if value not in (None, "")})
        with self._lock:
            try:
                self._append(text.encode() + b"\n")
            except OSError as failed:
                if not self._is_lost:
                    log.warning("the audit log %s cannot be written: %s", self._path, failed)
                self._is_lost = True

    def _append(self, line: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, line)
            full = os.fstat(descriptor).st_size >= MAX_BYTES
        finally:
            os.close(descriptor)
        if full:
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))


def _cut(value: Any) -> Any:
    return f"{value[:_LONGEST_WORD]}..." if isinstance(value, str) and len(value) > _LONGEST_WORD else value
