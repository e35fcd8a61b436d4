"""`urlab serve` when it is killed, and when the machine refuses it something: real processes, signals and limits."""

import json
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from urlab.recording import read_recording
from urlab.recording.journal import read_journal
from urlab_client import URLabClient, URLabRPCError

PATIENCE_S = 20.0


def client_of(server: Any, **options: Any) -> URLabClient:
    return URLabClient("tcp://127.0.0.1", step_port=int(server.port), local_model=False, **options)


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def saved(server: Any) -> Path:
    return Path(server.project) / "Saved" / "URLab"


def frames_in_journal(server: Any) -> int:
    found = [read_journal(entry) for entry in (saved(server) / "Journal").glob("[!.]*")]
    return sum(one[0].frame_count for one in found if one is not None)


def test_a_killed_server_loses_no_frame_that_is_older_than_a_moment(serving: Any, arm: str) -> None:
    server = serving(arm, "--step-mode", "direct")
    with client_of(server, step_mode="direct") as client:
        client.discover()
        client.recording.start("important")
        client.step(120)
        wait_until(lambda: frames_in_journal(server) == 120)
        server.process.kill()
        server.process.wait()
    again = serving(arm)
    replays = saved(again) / "Replays"
    wait_until(lambda: any(replays.glob("recovered-*.json")) and not list((saved(again) / "Journal").iterdir()))
    (path,) = replays.glob("recovered-*.json")
    recording = read_recording(path)
    assert recording.times.tolist() == pytest.approx([0.002 * step for step in range(1, 121)])
    assert json.loads(path.read_text())["urlab"]["name"] == "important"
    assert f"120 frames are kept as {path}" in " ".join(again.end(signal.SIGTERM)[1].split())


@pytest.mark.parametrize("end", ["save", "stop and save", "clear", "autosave"])
def test_a_recording_that_is_safe_or_not_wanted_leaves_no_journal(serving: Any, arm: str, end: str) -> None:
    server = serving(arm, "--step-mode", "direct")
    with client_of(server, step_mode="direct") as client:
        client.discover()
        client.recording.start("important")
        client.step(50)
        wait_until(lambda: frames_in_journal(server) == 50)
        if end == "stop and save":
            client.recording.stop()
        if end == "clear":
            client.recording.clear()
        elif end != "autosave":
            client.recording.save("kept.json")
        if end != "autosave":
            wait_until(lambda: frames_in_journal(server) == 0)
    assert server.end(signal.SIGTERM)[0] == 0
    assert list((saved(server) / "Journal").iterdir()) == []


def test_a_disk_that_takes_no_more_costs_a_warning_and_neither_step_nor_recording(serving: Any, arm: str) -> None:
    server = serving(arm, "--step-mode", "direct")
    with client_of(server, step_mode="direct") as client:
        client.discover()
        client.recording.start("important")
        client.step(10)
        wait_until(lambda: frames_in_journal(server) == 10)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        assert client.step(100)["step"] == 110
        with pytest.raises(URLabRPCError, match="File too large") as refused:
            client.recording.save("kept.json")
        assert refused.value.code == "path_not_writable"
        assert client.recording.stop().frame_count == 110
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        path = Path(client.recording.save("kept.json"))
    assert read_recording(path).frame_count == 110
    code, said = server.end(signal.SIGTERM)
    assert code == 0
    assert "goes on in memory only" in said
    assert "Traceback" not in said
