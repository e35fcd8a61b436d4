"""Shared memory of a server process: what it says, what it leaves, and how it goes on without."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from urlab.child_process import ANY_PORTS
from urlab_client import URLabClient

SERVE = [sys.executable, "-m", "urlab", "serve", *ANY_PORTS]


def connect(server: Any) -> URLabClient:
    return URLabClient("tcp://127.0.0.1", step_port=int(server.port), transport="shm", step_mode="direct")


def test_the_folder_is_told_and_gone_after_the_end(serving: Any, arm: str) -> None:
    server = serving(arm)
    with connect(server) as client:
        client.discover()
        folder = Path(client.shm_session_dir or "")
    assert (folder / "req.shm").exists()
    code, said = server.end(signal.SIGTERM)
    assert code == 0
    assert str(folder) in said
    assert not folder.exists()


def test_without_it_clients_use_zeromq(serving: Any, arm: str, caplog: pytest.LogCaptureFixture) -> None:
    server = serving(arm, "--no-shm")
    with connect(server) as client:
        client.discover()
        client.step()
    assert "ZeroMQ instead" in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a tmpfs")
@pytest.mark.parametrize(
    ("size", "complaint"),
    [("1m", "no shared memory, clients use ZeroMQ: /dev/shm is full"), ("7m", "replies with pictures will go over")],
)
def test_a_small_tmpfs_is_told_and_the_server_serves(size: str, complaint: str, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = (
        f"mount -t tmpfs -o size={size} tmpfs /dev/shm || exit 77\n"
        f"exec {' '.join(SERVE)} panda --project {tmp_path} --ready-file {ready}"
    )
    with subprocess.Popen(["unshare", "-m", "sh", "-c", script], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while complaint not in said and (line := process.stderr.readline()):
            said += line
        while not ready.exists() and process.poll() is None:
            time.sleep(0.01)
        if process.poll() == 77:
            pytest.skip("no tmpfs can be mounted here")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert complaint in said
    assert process.returncode == 0
