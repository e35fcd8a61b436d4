"""Every example runs to its end, in a process of its own; the first one starts as a reader would start it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from urlab.child_process import ServerProcess

RUNS_A_FILE = """# preloaded
import runpy, sys, warnings
warnings.simplefilter("error")
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")  # one of them starts urlab.evaluation
"""
PATIENCE_S = 240
"""On a busy machine some take long."""

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9][0-9]_*.py"))

pytestmark = pytest.mark.timeout(PATIENCE_S + 60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess("demo", "--project", str(tmp_path_factory.mktemp("project"))) as running:
        yield running


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_to_its_end(example, server, tmp_path):
    start = ["-W", "error"] if example == EXAMPLES[0] else ["-c", RUNS_A_FILE]
    done = subprocess.run(
        [sys.executable, *start, str(example), *_where(example, server)],
        env={**os.environ, "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.count("\n") >= 1


def test_the_policy_of_an_example_is_one_for_the_command_that_it_names(tmp_path):
    (example,) = (path for path in EXAMPLES if "evaluate" in path.stem)
    line = next(line for line in example.read_text().splitlines() if line.startswith("``urlab eval run "))
    words = line.strip("`.").replace("examples/", f"{example.parent}/").split()[1:]
    done = subprocess.run(
        [sys.executable, "-m", "urlab", *words, "--episodes", "1", "--results", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1/1 " in done.stderr
    assert "BlindSweep" in (tmp_path / "out.html").read_text()


def test_without_the_extra_an_example_says_what_to_install_and_shows_no_traceback(tmp_path):
    (example,) = (path for path in EXAMPLES if "evaluate" in path.stem)
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['fastapi'] = sys.modules['uvicorn'] = None\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, str(example)], env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    missing, ended = done.stderr.splitlines()
    assert "pip install 'urlab-headless[eval]'" in missing
    assert ended.startswith("the evaluation server did not start")


def _where(example, server):
    if "--step-port" not in example.read_text():
        return []
    address, _, port = server.endpoints["step"].rpartition(":")
    return ["--address", address, "--step-port", port]
