"""Work in a child process that may crash, hang or eat memory. The children here are ten-line modules."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from urlab.compile.decomposition.child_run import ChildFailed, ChildRun

Module = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """``module(body)`` is the name of a child's module that does ``body`` with ``task`` and returns bytes."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(body: str) -> str:
        lines = ["import os, sys", "from urlab.compile.decomposition.child_side import serve_once", "def work(task):"]
        lines += [f"    {line}" for line in body.splitlines()] + ["serve_once(work)"]
        (tmp_path / "child_under_test.py").write_text("\n".join(lines))
        return "child_under_test"

    return write


def test_the_result_comes_back_whatever_libraries_print(module: Module) -> None:
    name = module(
        "print('chatter', flush=True)\nos.write(1, b'more chatter')\nreturn task[::-1] + sys.argv[1].encode()"
    )
    task = bytes(range(256)) * 10_000
    assert ChildRun(name, "!").result(task, 30) == task[::-1] + b"!"


def test_what_the_child_complains_of_is_the_reason(module: Module) -> None:
    with pytest.raises(ChildFailed, match=r"^no such thing in line 3$"):
        ChildRun(module("raise ValueError('no such thing\\n in line 3')")).result(b"", 30)
    with pytest.raises(ChildFailed, match=r"^KeyError: 'gone'$"):
        ChildRun(module("return {}['gone']")).result(b"", 30)


def test_a_child_that_crashes_is_named_by_its_signal(module: Module) -> None:
    with pytest.raises(ChildFailed, match="ended by SIGSEGV"):
        ChildRun(module("os.kill(os.getpid(), 11)")).result(b"", 30)


def test_a_child_that_dies_before_it_takes_its_task_is_a_failure(module: Module) -> None:
    run = ChildRun(module("return b''"))
    run.kill()
    with pytest.raises(ChildFailed, match="SIGKILL"):
        run.result(bytes(1 << 22), 30)


def test_a_child_that_hangs_is_ended_after_the_limit(module: Module) -> None:
    run = ChildRun(module("import threading; threading.Event().wait()"))
    with pytest.raises(ChildFailed, match=r"longer than 0.3 s"):
        run.result(b"", 0.3)
    with pytest.raises(ProcessLookupError):
        os.kill(run.pid, 0)


def test_a_child_that_eats_memory_fails_by_itself(module: Module) -> None:
    with pytest.raises(ChildFailed, match="MemoryError"):
        ChildRun(module("return bytes(6 << 30)")).result(b"", 30)


def test_another_thread_can_end_it(module: Module) -> None:
    run = ChildRun(module("import threading; threading.Event().wait()"))
    thread = threading.Thread(target=run.kill)
    thread.start()
    with pytest.raises(ChildFailed, match="SIGKILL"):
        run.result(b"", 30)
    thread.join()


def test_a_child_ends_when_its_parent_is_killed(module: Module) -> None:
    name = module("import threading; threading.Event().wait()")
    script = f"""
import threading
from urlab.compile.decomposition.child_run import ChildRun
run = ChildRun({name!r})
threading.Thread(target=run.result, args=(b"task", 60)).start()
print(run.pid, flush=True)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([child], [], [], 30)
    os.close(child)
    assert ended
