"""The child's end of a piece of work that may crash, hang or eat memory: bytes in, bytes out.

Standard input brings the length of the task (8 bytes, little-endian), then the task, and stays open; standard output
takes the result. What goes wrong is the last line on standard error. The child ends when its parent does.
"""

import contextlib
import os
import resource
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO

from urlab.compile.decomposition.child_run import LENGTH_BYTES

_MEMORY_BYTES = 4 << 30
_NICENESS = 10


def serve_once(work: Callable[[bytes], bytes]) -> None:
    """Read the task, do the work, write the result."""
    sys.excepthook = _complain
    out = _private_output()
    _be_modest()
    task = _receive(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with out:
        out.write(work(task))


def _private_output() -> BinaryIO:
    """Standard output for the result alone: what libraries print goes to standard error."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def _be_modest() -> None:
    """Physics goes first, and a task that would eat all memory fails."""
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(OSError, ValueError):
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _receive(source: BinaryIO) -> bytes:
    length = int.from_bytes(source.read(LENGTH_BYTES), "little")
    return source.read(length)


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


def _complain(kind: type[BaseException], problem: BaseException, _trace: TracebackType | None) -> None:
    """In one line; the kind of a problem is told where its words alone say little."""
    said = " ".join(str(problem).split())
    if kind is not ValueError or not said:
        said = f"{kind.__name__}: {said}".removesuffix(": ")
    print(said, file=sys.stderr)
