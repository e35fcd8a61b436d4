"""Processes that are forked from one that has imported everything are what they would be if they had been started."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MARK = "# preloaded\n"
TELLS = """
import json, os, resource, signal, sys
json.dump({
    "preloaded": "mujoco" in sys.modules,
    "parent": os.getppid(),
    "folder": os.getcwd(),
    "words": sys.argv,
    "heard": sys.stdin.read(),
    "variable": os.environ.get("URLAB_TESTS_OWN"),
    "files": sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "leads": os.getpid() == os.getsid(0),
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
}, sys.stdout)
print("done", file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture(params=["", MARK], ids=["started", "forked"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """What a process tells of itself."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    read, write = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", request.param + TELLS, "a word", "ü"],
            input="said",
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "URLAB_TESTS_OWN": "x=y"},
            pass_fds=(read,),
            start_new_session=True,
            check=False,
        )
    finally:
        os.close(read)
        os.close(write)
        resource.setrlimit(resource.RLIMIT_CORE, before)
    assert (done.returncode, done.stderr) == (7, "done\n")
    is_forked = request.param == MARK and not request.config.getoption("--cold")
    told: dict[str, Any] = json.loads(done.stdout)
    assert told.pop("preloaded") == is_forked
    assert told.pop("files") == [0, 1, 2, read]
    assert told.pop("folder") == str(tmp_path)
    return told


def test_everything_that_a_process_has_from_its_parent_is_there(told: dict[str, Any]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert told == {
        "parent": os.getpid(),
        "words": ["-c", "a word", "ü"],
        "heard": "said",
        "variable": "x=y",
        "core": [0, hard],
        "leads": True,
        "interrupt": True,
    }


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it_and_is_told(number: signal.Signals) -> None:
    program = MARK + "import time; print('here', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.send_signal(number)
    assert process.returncode == -number


def test_an_error_has_its_traceback_and_exit_code_1() -> None:
    done = subprocess.run([sys.executable, "-c", MARK + "1 / 0"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ZeroDivisionError: division by zero")


def test_where_modules_may_be_others_nothing_is_preloaded(tmp_path: Path) -> None:
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    (tmp_path / "mujoco.py").write_text("print('another')")
    done = subprocess.run(
        [sys.executable, "-c", MARK + "import mujoco"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    assert done.stdout == "another\n"


@pytest.mark.usefixtures("cold_start")
def test_a_test_about_the_start_gets_a_start() -> None:
    program = MARK + "import sys; print('mujoco' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("mark", ["", MARK], ids=["started", "forked"])
def test_an_interrupted_program_does_what_it_does_at_its_end_and_dies_of_the_interrupt(mark: str) -> None:
    program = mark + "import atexit; atexit.register(print, 'the end'); print('begun'); raise KeyboardInterrupt"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "begun\nthe end\n")
    assert done.stderr.endswith("KeyboardInterrupt\n")
