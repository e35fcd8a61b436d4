"""Work that may crash, hang or eat memory: done in a child process with limits on time and memory.

The parent makes a `LimitedProcess` and waits for its result; the child's module calls `serve_once`. Task and result are
bytes; ChildFailed says why there is no result, in words that can end a sentence. The child works in an empty folder,
leads a process group, and dies with the process that started it: on Linux at once, elsewhere when its limit on CPU time
is reached.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from urlab.child_process import how_it_ended, last_line
from urlab.errors import ChildFailed
from urlab.files import owned_name

_CONFINE = Path(__file__).with_name("confine.py")
_OUT_OF_MEMORY = (b"MemoryError", b"bad_alloc", b"allocate memory", b"out of memory")
_UNEXPLAINED = b"Caught an unknown exception"
"""What Python sees of an allocation that failed inside MuJoCo."""

_TAIL_BYTES = 4000
WORK = "work-"
"""In the names of the folders, in the one for temporary files, where children work."""


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What a child process may take.

    ``written_bytes`` bounds every file that it writes, its result included. ``threads`` is how many a numeric library
    may start: each reserves address space, which is what the memory limit counts.
    """

    timeout_s: float = 60.0
    memory_bytes: int = 4 << 30
    written_bytes: int = 64 << 20
    threads: int = 1
    niceness: int = 0


class StopSwitch:
    """Ends the child processes of one thread: that thread enters it as a context; any thread may call `stop`.

    After `stop` the thread starts no more children within the context.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: LimitedProcess | None = None
        self._stopped = False

    def stop(self) -> None:
        """Kill the child that the thread waits for, if it does."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def __enter__(self) -> Self:
        _switch_of.thread = self
        return self

    def __exit__(self, *failure: object) -> None:
        _switch_of.thread = None

    def starting(self, process: "LimitedProcess", start: Callable[[], None]) -> None:
        """Start a child that `stop` shall end; ChildFailed after `stop`."""
        with self._lock:
            if self._stopped:
                raise ChildFailed("the server is stopping")
            start()
            self._process = process


_switch_of = threading.local()


class LimitedProcess:
    """A child process, started when it is made. The thread that made it calls `result`, once; any may call `kill`."""

    def __init__(self, command: Sequence[str], task: bytes | BinaryIO, limits: ProcessLimits) -> None:
        """``task`` may be a file, which the child reads from where it stands."""
        self._limits = limits
        self._streams = contextlib.ExitStack()
        switch: StopSwitch = getattr(_switch_of, "thread", None) or StopSwitch()
        try:
            switch.starting(self, lambda: self._start(command, task))
        except (OSError, ChildFailed) as refused:
            self._streams.close()
            raise ChildFailed(f"no process can be started for it: {refused}") from refused
        except BaseException:
            self._streams.close()
            raise

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def kill(self) -> None:
        """End the child and its own children at once, if it still runs; `result` then raises."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def result(self) -> bytes:
        """What the child wrote to its standard output; ChildFailed when it did not end well, or not in time."""
        with self._streams:
            code = self._wait()
            if code != 0:
                raise ChildFailed(self._reason(code))
            self._said.seek(0)
            return self._said.read()

    def _start(self, command: Sequence[str], task: bytes | BinaryIO) -> None:
        enter = self._streams.enter_context
        folder = enter(tempfile.TemporaryDirectory(prefix=f"{owned_name()}{WORK}", ignore_cleanup_errors=True))
        asked, self._said, self._complained = (enter(tempfile.TemporaryFile()) for _ in range(3))  # noqa: SIM115
        if isinstance(task, bytes):
            asked.write(task)
            asked.seek(0)
        terms = json.dumps({**asdict(self._limits), "parent": os.getpid()})
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CONFINE), terms, *command],
            stdin=asked if isinstance(task, bytes) else task,
            stdout=self._said,
            stderr=self._complained,
            cwd=folder,
            env=_environment(self._limits.threads),
            start_new_session=True,
        )

    def _wait(self) -> int | None:
        """The exit code, or None when the time was over."""
        try:
            return self._process.wait(self._limits.timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.kill()
            self._process.wait()

    def _reason(self, code: int | None) -> str:
        complaints, memory = self._complaints(), f"{self._limits.memory_bytes / (1 << 20):g} MiB"
        if code is None or code == -signal.SIGXCPU:
            return f"it took longer than the {self._limits.timeout_s:g} s that it may take, and was stopped"
        if _UNEXPLAINED in complaints:
            return f"it failed without a reason, most likely for want of memory: it may have {memory}"
        if any(word in complaints for word in _OUT_OF_MEMORY):
            return f"it wanted more memory than the {memory} that it may have"
        if code == -signal.SIGKILL:
            return "it was killed (SIGKILL): the machine has run out of memory, or the server is stopping"
        return last_line(complaints) if code > 0 and complaints.strip() else f"its process {how_it_ended(code)}"

    def _complaints(self) -> bytes:
        """The end of what it wrote to its standard error."""
        end = self._complained.seek(0, os.SEEK_END)
        self._complained.seek(max(0, end - _TAIL_BYTES))
        return self._complained.read()


def python_module(name: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module with this interpreter."""
    return sys.executable, "-P", "-m", name, *arguments


def serve_once(work: Callable[[bytes], bytes]) -> None:
    """The child's end: read the task, do the work, write the result. What fails is the last line of standard error.

    What libraries print to standard output goes to standard error.
    """
    sys.excepthook = _complain
    result_to = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with os.fdopen(result_to, "wb") as file:
        file.write(work(sys.stdin.buffer.read()))


def _complain(kind: type[BaseException], problem: BaseException, _trace: TracebackType | None) -> None:
    """One line; the kind of a problem is told where its words alone say little."""
    said = " ".join(str(problem).split())
    if kind is not ValueError or not said:
        said = f"{kind.__name__}: {said}".removesuffix(": ")
    print(said, file=sys.stderr)


def _environment(threads: int) -> dict[str, str]:
    """The child works in another folder, so a search path that is relative would be lost."""
    search = [str(Path(one).absolute()) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    variables = ((name, os.environ.get(name)) for name in list(os.environ))  # another thread may take one away
    return {
        **{name: value for name, value in variables if value is not None},
        **({"PYTHONPATH": os.pathsep.join(search)} if search else {}),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": str(threads),
        "MALLOC_ARENA_MAX": "2",
        "MUJOCO_GL": "disable",
    }
