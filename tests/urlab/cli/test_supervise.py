"""`urlab serve --supervise`: a server that dies comes back, and its clients with it."""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from urlab.child_process import ANY_PORTS
from urlab.cli.supervise import Supervisor
from urlab_client import URLabClient, URLabRPCError
from urlab_client.following import ServerFollower

PATIENCE_S = 60.0


class Supervised:
    """A supervised server, with its ready file."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.ready_file = folder / "ready.json"
        options = [*ANY_PORTS, "--project", str(folder / "project"), "--ready-file", str(self.ready_file)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "urlab", "serve", *arguments, "--supervise", *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.ready = self.wait_for_start()

    def wait_for_start(self, *, after: int = 0) -> dict[str, Any]:
        """The ready file of a server whose pid is not ``after``."""
        found: dict[str, Any] = {}

        def is_up() -> bool:
            assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()
            found.clear()
            with contextlib.suppress(FileNotFoundError):  # a server that starts removes the one of its predecessor
                found.update(json.loads(self.ready_file.read_text() or "{}"))
            return found.get("pid", after) != after

        wait_until(is_up)
        return found

    def kill_server(self) -> None:
        os.kill(self.ready["pid"], signal.SIGKILL)
        self.ready = self.wait_for_start(after=self.ready["pid"])

    def client(self, **options: Any) -> URLabClient:
        port = int(self.ready["step"].rpartition(":")[2])
        return URLabClient("tcp://127.0.0.1", step_port=port, local_model=False, **options)


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def supervised(tmp_path: Path) -> Any:
    started: list[Supervised] = []

    def start(*arguments: str) -> Supervised:
        started.append(Supervised(tmp_path, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize("transport", ["zmq", "shm"])
def test_a_killed_server_is_back_on_its_ports_and_the_client_goes_on(supervised: Any, arm: str, transport: str) -> None:
    server = supervised(arm)
    before = server.ready
    with server.client(step_mode="direct", transport=transport) as client:
        client.discover()
        client.step(10)
        server.kill_server()
        with pytest.raises(URLabRPCError, match=r"discover\(\)"):
            client.step()
        client.discover()
        assert client.step(5)["step"] == 5
        assert list(client.articulations) == ["arm"]
        client.step(5)
    places = ("step", "state", "control", "info", "project")
    assert {name: server.ready[name] for name in places} == {name: before[name] for name in places}
    assert server.ready["pid"] != before["pid"]


def test_it_comes_back_with_the_level_that_was_open(supervised: Any, arm: str) -> None:
    server = supervised(arm)
    with server.client() as client:
        client.discover()
        client.sim.start("demo")
        server.kill_server()
        client.discover()
        assert set(client.articulations) == {"panda", "quadruped"}
        assert client.sim.status().level == "/Game/Levels/demo"
        client.scene.load_level("demo")
        client.scene.spawn_actor("box", actor_id="crate", location=(3.0, 0.0, 1.0))
        client.sim.stop()
        client.sim.start()
        server.kill_server()
        client.discover()
        assert any(one.actor_id == "crate" for one in client.outliner.list_actors()), "edits that were played are there"


@pytest.mark.usefixtures("cold_start")
def test_what_follows_a_server_comes_back_without_help(supervised: Any, arm: str) -> None:
    server = supervised(arm)
    follower = ServerFollower(server.client(observer=True, camera_streams=False, rcv_timeout_ms=20_000))
    follower.poll()
    server.kill_server()

    def answers() -> bool:
        try:
            return follower.poll().state == "ready"
        except URLabRPCError:
            return False

    wait_until(answers)
    assert (follower.handshakes, follower.interruptions) == (2, 1)
    follower.close()


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a command that follows a server; what it returns tells what that has said. It is killed in the end."""
    for name in ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "CYCLONEDDS_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    started: list[subprocess.Popen[bytes]] = []

    def start(server: Supervised, *words: str) -> Callable[[], str]:
        log = tmp_path / f"said{len(started)}"
        command = [sys.executable, "-m", "urlab", *words, "--step-port", server.ready["step"].rpartition(":")[2]]
        with log.open("wb") as said:
            started.append(subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT))
        return log.read_text

    yield start
    for one in started:
        one.kill()
        one.wait()


@pytest.mark.usefixtures("cold_start")  # a server that is back within milliseconds is not missed
def test_watch_and_the_ros_bridge_come_back_with_their_server(supervised: Any, arm: str, follow: Any) -> None:
    pytest.importorskip("urlab.ros2.dds", reason="the bridge needs the extra ros2", exc_type=ImportError)
    server = supervised(arm)
    watch = follow(server, "watch", "--no-cameras", "--seconds", "600", "--timeout", "30")
    bridge = follow(server, "ros2", "--backend", "dds", "--domain", "103")
    wait_until(lambda: " x real time" in watch() and "bridging arm" in bridge())
    server.kill_server()
    wait_until(lambda: " x real time" in watch().partition(" is back")[2] and "the server is back" in bridge())


@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_is_passed_on_and_ends_both_cleanly(
    supervised: Any, arm: str, stop_signal: signal.Signals
) -> None:
    server = supervised(arm)
    server.process.send_signal(stop_signal)
    said = server.process.communicate(timeout=PATIENCE_S)[1]
    assert server.process.returncode == 0
    assert f"{stop_signal.name}: stopping" in said
    assert not server.ready_file.exists()
    assert not is_alive(server.ready["pid"])


def test_when_the_supervisor_is_killed_the_server_ends_too(supervised: Any, arm: str) -> None:
    server = supervised(arm)
    server.process.kill()
    wait_until(lambda: not is_alive(server.ready["pid"]))
    assert not server.ready_file.exists(), "as after SIGTERM"


def test_a_start_that_cannot_work_is_not_repeated(cli: Any) -> None:
    done = cli("serve", "nowhere", "--supervise", *ANY_PORTS)
    assert done.returncode == 2
    assert done.stderr.count("there is no level or model 'nowhere'") == 1


def test_after_too_many_deaths_in_a_row_it_gives_up_and_says_why(tmp_path: Path, caplog: Any) -> None:
    starts = tmp_path / "starts"
    died = f"import os, signal; open({str(starts)!r}, 'a').write('x'); os.kill(os.getpid(), signal.SIGSEGV)"
    supervisor = Supervisor([sys.executable, "-c", died], tmp_path / "ready", tmp_path / "resume", (0.0, 0.01))
    with caplog.at_level(logging.INFO, "urlab"):
        assert supervisor.run() == 1
    assert starts.read_text() == "xxx"
    assert caplog.text.count("the server was ended by SIGSEGV; it is started again in") == 2
    assert "the server was ended by SIGSEGV, 3 times in a row: no more attempts" in caplog.text


def test_a_level_that_kills_the_server_before_it_is_up_is_not_tried_again(tmp_path: Path) -> None:
    resume, seen = tmp_path / "resume", tmp_path / "seen"
    resume.write_text("{}")
    died = (
        f"import os, pathlib, signal; there = pathlib.Path({str(resume)!r}).exists();"
        f"open({str(seen)!r}, 'a').write(f'{{there}} '); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert Supervisor([sys.executable, "-c", died], tmp_path / "ready", resume, (0.0,)).run() == 1
    assert seen.read_text() == "True False "
