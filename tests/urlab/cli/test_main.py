"""The command `urlab`: help, version, errors."""

import logging
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import urlab
from urlab.cli.console import RateLimit
from urlab.cli.main import app

COMMANDS = sorted(str(one.callback.__name__) for one in app.registered_commands if one.callback is not None)


def test_the_version_names_ours_and_mujocos(cli_here: Any) -> None:
    done = cli_here("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(f"urlab {metadata.version('urlab-headless')} (MuJoCo {metadata.version('mujoco')},")


def test_no_command_is_wrong_use_and_shows_help(cli_here: Any) -> None:
    done = cli_here()
    assert done.returncode == 2
    assert "Usage: urlab" in done.stdout + done.stderr


def test_a_misspelt_command_is_wrong_use_and_says_what_was_meant(cli_here: Any) -> None:
    done = cli_here("serv")
    assert (done.returncode, done.stdout) == (2, "")
    assert "serve" in done.stderr


def test_all_commands_of_this_release_are_there() -> None:
    expected = "bench config demo doctor export ops ping replay rollout ros2 serve watch"
    assert expected.split() == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    (found,) = (one for one in app.registered_commands if one.callback is not None and one.callback.__name__ == command)
    assert found.callback is not None
    assert f"urlab {command}" in (found.callback.__doc__ or "")


def test_nothing_heavy_is_imported_before_a_command_runs() -> None:
    heavy = "{'mujoco', 'matplotlib', 'PIL', 'zmq'}"
    script = f"import sys, urlab.cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_line_of_the_log_that_repeats_is_kept_back_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("urlab.cli.console.time.monotonic", lambda: now)
    limit = RateLimit(burst=3, window_s=10)

    def said(text: str, value: int) -> str | None:
        record = logging.LogRecord("urlab", logging.WARNING, "", 0, text, (value,), None)
        return record.getMessage() if limit.filter(record) else None

    lines = [said("peer %d is refused", number) for number in range(8)]
    assert lines == ["peer 0 is refused", "peer 1 is refused", "peer 2 is refused", *[None] * 5]
    assert said("peer %d is late", 9) == "peer 9 is late"
    now += 11
    assert said("peer %d is refused", 8) == "peer 8 is refused (5 more such lines were kept back)"
    assert said("peer %d is refused", 9) == "peer 9 is refused"


def test_an_unexpected_error_is_one_line_with_advice(cli: Any, broken_mujoco: dict[str, str]) -> None:
    done = cli("serve", "--step-port", "0", env={**os.environ, **broken_mujoco})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ImportError: half of it is missing. `urlab doctor` checks the installation;")


def test_an_unexpected_error_has_its_traceback_at_log_level_debug(cli: Any, broken_mujoco: dict[str, str]) -> None:
    done = cli("serve", "--step-port", "0", "--log-level", "debug", env={**os.environ, **broken_mujoco})
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_reader_that_goes_away_leaves_no_traceback() -> None:
    command = f"{sys.executable} -m urlab ops --offline --json | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.parametrize(
    "words", [["-m", "urlab", "ping"], ["-m", "urlab", "--version"], ["-c", "import urlab; urlab.launch('box')"]]
)
def test_a_client_of_another_distribution_that_stands_before_ours_is_named(words: list[str], tmp_path: Path) -> None:
    other = tmp_path / "urlab_client"
    other.mkdir()
    (other / "__init__.py").write_text("VERSION = 'of others'\n")
    information = tmp_path / "their_client-9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: their-client\nVersion: 9.9\n")
    (information / "top_level.txt").write_text("urlab_client\n")
    source = Path(urlab.__file__).parents[1]
    path = os.pathsep.join([str(tmp_path), str(source)])
    ended = subprocess.run(
        [sys.executable, *words], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    for word in (
        str(other),
        "their-client 9.9",
        "urlab-headless",
        str(Path(urlab.__file__).parents[1] / "urlab_client"),
    ):
        assert word in last
    if words[0] == "-m":
        assert len(ended.stderr.strip().splitlines()) == 1
