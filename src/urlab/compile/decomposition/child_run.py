"""The parent's end of a child process that does one piece of work: bytes in, bytes out."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any

LENGTH_BYTES = 8
"""How long the task's length is, in front of the task."""

_THREADS = str(min(4, os.cpu_count() or 1))
_ENVIRONMENT = {"OMP_NUM_THREADS": _THREADS, "OPENBLAS_NUM_THREADS": "1"}
"""The child's memory is limited, and every thread of a library reserves some."""


class ChildFailed(Exception):
    """Why there is no result, in words that can end a sentence."""


class ChildRun:
    """Started when it is made; ``module`` calls ``serve_once`` when it is run.

    ``result`` is for one thread; ``kill`` may be called by any, at any time.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by result()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={**os.environ, **_ENVIRONMENT},
        )
        self._late = False

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def kill(self) -> None:
        """End the child at once, if it still runs; ``result`` then raises."""
        self._process.kill()

    def result(self, task: bytes, time_limit_s: float) -> bytes:
        """Hand the task over and wait for what comes back; ChildFailed when nothing useful does."""
        timer = threading.Timer(time_limit_s, self._give_up)
        timer.daemon = True
        timer.start()
        with self._complaints, self._process:
            try:
                content = self._exchange(task)
            finally:
                timer.cancel()
                self._process.kill()
            code = self._process.wait()
            if content is None or self._late:
                raise ChildFailed(f"it took longer than {time_limit_s:g} s" if self._late else self._reason(code))
            return content

    def _give_up(self) -> None:
        self._late = True
        self._process.kill()

    def _exchange(self, task: bytes) -> bytes | None:
        """What the child wrote, if it ended well."""
        to_child: Any = self._process.stdin
        from_child: Any = self._process.stdout
        with contextlib.suppress(BrokenPipeError):  # it has died already; its exit code tells more
            to_child.write(len(task).to_bytes(LENGTH_BYTES, "little") + task)
            to_child.flush()
        content: bytes = from_child.read()
        code = self._process.wait()
        with contextlib.suppress(BrokenPipeError):  # what it did not take is lost, as it should be
            to_child.close()
        return content if code == 0 else None

    def _reason(self, code: int) -> str:
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        if code >= 0:
            return said or f"it ended with exit code {code}"
        ended = f"it was ended by {signal.Signals(-code).name}"
        return f"{ended} ({said})" if said else ended
