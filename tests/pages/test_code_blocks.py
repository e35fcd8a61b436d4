"""The programs, files and commands on README and the pages work as they stand there.

The pages about evaluation have a test of their own (``tests/urlab/evaluation/test_docs.py``).
"""

import contextlib
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from typer.main import get_command

from urlab.child_process import ServerProcess
from urlab.cli.main import app
from urlab.cli.settings import read_settings
from urlab.scene.level_file import read_level
from urlab.scene.sidecar import parse_sidecar
from urlab_client import URLabClient

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    if not path.name.startswith("evaluation")
]

ARM = """
<mujoco model="arm"><worldbody><body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0"/><geom size=".1"/>
</body></worldbody><actuator><motor name="shoulder" joint="shoulder"/></actuator></mujoco>"""
TETRAHEDRON = """solid mug
facet normal 0 0 -1
outer loop
vertex 0 0 0
vertex 0 .1 0
vertex .1 0 0
endloop
endfacet
facet normal 0 -1 0
outer loop
vertex 0 0 0
vertex .1 0 0
vertex 0 0 .1
endloop
endfacet
facet normal -1 0 0
outer loop
vertex 0 0 0
vertex 0 0 .1
vertex 0 .1 0
endloop
endfacet
facet normal 1 1 1
outer loop
vertex .1 0 0
vertex 0 .1 0
vertex 0 0 .1
endloop
endfacet
endsolid"""
PATIENCE_MS = 60_000
"""On a busy machine the first picture of a server takes long."""

FILES = {"robots/arm.xml": ARM, "meshes/mug.stl": TETRAHEDRON}
"""What a reader has in ``/home/me``, where the pages keep their files."""


class Block(NamedTuple):
    """A fenced piece of a page."""

    page: Path
    line: int
    language: str
    code: str

    @property
    def name(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks() -> list[Block]:
    """Every fence of every page."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for fence in re.finditer(r"^( *)```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
            line = text[: fence.start()].count("\n") + 2
            found.append(Block(page, line, fence[2], textwrap.dedent(fence[3])))
    return found


BLOCKS = blocks()
PROGRAM_PAGES = sorted({block.page for block in BLOCKS if block.language == "python"})
COMMANDS = [
    pytest.param(line, id=f"{block.name} {line}")
    for block in BLOCKS
    if block.language == ""
    for line in block.code.splitlines()
    if line.startswith("urlab ")
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The reader's folder, which is also the current one."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[ServerProcess]:
    with ServerProcess("demo", "--project", str(home / "project")) as running:
        yield running


def ports(server: ServerProcess) -> dict[str, int]:
    """Where the server of this test listens, instead of the usual ports."""
    names = {"step_port": "step", "state_port": "state", "ctrl_port": "control", "info_port": "info"}
    return {option: int(server.endpoints[name].rpartition(":")[2]) for option, name in names.items()}


@contextlib.contextmanager
def connected(server: ServerProcess) -> Iterator[URLabClient]:
    """The client that a page begun earlier and goes on with."""
    with URLabClient("tcp://127.0.0.1", step_mode="direct", rcv_timeout_ms=PATIENCE_MS, **ports(server)) as client:
        client.discover()
        yield client


@pytest.mark.parametrize("page", PROGRAM_PAGES, ids=lambda page: page.name)
def test_every_program_runs(page: Path, home: Path, server: ServerProcess) -> None:
    """One after the other, in one scene, with the reader's own files and the ports of this server."""
    where = ", ".join(f"{name}={port}" for name, port in ports(server).items())
    for block in (block for block in BLOCKS if block.page == page and block.language == "python"):
        code = block.code.replace('URLabClient("tcp://127.0.0.1"', f'URLabClient("tcp://127.0.0.1", {where}')
        code = code.replace("/home/me", str(home))
        names: dict[str, Any] = {"__name__": "__main__"}
        with contextlib.ExitStack() as stack:
            if "client = " not in code and "as client" not in code:
                names["client"] = stack.enter_context(connected(server))
            exec(compile(code, f"{page}:{block.line}", "exec"), names)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "toml"], ids=lambda block: block.name)
def test_every_file_can_be_read(block: Block, home: Path) -> None:
    name = re.match(r"# (\S+\.toml)", block.code)
    path = home / (Path(name[1]).name if name else "level.toml")
    if path.name.endswith(".urlab.toml"):
        parse_sidecar(block.code, source=path.name)
        return
    if path.name == "lab.toml":
        path.write_text(block.code)
        assert read_settings(path, typer.main.get_command(app))
        return
    head = "" if "version = " in block.code else 'version = 1\nname = "level"\n'
    path.write_text(head + block.code)
    assert read_level(path).actors


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_understood(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: Any = get_command(app)
    while hasattr(command, "commands") and words:
        name, *words = words
        command = command.commands[name]
    command.make_context(command.name, words, resilient_parsing=True)
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known
