"""Peers that are killed at any moment, a hundred times: the other side goes on, and nothing is left behind."""

import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from urlab.child_process import ServerProcess
from urlab_client import URLabClient, URLabRPCError

TRANSPORTS = ["shm", "zmq"]
KILLS = [pytest.param(2, id="two"), pytest.param(100, id="a hundred", marks=pytest.mark.soak)]
PATIENCE_S = 40.0
POOL_THREADS = 8

CLIENT = """
import sys
from urlab_client import URLabClient
client = URLabClient(sys.argv[1], step_port=int(sys.argv[2]), transport=sys.argv[3], step_mode="direct",
                     local_model=False, camera_streams=False, rcv_timeout_ms=60_000)
client.discover()
print("stepping", flush=True)
while True:
    client.step(int(sys.argv[4]))
"""


def place(server):
    base, _, port = server.endpoints["step"].rpartition(":")
    return base, int(port)


def connect(server, transport):
    base, port = place(server)
    return URLabClient(base, step_port=port, transport=transport, step_mode="direct", rcv_timeout_ms=5000)


def held(process):
    """What a process holds: its descriptors and threads."""
    return process.num_fds(), process.num_threads()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_survives_clients_that_are_killed(transport, kills, tmp_path):
    chance = random.Random(kills)
    with ServerProcess("panda", "--project", str(tmp_path)) as server:
        process = psutil.Process(server.process.pid)
        command = [sys.executable, "-c", CLIENT, *map(str, place(server)), transport]
        before = None
        for number in range(kills):
            steps = chance.choice([1, 1, 200])
            with subprocess.Popen([*command, str(steps)], stdout=subprocess.PIPE) as child:
                assert child.stdout.readline() == b"stepping\n"
                time.sleep(chance.random() * 0.02)
                child.send_signal(signal.SIGKILL)
            if number == 0:
                before = held(process)
        with connect(server, transport) as client:
            client.discover()
            client.reset()
            assert [client.step()["step"] for _ in range(50)] == list(range(1, 51))
        descriptors, threads = before
        wait_until(lambda: process.num_fds() <= descriptors)
        assert process.num_threads() <= threads + POOL_THREADS, "its pool makes threads when they are needed"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_survives_servers_that_are_killed(transport, kills, tmp_path, lasting_port):
    chance = random.Random(kills)
    folders = []
    port = ("--step-port", str(lasting_port()))
    with contextlib.ExitStack() as started:
        server = started.enter_context(ServerProcess("panda", "--project", str(tmp_path), *port))
        client = started.enter_context(connect(server, transport))
        client.discover()
        before = None
        for number in range(kills):
            kill_amid_steps(server, client, chance)
            server = started.enter_context(ServerProcess("panda", "--project", str(tmp_path), *port))
            client.discover()
            client.reset()
            assert client.step()["step"] == 1
            folders.append(Path(client.shm_session_dir))
            assert [one for one in folders if one.exists()] == folders[-1:]
            if number == 0:
                before = held(psutil.Process())
        wait_until(lambda: all(now <= then for now, then in zip(held(psutil.Process()), before, strict=True)))
    assert not folders[-1].exists()


def kill_amid_steps(server, client, chance):
    """Step until the server is killed; the client must learn of it in time."""
    steps, delay_s = chance.choice([1, 1, 500]), chance.random() * 0.03
    killing = threading.Timer(delay_s, server.process.send_signal, [signal.SIGKILL])
    killing.start()
    begin = time.monotonic()
    with pytest.raises(URLabRPCError) as failed:
        step_for_ever(client, steps)
    assert failed.value.code in ("timeout", "transport_error"), failed.value
    assert time.monotonic() - begin < PATIENCE_S
    killing.join()
    server.stop()


def step_for_ever(client, steps):
    while True:
        client.step(steps)


def wait_until(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def children():
    """But for the one that others are forked from (tests/preloaded.py), which begins when it is first needed."""
    return {one for one in psutil.Process().children() if one.name() != "preloaded"}


@pytest.fixture(scope="module", autouse=True)
def others():
    """The processes of tests before these."""
    return children()


def test_this_module_leaves_no_process_behind(others):
    assert children() <= others


RECORDER = """
import sys
from urlab_client import URLabClient
client = URLabClient(sys.argv[1], step_port=int(sys.argv[2]), step_mode="direct", local_model=False,
                     rcv_timeout_ms=60_000)
client.discover()
client.recording.start()
client.step(50)
print("recording", flush=True)
sys.stdin.readline()
"""


def test_a_recording_survives_the_client_that_made_it(tmp_path):
    with ServerProcess("panda", "--project", str(tmp_path)) as server:
        command = [sys.executable, "-c", RECORDER, *map(str, place(server))]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"recording\n"
            child.send_signal(signal.SIGKILL)
        with connect(server, "zmq") as client:
            client.discover()
            client.step(25)
            client.recording.stop()
            saved = Path(client.recording.save(str(tmp_path / "kept.json")))
    frames = next(value for value in json.loads(saved.read_text()).values() if isinstance(value, list))
    assert len(frames) >= 75
