"""`urlab serve`: starting, stopping, refusing."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from urlab.child_process import ANY_PORTS
from urlab.cli.signals import StopSignals
from urlab.recording import read_recording
from urlab_client import PIEState, URLabClient
from urlab_wire import decode, encode

STOP_LIMIT_S = 60.0
UNPLAYABLE = '<mujoco model="ghost"><worldbody><body><joint/></body></worldbody></mujoco>'


def client_of(server: Any, **options: Any) -> URLabClient:
    return URLabClient("tcp://127.0.0.1", step_port=int(server.port), **options)


def test_the_ready_file_tells_where_everything_is(demo_server: Any) -> None:
    ready = dict(demo_server.ready)
    assert ready.pop("step").startswith("tcp://127.0.0.1:")
    assert ready.pop("project") == str(demo_server.ready_file.parent / "project")
    sockets = [ready.pop(name) for name in ("state", "control", "info")]
    cameras = ready.pop("cameras")
    assert set(cameras) == {"panda/overhead", "panda/wrist", "quadruped/front"}
    assert all(endpoint.startswith("tcp://127.0.0.1:") for endpoint in (*sockets, *cameras.values()))
    assert len({*sockets, *cameras.values(), demo_server.ready["step"]}) == 7
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", ready.pop("web"))
    assert ready == {"pid": demo_server.process.pid, "metrics": None}


@pytest.mark.usefixtures("cold_start")
@pytest.mark.parametrize("stop_signal", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_ends_it_cleanly(stop_signal: signal.Signals, serving: Any, arm: str) -> None:
    server = serving(arm)
    code, said = server.end(stop_signal)
    assert code == 0
    assert f"{stop_signal.name}: stopping" in said
    assert not server.ready_file.exists()


@pytest.mark.usefixtures("cold_start")
def test_the_banner_shows_level_robots_mode_and_endpoint(serving: Any, arm: str) -> None:
    server = serving(arm, "--step-mode", "direct")
    said = server.end(signal.SIGTERM)[1]
    for words in (
        "Untitled  playing",
        "arm  1 joint, 1 actuator",
        "direct, pinned by --step-mode",
        server.ready["step"],
    ):
        assert words in said


def test_a_stop_ends_a_long_step_and_keeps_the_recording(serving: Any, arm: str) -> None:
    server = serving(arm, "--metrics-port", "0")

    def figures() -> str:
        with urllib.request.urlopen(f"{server.ready['metrics']}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    with client_of(server, step_mode="direct") as client:
        client.discover()
        client.recording.start("kept")
        client.step(10)
        asker = zmq.Context.instance().socket(zmq.DEALER)
        asker.connect(server.ready["step"])
        asker.send_multipart([b"", encode({"op": "step", "session_id": client.session_id, "n_steps": 10**9})])
        while 'urlab_rpc{what="running_requests"} 1' not in figures():
            assert not asker.poll(0), "the step's own time limit came first"
        code, _ = server.end(signal.SIGTERM)
        answer = decode(asker.recv_multipart()[1])
        asker.close(linger=0)
    assert (code, answer["op"], answer["code"]) == (0, "error", "shutting_down"), "not the step's own time limit"
    (kept,) = (server.project / "Saved" / "URLab" / "Replays").glob("autosave-*.json")
    assert json.loads(kept.read_text())


def test_closing_its_terminal_keeps_the_recording_and_leaves_no_files(tmp_path: Path, arm: str) -> None:
    ready_file, project = tmp_path / "ready.json", tmp_path / "project"
    command = [sys.executable, "-m", "urlab", "serve", arm, *ANY_PORTS, "--project", str(project)]
    terminal, end = pty.openpty()
    server = subprocess.Popen(
        [*command, "--ready-file", str(ready_file)],
        stdin=end,
        stdout=end,
        stderr=end,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(end)
    try:
        while not ready_file.exists():
            os.read(terminal, 1 << 16)
        port = int(json.loads(ready_file.read_text())["step"].rpartition(":")[2])
        with URLabClient("tcp://127.0.0.1", step_port=port, step_mode="direct", local_model=False) as client:
            client.discover()
            folder = Path(client.shm_session_dir or "")
            client.recording.start("kept")
            client.step(10)
            os.close(terminal)
            assert server.wait(STOP_LIMIT_S) == 0
    finally:
        server.kill()
        server.wait()
    (kept,) = (project / "Saved" / "URLab" / "Replays").glob("autosave-*.json")
    assert len(read_recording(kept).times) == 10
    assert (ready_file.exists(), folder.exists()) == (False, False)


def test_after_a_kill_the_next_server_takes_the_same_port_and_ready_file(
    serving: Any, arm: str, lasting_port: Any
) -> None:
    killed = serving(arm, "--step-port", str(lasting_port()))
    killed.process.kill()
    killed.process.wait()
    assert killed.ready_file.exists()
    again = serving(arm, "--step-port", killed.port)
    assert again.ready["pid"] == again.process.pid
    assert again.port == killed.port


def test_a_taken_port_is_named_with_its_option(cli: Any, demo_server: Any) -> None:
    done = cli("serve", "--step-port", demo_server.port)
    assert done.returncode == 2
    assert f"port {demo_server.port} (--step-port) is in use" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no level or model 'nowhere'; levels: demo; models: aloha, box, floor"),
        (["nowhere.xml"], "nowhere.xml does not exist"),
        (["--host", "0.0.0.0"], "add --insecure if you mean it"),
        (["--step-port", "70000"], "--step-port 70000 is not a port"),
        (["--ready-file", "/nowhere/ready.json"], "--ready-file /nowhere/ready.json: there is no folder /nowhere"),
    ],
)
def test_what_cannot_work_is_refused_with_what_exists(arguments: list[str], message: str, cli: Any) -> None:
    done = cli("serve", "--step-port", "0", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_a_level_that_does_not_compile_keeps_the_server_up(serving: Any, cli: Any, tmp_path: Path) -> None:
    model = tmp_path / "odd [/name]" / "ghost.xml"
    model.parent.mkdir(parents=True)
    model.write_text(UNPLAYABLE)
    server = serving(str(model))
    assert f"{model}: " in cli("ping", "--step-port", server.port, "--timeout", "30").stdout
    with client_of(server, observer=True) as client:
        client.discover()
        status = client.sim.status()
    assert status.state is PIEState.COMPILE_FAILED
    assert "mass and inertia" in status.compile_error
    code, said = server.end(signal.SIGTERM)
    assert code == 0
    assert "mass and inertia" in said
    assert "compile_failed" in said


def test_without_play_it_waits_for_a_client(serving: Any, arm: str) -> None:
    server = serving(arm, "--no-play")
    with client_of(server) as client:
        client.discover()
        assert not client.manager_present
        assert client.sim.start().is_ready
    said = server.end(signal.SIGTERM)[1]
    assert "not playing" in said


@pytest.fixture
def handlers_kept() -> Iterator[None]:
    kept = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers_kept")
def test_a_stop_signal_during_the_start_ends_the_start() -> None:
    reached = False
    with StopSignals() as stop:
        signal.raise_signal(signal.SIGTERM)
        reached = True
    assert not reached
    assert stop.wait() == "SIGTERM"


@pytest.mark.usefixtures("handlers_kept")
def test_a_held_stop_signal_interrupts_nothing_and_is_there_for_wait() -> None:
    with StopSignals() as stop:
        stop.hold()
        signal.raise_signal(signal.SIGINT)
        assert stop.wait() == "SIGINT"


@pytest.mark.usefixtures("handlers_kept")
def test_a_signal_that_nohup_switched_off_stays_off() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with StopSignals():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
