"""``urlab keys``, and a server that asks for them: real processes, and a machine of its own for an uninvited client."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from urlab_client import URLabClient, URLabRPCError

NewKey = Callable[..., Path]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def new_key(cli_here: Any) -> NewKey:
    """Makes a key, whose file it returns."""

    def make(keys: Path, name: str, role: str) -> Path:
        file = keys.parent / f"{name}.key"
        made = cli_here("keys", "new", name, "--role", role, "--keys", str(keys), "--out", str(file))
        assert made.returncode == 0, made.stderr
        assert all(word in made.stdout for word in (file.name, name, role, "URLAB_KEY", "--keys"))
        return file

    return make


def test_keys_are_made_listed_and_revoked(keys: Path, new_key: NewKey, cli_here: Any) -> None:
    new_key(keys, "ada", "operator")
    new_key(keys, "eve", "observer")
    again = cli_here("keys", "new", "ada", "--keys", str(keys), "--out", str(keys / "other"))
    assert (again.returncode, "there is a key 'ada' already" in again.stderr) == (2, True)
    listed = json.loads(cli_here("keys", "list", "--keys", str(keys), "--json").stdout)
    assert listed == {
        "folder": str(keys), "keys": [{"name": "ada", "role": "operator"}, {"name": "eve", "role": "observer"}],
    }  # fmt: skip
    assert cli_here("keys", "revoke", "eve", "--keys", str(keys)).returncode == 0
    shown = cli_here("keys", "list", "--keys", str(keys))
    assert "ada" in shown.stdout
    assert "eve" not in shown.stdout
    assert cli_here("keys", "revoke", "eve", "--keys", str(keys)).returncode == 2


def test_a_key_is_not_registered_when_its_file_cannot_be_written(keys: Path, cli_here: Any) -> None:
    failed = cli_here("keys", "new", "ada", "--keys", str(keys), "--out", "/proc/nowhere/ada.key")
    assert (failed.returncode, "cannot be written" in failed.stderr) == (2, True)
    assert json.loads(cli_here("keys", "list", "--keys", str(keys), "--json").stdout)["keys"] == []


def test_a_server_with_keys_serves_their_holders_and_says_so(
    serving: Any, arm: str, keys: Path, new_key: NewKey, cli: Any
) -> None:
    ada = new_key(keys, "ada", "driver")
    server = serving(arm, "--keys", str(keys))
    with URLabClient("tcp://127.0.0.1", step_port=int(server.port), step_mode="direct", key=ada) as client:
        client.discover()
        assert client.step(3)["step"] == 3
    pinged = cli("ping", "--step-port", server.port, "--timeout", "30", "--key", str(ada), "--json")
    assert json.loads(pinged.stdout)["ready"] is True
    environment = {**os.environ, "URLAB_KEY": str(ada)}
    assert cli("ops", "--step-port", server.port, "--timeout", "30", env=environment).returncode == 0
    refused = cli("ping", "--step-port", server.port, "--timeout", "1")
    assert (refused.returncode, "lets in clients with a key only" in refused.stderr) == (1, True)
    audit = [json.loads(line) for line in (server.project / "Saved/URLab/audit.jsonl").read_text().splitlines()]
    assert {"connected", "hello"} <= {one["event"] for one in audit if one.get("caller") == "ada"}
    code, said = server.end(signal.SIGTERM)
    assert code == 0
    assert "clients with a key of" in said


def test_streams_and_cameras_come_to_the_holder_of_a_key(serving: Any, keys: Path, new_key: NewKey) -> None:
    eve = new_key(keys, "eve", "observer")
    server = serving("demo", "--keys", str(keys))
    with URLabClient("tcp://127.0.0.1", step_port=int(server.port), step_mode="live", observer=True, key=eve) as client:
        client.discover()
        camera = next(iter(client.articulations["panda"].cameras.values()))
        assert camera.wait_for_frame(timeout_s=60).any()
        while client.latest_state is None:  # it has a connection of its own
            time.sleep(0.01)


def figures(server: Any) -> str:
    with urllib.request.urlopen(f"{server.ready['metrics']}/metrics", timeout=20) as answer:
        return str(answer.read().decode())


def test_a_client_with_a_key_notices_at_once_that_its_server_was_killed(
    serving: Any, arm: str, keys: Path, new_key: NewKey
) -> None:
    ada = new_key(keys, "ada", "driver")
    server = serving(arm, "--keys", str(keys), "--metrics-port", "0")
    port, options = int(server.port), {"step_mode": "direct", "key": ada, "local_model": False}
    with URLabClient("tcp://127.0.0.1", step_port=port, rcv_timeout_ms=60_000, **options) as client:
        client.discover()
        with ThreadPoolExecutor(1) as beside:
            stepping = beside.submit(client.step, 10**9)
            while 'urlab_rpc{what="running_requests"} 1' not in figures(server):
                assert not stepping.done(), "the step's own time limit came first"
            server.process.kill()
            with pytest.raises(URLabRPCError, match="ended before it answered"):
                stepping.result(timeout=20)


@pytest.fixture
def machine() -> Iterator[tuple[list[str], str]]:
    """Another machine: (a prefix for commands that run there, our address as it sees it)."""
    name, link = f"urlab-{os.getpid()}", f"ul{os.getpid() % 100_000}"
    net = f"10.213.{os.getpid() % 250 + 1}"  # of this process: a killed one may have left its own behind
    steps = [
        f"ip netns add {name}",
        f"ip link add {link}a type veth peer name {link}b netns {name}",
        f"ip addr add {net}.1/24 dev {link}a",
        f"ip link set {link}a up",
        f"ip -n {name} addr add {net}.2/24 dev {link}b",
        f"ip -n {name} link set {link}b up",
    ]
    try:
        for step in steps:
            try:
                done = subprocess.run(step.split(), capture_output=True, text=True, check=False)
            except OSError as missing:
                pytest.skip(f"there is no ip command here: {missing}")
            if done.returncode:
                pytest.skip(f"this machine may not have another one inside: {step}: {done.stderr.strip()}")
        yield ["ip", "netns", "exec", name], f"{net}.1"
    finally:
        with contextlib.suppress(OSError):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


TRY_EVERY_PORT = """# preloaded
import contextlib, encodings.idna, json, os, socket, sys, time, zmq
from urlab_client import URLabClient, URLabRPCError
from urlab_client.transports import find_key
from urlab_client.session import client_version
if len(sys.argv) > 4:
    client_version()  # imports what another user may not be able to read
    os.setgroups([])
    os.setuid(int(sys.argv[4]))
ready, key = json.loads(sys.argv[1]), (sys.argv[2] or None)
host = sys.argv[3]
def at(endpoint):
    return f"tcp://{host}:" + endpoint.rpartition(":")[2]
result = {"rpc": "refused", "streams": 0}
try:
    with URLabClient(f"tcp://{host}", step_port=int(ready["step"].rpartition(":")[2]), observer=True, key=key,
                     step_mode="direct", rcv_timeout_ms=ready.get("patience_ms", 1500)) as client:
        client.discover()
        result["rpc"] = "let in"
except URLabRPCError as refused:
    result["reason"] = str(refused)
context, poller = zmq.Context(), zmq.Poller()
found = find_key(key)
for endpoint in (ready["state"], ready["info"], *ready["cameras"].values()):
    one = context.socket(zmq.SUB)
    one.linger = 0
    if found is not None:
        found.secure(one)
    one.subscribe(b"")
    one.connect(at(endpoint))
    poller.register(one, zmq.POLLIN)
until = time.monotonic() + (ready.get("patience_ms", 2000) / 1000 if found else 0.3)
while not result["streams"] and time.monotonic() < until:
    for one, _ in poller.poll(1000 * max(0, until - time.monotonic())):
        result["streams"] += 1
        poller.unregister(one)
sender = context.socket(zmq.PUB)
sender.linger = 0
sender.connect(at(ready["control"]))
for _ in range(20):
    sender.send_multipart([b"panda/control", bytes(12)])
    time.sleep(0.01)
if len(sys.argv) > 4:  # a client that has gone before the server looks at it is not named in the log
    for endpoint in (ready["step"], ready["state"], ready["control"], ready["info"], *ready["cameras"].values()):
        place = host, int(endpoint.rpartition(":")[2])
        with contextlib.suppress(ConnectionError), socket.create_connection(place) as one:
            while one.recv(100):
                pass
print(json.dumps(result))
"""


def elsewhere(prefix: list[str], *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [*prefix, sys.executable, "-c", TRY_EVERY_PORT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network namespace")
def test_another_machine_is_let_in_by_its_key_alone(
    serving: Any, keys: Path, new_key: NewKey, machine: tuple[list[str], str], tmp_path: Path
) -> None:
    prefix, host = machine
    eve = new_key(keys, "eve", "observer")
    stolen = new_key(tmp_path / "other" / "keys", "eve", "admin")
    server = serving("demo", "--host", host, "--keys", str(keys))
    ready = json.dumps(server.ready)
    uninvited = elsewhere(prefix, ready, "", host)
    assert (uninvited["rpc"], uninvited["streams"]) == ("refused", 0)
    assert "lets in clients with a key only" in uninvited["reason"]
    wrong = elsewhere(prefix, ready, str(stolen), host)
    assert (wrong["rpc"], wrong["streams"]) == ("refused", 0)
    invited = elsewhere(prefix, json.dumps({**server.ready, "patience_ms": 20_000}), str(eve), host)
    assert invited["rpc"] == "let in"
    assert invited["streams"] >= 1
    with URLabClient(f"tcp://{host}", step_port=int(server.port), step_mode="direct", observer=True, key=eve) as client:
        client.discover()
        assert client.streams["counters"]["control"]["received"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a network namespace")
def test_another_machine_does_not_reach_a_server_on_loopback(
    serving: Any, arm: str, machine: tuple[list[str], str]
) -> None:
    prefix, host = machine
    server = serving(arm)
    reached = elsewhere(prefix, json.dumps(server.ready), "", host)
    assert (reached["rpc"], reached["streams"]) == ("refused", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_user_of_this_machine_is_refused_at_every_port_and_in_the_log(serving: Any) -> None:
    server = serving("demo")
    refused = elsewhere([], json.dumps(server.ready), "", "127.0.0.1", "65534")
    assert (refused["rpc"], refused["streams"]) == ("refused", 0)
    with URLabClient("tcp://127.0.0.1", step_port=int(server.port), observer=True, step_mode="direct") as client:
        client.discover()
        assert client.streams["counters"]["control"]["received"] == 0
    audit = (server.project / "Saved/URLab/audit.jsonl").read_text()
    said = server.end(signal.SIGTERM)[1]
    endpoints = [server.ready[name] for name in ("step", "state", "control", "info")]
    for endpoint in (*endpoints, *server.ready["cameras"].values()):
        assert any(endpoint in line and "65534" in line and "refused" in line for line in said.splitlines()), endpoint
        assert any(endpoint in line and "65534" in line for line in audit.splitlines()), endpoint


def test_an_unknown_key_file_is_a_clear_error(keys: Path) -> None:
    with pytest.raises(ValueError, match=r"the key .*nothing\.key cannot be read"):
        URLabClient("tcp://127.0.0.1", key=keys / "nothing.key")


@pytest.mark.usefixtures("cold_start")
def test_a_variable_for_the_keys_folder_does_not_disturb_the_hotkeys_of_watch(cli: Any, keys: Path) -> None:
    environment = {**os.environ, "URLAB_KEYS": str(keys)}
    watched = cli("watch", "--step-port", "1", "--timeout", "0.2", "--json", env=environment)
    assert (watched.returncode, "--keys" in watched.stderr) == (1, False)
    assert json.loads(cli("keys", "list", "--json", env=environment).stdout)["folder"] == str(keys)
