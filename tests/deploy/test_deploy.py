"""The files of deploy/: they parse, and name only commands, options and variables that there are.

`make deploy-test` runs what they say.
"""

import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from urlab.cli.main import app
from urlab.cli.settings import listen_to_environment

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture(scope="module")
def command() -> Any:
    root = typer.main.get_command(app)
    listen_to_environment(root)
    return root


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2]) for line in lines]


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def workflow_steps() -> list[dict[str, Any]]:
    return yaml.safe_load((DEPLOY / "github-workflow.yml").read_text())["jobs"]["evaluate"]["steps"]


def command_lines() -> list[list[str]]:
    (default,) = (json.loads(rest) for word, rest in instructions() if word == "CMD")
    services = [service["command"] for service in compose().values()]
    scripts = "\n".join(step["run"] for step in workflow_steps() if "run" in step)
    steps = [shlex.split(re.sub(r"[>&].*", "", line))[1:] for line in scripts.splitlines() if line.startswith("urlab ")]
    (unit,) = re.findall(r"^ExecStart=\S+/urlab (.*)$", (DEPLOY / "urlab.service").read_text(), flags=re.MULTILINE)
    return [default, *services, *steps, shlex.split(unit)]


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_every_command_line_is_understood(command: Any, words: list[str]) -> None:
    found, rest = command, list(words)
    while hasattr(found, "commands"):
        found = found.commands[rest.pop(0)]
    found.make_context(found.name, rest)


def test_the_image_holds_the_packages_that_the_makefile_installs() -> None:
    makefile = (DEPLOY.parent / "Makefile").read_text()
    (needed,) = re.findall(r"^SYSTEM_PACKAGES := (.*)$", makefile, flags=re.MULTILINE)
    (extras,) = re.findall(r"^EXTRAS := (.*)$", makefile, flags=re.MULTILINE)
    installed = next(rest for word, rest in instructions() if word == "RUN")
    assert set(needed.split()) <= set(installed.split())
    assert ("ARG", f"EXTRAS={extras}") in instructions()
    copied = {source for word, rest in instructions() if word == "COPY" for source in rest.split()[:-1]}
    assert all((DEPLOY.parent / source).exists() for source in copied)


def test_nothing_of_the_image_runs_as_root() -> None:
    words = [word for word, _ in instructions()]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "RUN" not in words[words.index("USER") :]


def variables(text: str) -> set[str]:
    return set(re.findall(r"\bURLAB_[A-Z_]+\b", text))


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "urlab.service", "github-workflow.yml"])
def test_every_variable_sets_an_option(command: Any, name: str) -> None:
    def known(one: Any) -> set[str]:
        own = {variable for option in one.params if option.envvar for variable in [option.envvar]}
        return own.union(*(known(below) for below in getattr(one, "commands", {}).values()))

    assert variables((DEPLOY / name).read_text()) <= known(command)


def test_the_unit_is_one(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    text = (DEPLOY / "urlab.service").read_text()
    unit.read_string(text)
    assert set(unit.sections()) == {"Unit", "Service", "Install"}
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze to ask")
    program = tmp_path / "urlab"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "urlab.service").write_text(text.replace("/opt/urlab/bin/urlab", str(program)))
    asked = [shutil.which("systemd-analyze"), "verify", "--man=no", str(tmp_path / "urlab.service")]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)  # type: ignore[arg-type]
    assert "urlab.service" not in said.stderr
