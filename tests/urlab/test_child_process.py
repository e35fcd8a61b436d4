"""Child processes: those that work, those that fail, and those that do not want to end."""

import sys
from pathlib import Path

import pytest

from urlab.child_process import ChildProcess, ServerProcess, how_it_ended, last_line
from urlab.errors import ChildFailed

READY = """
import os, signal, sys, time
with open(sys.argv[1] + ".part", "w") as file:
    file.write("{}")
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""
"""Writes its ready file whole, as every child must."""

IGNORES_SIGTERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN){READY}time.sleep(60)"
READS_ITS_INPUT = f"{READY}sys.stdin.read()"


def python(script: str, *words: object) -> list[str]:
    return [sys.executable, "-c", script, *map(str, words)]


def test_a_child_that_ends_before_it_is_ready_is_reported_with_its_error_message(tmp_path: Path) -> None:
    script = "import sys; sys.exit('error: the port is taken')"
    with ChildProcess(python(script)) as child, pytest.raises(ChildFailed, match=r"exit code 1: the port is taken$"):
        child.wait_for_file(tmp_path / "ready.json", 30)


def test_a_child_that_is_not_ready_in_time_is_reported(tmp_path: Path) -> None:
    with ChildProcess(python("import time; time.sleep(60)")) as child:
        with pytest.raises(ChildFailed, match=r"was not ready within 0\.05 s: it said nothing$"):
            child.wait_for_file(tmp_path / "ready.json", 0.05)
    assert child.process.returncode is not None


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    child = ChildProcess(python(IGNORES_SIGTERM, tmp_path / "ready.json"))
    assert child.wait_for_file(tmp_path / "ready.json", 30) == {}
    child.stop(0.05)
    assert how_it_ended(child.process.returncode) == "was ended by SIGKILL"
    child.stop()


def test_a_child_that_reads_its_input_to_the_end_sees_the_end_when_it_is_stopped(tmp_path: Path) -> None:
    with ChildProcess(python(READS_ITS_INPUT, tmp_path / "ready.json"), keep_stdin=True) as child:
        child.wait_for_file(tmp_path / "ready.json", 30)
        assert child.process.stdin is not None
        child.process.stdin.close()
        with pytest.raises(ChildFailed, match="exit code 0"):
            child.check(patience_s=30)


def test_the_error_line_is_preferred_to_what_comes_after_it() -> None:
    assert last_line(b"warming up\nerror: no such level\nTraceback ends here\n\n") == "no such level"
    assert last_line(b"one\ntwo\n") == "two"
    assert last_line(b"") == "it said nothing"


def test_a_server_that_cannot_start_tells_why() -> None:
    with pytest.raises(ChildFailed, match="no-such-level"):
        ServerProcess("no-such-level")


def test_a_server_in_a_child_process_is_ready_when_it_is_there(tmp_path: Path) -> None:
    with ServerProcess("demo", "--project", str(tmp_path)) as server:
        assert server.endpoints["pid"] == server.pid
        assert server.endpoints["step"].startswith("tcp://127.0.0.1:")
        server.stop(60)
    assert server.process.returncode == 0
