"""The client in programs of their own: their end, their type checker."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import zmq

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab_client import InProcessTransport, URLabClient

BALL = """
<mujoco model="ball"><worldbody><body name="trunk"><joint name="hip"/><geom size=".1"/></body></worldbody></mujoco>
"""

USES = """
from urlab_client import AsyncURLabClient, URLabClient

client = URLabClient("tcp://localhost", step_mode="direct")
client.discover("full")
reply = client.step(2, include_cameras=["eye"], observations="minimal")
client.scene.spawn_actor("panda", "p0", location=(0, 0, 1))
client.runtime.set_sim_options(timestep=0.001, gravity=(0, 0, -9.81))
joint = client.articulations["arm"].joints["waist"]
reveal_type(joint.range)  # tuple[float, float] | None
reveal_type(client.sim.status())  # urlab_client.types.running.PIEStatus
reveal_type(client.runtime.list_keyframes())  # list[urlab_client.types.running.KeyframeInfo]
client.stp()  # "URLabClient" has no attribute "stp"
client.step(steps=2)  # Unexpected keyword argument "steps"
client.step(include_cameras=3)  # incompatible type "int"
client.step_mode = "live"  # read-only
client.sim_time = 1.0  # read-only
client.scene.spawn_actor("panda", "p0", locaton=(0, 0, 1))  # Unexpected keyword argument "locaton"
client.scene.create_levl("x")  # has no attribute "create_levl"
client.runtime.set_sim_options(timestp=0.001)  # Unexpected keyword argument "timestp"
client.viewport.set_camera((0, 0, 1), fov="wide")  # incompatible type "str"
client.articulations["arm"].qpos_arry  # has no attribute "qpos_arry"
client.articulations["arm"].set_ctrl([1.0])  # incompatible type "list[float]"
URLabClient(step_mod="direct")  # Unexpected keyword argument "step_mod"


async def main() -> None:
    async with AsyncURLabClient("tcp://localhost", step_mode="live") as client:
        await client.discover()
        reveal_type(await client.sim.status())  # urlab_client.types.running.PIEStatus
        reveal_type(await client.scene.current_level())  # str
        await client.step(2, observations="full")
        await client.step(steps=2)  # Unexpected keyword argument "steps"
        await client.scene.load_level(naem="x")  # Unexpected keyword argument "naem"
    AsyncURLabClient(step_mod="direct")  # Unexpected keyword argument "step_mod"
"""


@pytest.mark.timeout(300)
def test_a_type_checker_knows_every_call_and_finds_what_is_misspelt(tmp_path: Path) -> None:
    snippet = tmp_path / "uses.py"
    snippet.write_text(USES.lstrip())
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--hide-error-context", "--no-pretty"]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", str(tmp_path / "cache"), "uses.py"],
        capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False,
    )  # fmt: skip
    messages: dict[int, str] = {}
    for line in found.stdout.splitlines():
        place = re.match(r"uses\.py:(\d+): (error|note): (.*)", line)
        if place:
            messages[int(place[1])] = f"{messages.get(int(place[1]), '')} {place[3]}"
    expected = {
        number: line.partition("  # ")[2] for number, line in enumerate(USES.lstrip().splitlines(), 1) if "  # " in line
    }
    assert messages.keys() == expected.keys(), found.stdout
    wrong = {n: (text, messages[n]) for n, text in expected.items() if text.strip('"') not in messages[n]}
    assert wrong == {}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    model = tmp_path / "ball.xml"
    model.write_text(BALL)
    server = Server(replace(ServerConfig(), project=tmp_path / "project", ports=Ports.any(), shm=False), [model])
    server.begin()
    server.open_sockets()
    yield server
    server.close()


def test_a_program_that_ends_without_closing_gives_its_mode_back(server: Server) -> None:
    base, _, port = str(server.endpoints()["step"]).rpartition(":")
    program = (
        "from urlab_client import URLabClient\n"
        f"client = URLabClient({base!r}, step_port={port}, step_mode='direct')\n"
        "client.discover()\n"
        "print(client.sim.status().mode)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.strip() == "direct"
    assert "never closed: use `with URLabClient" in ended.stderr
    with URLabClient(transport=InProcessTransport(server.dispatcher.handle), observer=True) as client:
        client.discover()
        while client.sim.status().mode != "live":  # the end of a program waits a second for that
            pass


WAITS = """# preloaded
import sys, threading
from urlab_client import URLabClient
client = URLabClient(sys.argv[1], step_port=int(sys.argv[2]), transport=sys.argv[3], rcv_timeout_ms=3_600_000)
threading.Thread(target=client.discover, daemon=True).start()
sys.stdin.read()
"""


@pytest.mark.parametrize("transport", ["zmq", "shm"])
def test_a_program_ends_though_one_of_its_threads_waits_for_an_answer(transport: str) -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as stuck:
        port = stuck.bind_to_random_port("tcp://127.0.0.1")
        command = [sys.executable, "-c", WAITS, "tcp://127.0.0.1", str(port), transport]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as program:
            assert stuck.recv_multipart(), "the request, which gets no answer"
            program.communicate(timeout=60)
    assert program.returncode == 0
