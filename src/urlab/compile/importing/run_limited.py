"""Running a command that may crash, hang or eat memory: in a child process with limits."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from urlab.compile.importing.limits import Limits
from urlab.errors import ImportFailed

_CONFINE = Path(__file__).with_name("confine.py")
_WORDS_OF_WANT = ("MemoryError", "bad_alloc", "allocate memory", "out of memory")
_UNEXPLAINED = "Caught an unknown exception"
"""What Python hears of an allocation that failed inside MuJoCo."""

_TAIL_BYTES = 4000
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2", "MUJOCO_GL": "disable"}
"""Threads that nobody needs would reserve address space, which is what the memory limit counts."""


def run_limited(command: Sequence[str], request: bytes, limits: Limits) -> bytes:
    """What the command writes to its standard output when it is given ``request`` as its standard input.

    The command runs in an empty folder and leads a process group, which is killed when the time is over; it dies with
    this process. ImportFailed says whether it crashed, took too long, wanted too much memory or failed. What it writes
    elsewhere is ignored. Any thread may call this; it waits.
    """
    try:
        with TemporaryDirectory(prefix="urlab-import-", ignore_cleanup_errors=True) as folder:
            asked, said, complained = (Path(folder, name) for name in ("stdin", "stdout", "stderr"))
            asked.write_bytes(request)
            code = _run(command, limits, (asked, said, complained))
            if code != 0:
                raise ImportFailed(_reason(code, _tail(complained), limits))
            return said.read_bytes()
    except OSError as refused:
        raise ImportFailed(f"it cannot be tried in a process of its own: {refused}") from refused


def _run(command: Sequence[str], limits: Limits, files: tuple[Path, Path, Path]) -> int | None:
    """The exit code, or None when the time was over."""
    terms = json.dumps({"timeout_s": limits.timeout_s, "memory_bytes": limits.memory_bytes, "parent": os.getpid()})
    with files[0].open("rb") as asked, files[1].open("wb") as said, files[2].open("wb") as complained:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CONFINE), terms, *command],
            stdin=asked,
            stdout=said,
            stderr=complained,
            cwd=files[0].parent,
            env=_environment(),
            start_new_session=True,
        )
    _running[threading.get_ident()] = process
    try:
        return process.wait(limits.timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        del _running[threading.get_ident()]
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


_running: "dict[int, subprocess.Popen[bytes]]" = {}
"""The children that are waited for, by the thread that waits."""


def stop_child_of(thread_id: int) -> None:
    """Kill the child that a thread waits for, if it does."""
    process = _running.get(thread_id)
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    """The child works in another folder, so a search path that is relative would be lost."""
    search = [str(Path(one).absolute()) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    return {**os.environ, **_ENVIRONMENT, **({"PYTHONPATH": os.pathsep.join(search)} if search else {})}


def _reason(code: int | None, complaints: str, limits: Limits) -> str:
    if code is None or code == -signal.SIGXCPU:
        return f"it took longer than the {limits.timeout_s:g} s that it may take, and was stopped"
    if _UNEXPLAINED in complaints:
        return f"it failed without a reason, most likely for want of memory: it may have {_size(limits)}"
    if any(word in complaints for word in _WORDS_OF_WANT):
        return f"it wanted more memory than the {_size(limits)} that it may have"
    if code == -signal.SIGKILL:
        return "it was killed (SIGKILL): the machine has run out of memory, or the server is stopping"
    if code < 0:
        return f"the compiler crashed ({signal.Signals(-code).name})"
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    return f"the compiler failed: {lines[-1] if lines else f'exit code {code}'}"


def _size(limits: Limits) -> str:
    return f"{limits.memory_bytes / (1 << 20):g} MiB"


def _tail(path: Path) -> str:
    return path.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
