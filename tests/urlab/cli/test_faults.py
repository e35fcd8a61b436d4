"""`urlab serve` when it is killed, and when the machine refuses it something: real processes, signals and limits."""

import json
import re
import resource
import signal
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from urlab.recording import read_recording
from urlab.recording.journal import read_journal
from urlab_client import URLabClient, URLabRPCError

PATIENCE_S = 60.0


def client_of(server: Any, **options: Any) -> URLabClient:
    return URLabClient("tcp://127.0.0.1", step_port=int(server.port), local_model=False, **options)


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


def read_until(server: Any, words: str) -> str:
    """What the server says on stderr, up to the line with these words."""
    said = ""
    while words not in said:
        said += (line := server.process.stderr.readline())
        assert line, f"it ended without {words!r}: {said}"
    return said


def saved(server: Any) -> Path:
    return Path(server.project) / "Saved" / "URLab"


def frames_in_journal(server: Any) -> int:
    """How many frames it has; -1 while it is being taken away."""
    try:
        found = [read_journal(entry) for entry in (saved(server) / "Journal").glob("[!.]*")]
    except FileNotFoundError:
        return -1
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
        said = read_until(server, "goes on in memory only")
        with pytest.raises(URLabRPCError, match="File too large") as refused:
            client.recording.save("kept.json")
        assert refused.value.code == "path_not_writable"
        assert client.recording.stop().frame_count == 110
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        path = Path(client.recording.save("kept.json"))
    assert read_recording(path).frame_count == 110
    code, rest = server.end(signal.SIGTERM)
    assert code == 0
    assert "Traceback" not in said + rest


def test_a_thread_that_does_not_turn_is_named_with_its_op_in_the_log_and_in_the_health(serving: Any, arm: str) -> None:
    server = serving(arm, "--step-mode", "direct", "--metrics-port", "0")

    def stalled() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{server.ready['metrics']}/healthz", timeout=PATIENCE_S) as answer:
            found = json.loads(answer.read()).get("stalled", [])
        return [one for one in found if one["thread"] == "urlab-shm-rpc"]  # a busy machine may stall others

    with client_of(server, step_mode="direct", transport="shm") as client, ThreadPoolExecutor(1) as beside:
        client.discover()
        assert stalled() == []
        stepping = beside.submit(client.step, 10**9)
        while not (late := stalled()):
            assert not stepping.done(), "the step's own time limit came first"
        with pytest.raises(URLabRPCError, match="steps ran before the time limit"):
            stepping.result()
    assert late[0]["doing"].startswith("op step, in Engine.")
    said = read_until(server, "thread urlab-shm-rpc turns again, after ")
    (line,) = (line for line in said.splitlines() if "thread urlab-shm-rpc has not turned" in line)
    assert re.search(r"has not turned for [1-9]\d*\.\d s: op step, in Engine\.", line)
    assert stalled() == []


def test_a_gl_that_does_not_exist_costs_a_warning(serving: Any, arm: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    server = serving(arm)
    with client_of(server) as client:
        client.discover()
        assert client.sim.status().state == "ready"
    code, said = server.end(signal.SIGTERM)
    assert code == 0
    assert "MUJOCO_GL=nonsense is none of 0, 1, disable" in said


def limited(server: Any, kind: int, limit: int) -> None:
    resource.prlimit(server.process.pid, kind, (limit, resource.prlimit(server.process.pid, kind)[1]))


def usual(server: Any, kind: int) -> None:
    _, most = resource.prlimit(server.process.pid, kind)
    resource.prlimit(server.process.pid, kind, (most, most))


def descriptors(server: Any) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def address_space(server: Any) -> int:
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[0]) * resource.getpagesize()


SHORTAGES = {
    "descriptors": (resource.RLIMIT_NOFILE, descriptors, 1, "Too many open files|file descriptor"),
    "memory": (resource.RLIMIT_AS, address_space, 1 << 20, "memory|thread"),
}


@pytest.mark.parametrize("what", SHORTAGES)
def test_a_start_without_what_it_needs_fails_with_words_and_the_next_one_works(
    serving: Any, arm: str, what: str
) -> None:
    kind, used, more, words = SHORTAGES[what]
    server = serving(arm, "--step-mode", "direct")
    with client_of(server) as driver, client_of(server, observer=True, camera_streams=False) as observer:
        driver.discover()
        observer.discover()
        limited(server, kind, used(server) + more)
        with pytest.raises(URLabRPCError, match=words):
            driver.sim.start("demo")
        if observer.sim.status().state == "ready":
            driver.step()
        else:
            with pytest.raises(URLabRPCError, match="no simulation is running"):
                driver.step()
        usual(server, kind)
        assert driver.sim.start("demo").is_ready
        assert driver.step(3)["step"] == 3
        assert observer.sim.status().state == "ready"
    code, said = server.end(signal.SIGTERM)
    assert code == 0
    assert "Traceback" not in said


def test_many_cameras_take_a_bounded_number_of_descriptors_and_give_them_back(serving: Any, tmp_path: Path) -> None:
    levels = tmp_path / "project" / "Levels"
    levels.mkdir(parents=True)
    (levels / "eye.xml").write_text(
        '<mujoco model="eye"><worldbody><body><joint name="j"/><geom size=".1"/><camera name="c"/></body></worldbody>'
        "</mujoco>"
    )
    actors = "".join(
        f'[[actors]]\nblueprint = "eye.xml"\nname = "eye{i}"\nlocation = [{i}.0, 0.0, 0.0]\n' for i in range(64)
    )
    (levels / "many.toml").write_text(f'version = 1\nname = "many"\n{actors}')
    server = serving("box", "--step-mode", "direct")
    limited(server, resource.RLIMIT_NOFILE, 256)
    with client_of(server, camera_streams=False) as client:
        client.discover()
        before = descriptors(server)
        for _ in range(2):
            assert client.sim.start("many").is_ready
            assert before < descriptors(server) < 256
            assert client.sim.start("demo").is_ready
            client.sim.stop()
            assert client.sim.start("solo", raise_on_failure=False).state == "compile_failed"
        assert client.sim.start("demo").is_ready
        at_demo = descriptors(server)
        assert client.sim.start("many").is_ready
        assert client.sim.start("demo").is_ready
        wait_until(lambda: descriptors(server) == at_demo)  # ZeroMQ and the guard let go of them on their own threads
    assert "43 of 64 cameras do not stream" in server.end(signal.SIGTERM)[1]
