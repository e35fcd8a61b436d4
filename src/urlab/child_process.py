"""Child processes: started, waited for, stopped, and asked for their last words when they fail."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from urlab.errors import ChildFailed

ANY_PORTS = tuple(word for name in ("step", "state", "control", "info", "camera") for word in (f"--{name}-port", "0"))
"""Options for a `urlab serve` that takes free ports, whichever they are."""

_LAST_WORDS_BYTES = 4000
_POLL_S = 0.01


class ChildProcess:
    """A running child process; leaving the context stops it.

    With ``own_session`` a Ctrl-C in the terminal reaches this process only, which then stops the child in order. With
    ``keep_stdin`` its standard input stays open until `stop`, and closes when this process dies: a child that reads it
    to the end need not outlive its parent. Its standard error is kept for `last_words`, its standard output is dropped.
    ``on_line`` is called with every line of its standard error, on a thread. One thread uses it; `kill` may be called
    by any.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        keep_stdin: bool = False,
        own_session: bool = False,
        pass_fds: Sequence[int] = (),
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self.name = " ".join(Path(word).name if word == sys.executable else word for word in command[:5])
        self._complaints: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by stop()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if keep_stdin else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints if on_line is None else subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            pass_fds=pass_fds,
            start_new_session=own_session,
        )
        self._reader: threading.Thread | None = None
        if on_line is not None:
            self._reader = threading.Thread(target=self._read_lines, args=(on_line,), daemon=True)
            self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def check(self, patience_s: float = 0.0) -> None:
        """ChildFailed if it has ended, or does so within ``patience_s``."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)
            raise ChildFailed(f"{self.name} {how_it_ended(self.process.returncode)}: {self.last_words()}")

    def wait_for_file(self, path: Path, limit_s: float) -> dict[str, Any]:
        """The JSON object that the child writes to ``path``, whole or not at all; ChildFailed if it does not."""
        give_up_s = time.monotonic() + limit_s
        while not path.exists():
            self.check()
            if time.monotonic() > give_up_s:
                raise ChildFailed(f"{self.name} was not ready within {limit_s:g} s: {self.last_words()}")
            time.sleep(_POLL_S)
        content: dict[str, Any] = json.loads(path.read_bytes())
        return content

    def last_words(self) -> str:
        """Its error message if it printed one, else its last line on standard error."""
        written = os.fstat(self._complaints.fileno()).st_size
        return last_line(os.pread(self._complaints.fileno(), _LAST_WORDS_BYTES, max(0, written - _LAST_WORDS_BYTES)))

    def _read_lines(self, on_line: Callable[[str], None]) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self._complaints.write(line)
                on_line(line.decode(errors="replace").rstrip())

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()

    def stop(self, limit_s: float = 5.0) -> None:
        """End it: with SIGTERM and, after ``limit_s``, with SIGKILL. May be called twice."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        if self._reader is not None:
            self._reader.join(limit_s)
        self._complaints.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()


class UrlabProcess(ChildProcess):
    """``urlab WORDS... --ready-file FILE``, up when this has been made. It logs warnings if WORDS say nothing.

    ``ready`` is what its ready file said, ``seconds_to_ready`` how long it took from its start.
    """

    def __init__(
        self,
        *words: str,
        environment: Mapping[str, str] | None = None,
        keep_stdin: bool = False,
        own_session: bool = False,
        ready_limit_s: float = 60.0,
    ) -> None:
        begin_s = time.perf_counter()
        level = () if "--log-level" in words else ("--log-level", "warning")
        with tempfile.TemporaryDirectory(prefix="urlab-ready-") as folder:
            ready = Path(folder) / "ready.json"
            super().__init__(
                [sys.executable, "-m", "urlab", *words, *level, "--ready-file", str(ready)],
                environment=environment,
                keep_stdin=keep_stdin,
                own_session=own_session,
            )
            try:
                self.ready = self.wait_for_file(ready, ready_limit_s)
            except BaseException:
                self.stop()
                raise
        self.seconds_to_ready = time.perf_counter() - begin_s


class ServerProcess(UrlabProcess):
    """`urlab serve TARGET` on free ports; ``endpoints`` is its ready file."""

    def __init__(self, target: str, *options: str) -> None:
        super().__init__("serve", target, *ANY_PORTS, *options)
        self.endpoints = self.ready


def how_it_ended(code: int) -> str:
    """What the exit code of a process tells: ``was ended by SIGSEGV``, ``ended with exit code 1``."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def last_line(output: bytes) -> str:
    """The last ``error: ...`` line without that word, else the last line that is not empty."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or ["it said nothing"])[-1]
