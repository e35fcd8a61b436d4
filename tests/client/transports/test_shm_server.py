"""A whole client over shared memory, with real servers: in this process, and in one of their own."""

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.app import Server
from urlab.child_process import ServerProcess
from urlab.config import Ports, ServerConfig
from urlab_client import URLabClient, URLabTimeoutError
from urlab_client.transports import ShmTransport

ARM = """
<mujoco model="arm"><worldbody>
  <camera name="room" pos="0 -2 .5" xyaxes="1 0 0 0 .2 1" resolution="8 6"/>
  <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping=".1"/><geom size=".1 .4" type="capsule"/>
    <camera name="wrist" pos="0 -1 0" xyaxes="1 0 0 0 0 1" resolution="16 12"/></body></worldbody>
  <actuator><motor name="push" joint="shoulder" gear="9"/></actuator></mujoco>"""
LARGE = ARM.replace('resolution="8 6"', 'resolution="800 600"')

Serve = Callable[..., Server]
Connect = Callable[..., URLabClient]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "arm.xml"
    path.write_text(ARM, encoding="utf-8")
    return path


@pytest.fixture
def serve(model: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts servers in this process."""
    made: list[Server] = []

    def start(target: Path = model, **options: Any) -> Server:
        made.append(Server(ServerConfig(project=tmp_path / "project", ports=Ports.any(), **options), [target]))
        made[-1].begin()
        made[-1].open_sockets()
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients that have said hello."""
    made: list[URLabClient] = []

    def to(endpoint: str, transport: str = "shm", **options: Any) -> URLabClient:
        base, _, port = endpoint.rpartition(":")
        made.append(URLabClient(base, step_port=int(port), transport=transport, **options))
        made[-1].discover()
        return made[-1]

    yield to
    for client in made:
        client.close()


def step_endpoint(server: Server) -> str:
    return str(server.endpoints()["step"])


def transport_of(client: URLabClient) -> ShmTransport:
    transport = client._channel.transport
    assert isinstance(transport, ShmTransport)
    return transport


def requests_so_far(folder: str | None) -> int:
    """How many requests went through shared memory, as the region counts them."""
    assert folder is not None
    return int(struct.unpack_from("<Q", (Path(folder) / "req.shm").read_bytes()[:64], 16)[0])


# -- stepping -----------------------------------------------------------------------------------------------------


def roll_out(client: URLabClient) -> list[Any]:
    """What a client has seen after each of some steps."""
    seen = []
    client.reset()
    arm = client.articulations["arm"]
    for turn in range(20):
        arm.ctrl_array[:] = np.sin(turn)
        reply = client.step(3, observations="full")
        reply.pop("wall_time")
        seen.append((reply, client.data.qpos.tobytes(), client.data.sensordata.tobytes(), client.sim_time))
    return seen


def test_a_step_over_shared_memory_equals_one_over_zeromq_bit_for_bit(serve: Serve, connect: Connect):
    over_shm, over_zmq = serve(), serve()
    client = connect(step_endpoint(over_shm), step_mode="direct")
    before = requests_so_far(client.shm_session_dir)
    assert roll_out(client) == roll_out(connect(step_endpoint(over_zmq), "zmq", step_mode="direct"))
    assert requests_so_far(client.shm_session_dir) == before + 21


def test_a_reply_that_is_too_large_comes_over_zeromq_and_no_step_runs_twice(
    serve: Serve, connect: Connect, tmp_path: Path
):
    large = tmp_path / "large.xml"
    large.write_text(LARGE, encoding="utf-8")
    client = connect(step_endpoint(serve(large, play=False)), step_mode="direct")
    client.sim.start()
    before = requests_so_far(client.shm_session_dir)
    for count in (1, 2):
        reply = client.step(include_cameras={"room": "sync"})
        assert len(reply["cameras"]["room"]["data"]) == 800 * 600 * 4
        assert client.step_count == count
    assert requests_so_far(client.shm_session_dir) == before + 2
    assert client.step()["step"] == 3


def test_a_server_without_shared_memory_is_reached_over_zeromq(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
):
    client = connect(step_endpoint(serve(shm=False)), step_mode="direct")
    client.reset()
    assert client.step()["step"] == 1
    assert not transport_of(client).is_attached
    assert "--no-shm" in caplog.text


def test_the_end_of_a_play_and_the_next_one_are_served_through_the_same_regions(serve: Serve, connect: Connect):
    client = connect(step_endpoint(serve()), step_mode="direct")
    folder, before = client.shm_session_dir, requests_so_far(client.shm_session_dir)
    client.sim.stop()
    client.sim.start()
    assert client.step()["step"] == 1
    assert client.shm_session_dir == folder
    assert requests_so_far(folder) >= before + 3


# -- a client that dies -------------------------------------------------------------------------------------------

CLIENT = """# preloaded
import sys
from urlab_client import URLabClient
base, _, port = sys.argv[1].rpartition(":")
client = URLabClient(base, step_port=int(port), transport="shm", step_mode="direct", local_model=False)
client.discover()
print(client._channel.transport.is_attached, flush=True)
sys.stdin.readline()
client.step(int(sys.argv[2]))
"""


def test_what_a_killed_client_held_is_the_next_ones_at_once_and_so_is_no_reply(serve: Serve, connect: Connect):
    server = serve()
    command = [sys.executable, "-c", CLIENT, step_endpoint(server), "300000"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
        before = requests_so_far(str(server.shm_folder))
        child.stdin.write("step\n")
        child.stdin.flush()
        while requests_so_far(str(server.shm_folder)) == before:
            time.sleep(0.001)
        child.kill()
    client = connect(step_endpoint(server), step_mode="direct", rcv_timeout_ms=60_000)
    assert transport_of(client).is_attached
    client.reset()
    assert [client.step()["step"] for _ in range(3)] == [1, 2, 3]


# -- a server that dies -------------------------------------------------------------------------------------------


def test_a_server_that_is_killed_is_told_soon_and_its_successor_is_found_by_discover(
    model: Path, tmp_path: Path, connect: Connect, lasting_port: Callable[[], int]
):
    ports = ("--step-port", str(lasting_port()), "--project", str(tmp_path / "project"), "--no-camera-streams")
    with ServerProcess(str(model), *ports) as first:
        client = connect(first.endpoints["step"], step_mode="direct", rcv_timeout_ms=600_000)
        killed_at = _kill_during_a_request(first.process.pid, client.shm_session_dir)
        with pytest.raises(URLabTimeoutError, match=r"step: the server at tcp://.* ended before it answered"):
            client.step(1_000_000_000)
        assert time.monotonic() - killed_at[0] < 60
        first.stop()
    old_folder = client.shm_session_dir
    with ServerProcess(str(model), *ports):
        client.discover()
        assert client.shm_session_dir != old_folder
        before = requests_so_far(client.shm_session_dir)
        client.reset()
        assert client.step()["step"] == 1
        assert requests_so_far(client.shm_session_dir) == before + 2
        client.close()


def _kill_during_a_request(pid: int, folder: str | None) -> list[float]:
    """From another thread, once a request more has been written; when that was."""
    before, when = requests_so_far(folder), []

    def kill() -> None:
        while requests_so_far(folder) == before:
            time.sleep(0.005)
        when.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)

    threading.Thread(target=kill).start()
    return when
