"""Work in a child process that may crash, hang or eat memory. The children here are scripts of a few lines."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from urlab.errors import ChildFailed
from urlab.importing.limited_process import LimitedProcess, ProcessLimits, StopSwitch, python_module

LIMITS = ProcessLimits(timeout_s=60, memory_bytes=512 << 20)
HANG = "import time; time.sleep(1000)"
GONE_S = 60


def python(script: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", script]


def run(script: str, task: bytes = b"", limits: ProcessLimits = LIMITS) -> bytes:
    return LimitedProcess(python(script), task, limits).result()


def test_a_task_is_answered() -> None:
    script = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
    assert run(script, b"\x00hello") == b"olleh\x00"


def test_a_large_task_need_not_be_read() -> None:
    assert run("print('done', end='')", bytes(1 << 20)) == b"done"


def test_noise_on_the_standard_error_does_not_matter() -> None:
    assert run("import sys; sys.stderr.write('bad_alloc MemoryError' * 100_000); print(1, end='')") == b"1"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import os; os.abort()", "its process was ended by SIGABRT"),
        ("import ctypes; ctypes.string_at(1)", "its process was ended by SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", r"was killed \(SIGKILL\)"),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", "wanted more memory than the 512 MiB"),
        ("raise SystemExit(3)", "its process ended with exit code 3"),
        ("raise ValueError('this is why')", "^ValueError: this is why$"),
    ],
)
def test_what_went_wrong_is_told(script: str, words: str) -> None:
    with pytest.raises(ChildFailed, match=words):
        run(script)


def test_a_child_that_hangs_is_stopped_with_its_own_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    alive = f"os.open({str(tmp_path / 'alive')!r}, os.O_WRONLY)"
    script = f"import os, time; alive = {alive}; os.fork(); os.write(alive, b'.'); time.sleep(1000)"
    child = LimitedProcess(python(script), b"", ProcessLimits(timeout_s=0.5))
    for _ in range(2):  # the time counts from `result` on: by then both are there
        assert select.select([reader], [], [], GONE_S)[0]
        assert os.read(reader, 1) == b"."
    with pytest.raises(ChildFailed, match=r"longer than the 0\.5 s"):
        child.result()
    assert select.select([reader], [], [], GONE_S)[0]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_child_that_burns_time_is_stopped() -> None:
    with pytest.raises(ChildFailed, match=r"longer than the 0\.3 s"):
        run("while True: pass", limits=ProcessLimits(timeout_s=0.3))


def test_a_command_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ChildFailed, match="No such file"):
        LimitedProcess(["/no/such/command"], b"", LIMITS).result()


def test_a_child_that_writes_without_end_fills_no_disk() -> None:
    with pytest.raises(ChildFailed, match="File too large"):
        run("import os\nwhile True: os.write(1, bytes(1 << 24))")


def test_a_child_works_in_a_folder_that_is_gone_afterwards() -> None:
    folder = Path(run("import os; print(os.getcwd(), end='')").decode())
    assert folder.name.startswith(f"urlab-{os.getpid()}-")
    assert not folder.exists()


def test_a_child_yields_to_the_simulation_when_it_is_asked_to() -> None:
    niceness = int(run("import os; print(os.nice(0), end='')", limits=ProcessLimits(niceness=3)))
    assert niceness == min(19, os.nice(0) + 3)


def test_a_child_that_is_killed_from_another_thread_is_a_failure() -> None:
    child = LimitedProcess(python(HANG), b"", LIMITS)
    thread = threading.Thread(target=child.kill)
    thread.start()
    with pytest.raises(ChildFailed, match="SIGKILL"):
        child.result()
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_a_switch_ends_the_child_of_its_thread_and_lets_no_other_start() -> None:
    switch, started, failures = StopSwitch(), threading.Event(), []

    def work() -> None:
        with switch:
            child = LimitedProcess(python(HANG), b"", LIMITS)
            started.set()
            for attempt in (child.result, lambda: run(HANG)):
                with pytest.raises(ChildFailed) as failed:
                    attempt()
                failures.append(failed.value.message)

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(GONE_S)
    switch.stop()
    thread.join(GONE_S)
    assert ["SIGKILL" in failures[0], failures[1:]] == [
        True,
        ["no process can be started for it: the server is stopping"],
    ]


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    child = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    script = (
        "from urlab.importing.limited_process import LimitedProcess, ProcessLimits\n"
        f"LimitedProcess({python(child)!r}, b'', ProcessLimits()).result()"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "TMPDIR": str(tmp_path)})
    child_pid = int((tmp_path / "pid").read_text())
    watched = os.pidfd_open(child_pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert select.select([watched], [], [], GONE_S)[0]
    os.close(watched)


Work = Callable[[str], bytes]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    """``work(body)`` is the result of a child whose module does ``body`` with ``task`` and returns bytes."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))

    def write(body: str) -> bytes:
        lines = ["import os, sys", "from urlab.importing.limited_process import serve_once", "def work(task):"]
        lines += [f"    {line}" for line in body.splitlines()] + ["serve_once(work)"]
        (tmp_path / "child_under_test.py").write_text("\n".join(lines))
        return LimitedProcess(python_module("child_under_test", "!"), b"task", ProcessLimits()).result()

    return write


def test_the_result_comes_back_whatever_libraries_print(work: Work) -> None:
    body = "print('chatter', flush=True)\nos.write(1, b'more chatter')\nreturn task[::-1] + sys.argv[1].encode()"
    assert work(body) == b"ksat!"


@pytest.mark.parametrize(
    ("body", "reason"),
    [("raise ValueError('no such thing\\n in line 3')", "no such thing in line 3"), ("{}['gone']", "KeyError: 'gone'")],
)
def test_what_the_child_complains_of_is_the_reason(work: Work, body: str, reason: str) -> None:
    with pytest.raises(ChildFailed) as failed:
        work(body)
    assert failed.value.message == reason
