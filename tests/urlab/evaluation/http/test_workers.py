"""Worker processes: they die, hang, resume and work side by side."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HOLD = {"action": [0.0] * 7 + [0.04, 0.04], "control_type": "joint_position"}


def _wait_gone(pid: int, limit_s: float = 60.0) -> bool:
    """Whether the process ends in time; one that is dead and not yet collected counts as ended."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):  # it is gone before the file is opened, or before it is read
            return True
        time.sleep(0.02)
    return False


def _timesteps(replies: dict[str, Any]) -> dict[str, int]:
    return {one: reply["obs"]["timestep"] for one, reply in replies.items()}


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory, server: Any) -> Iterator[Any]:
    """A server that waits five seconds for a step: those that do not hang have them too, on a busy machine."""
    made = type(server)(tmp_path_factory.mktemp("impatient"), limits={"step_s": 5.0})
    yield made
    assert made.stop() == 0


def test_a_worker_that_is_killed_comes_back_and_the_other_does_not_notice(server: Any, raw: Any) -> None:
    raw.start("short", "easy")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    (first,) = server.workers()
    raw.pickled("/reset", {"worker_ids": ["0", "1"]})
    raw.pickled("/step_chunk", [{"0": HOLD, "1": HOLD}] * 3)
    os.kill(first, signal.SIGKILL)
    replies = raw.pickled("/step", {"0": HOLD, "1": HOLD})
    assert _timesteps(replies) == {"0": 0, "1": 4}
    assert replies["0"]["obs"]["reset"] is True
    assert replies["0"]["obs"]["episode_id"].endswith("short/000")
    assert replies["0"]["episode_result"] is None
    assert "signal 9" in replies["0"]["warning"]
    assert "warning" not in replies["1"]
    assert _timesteps(raw.pickled("/step", {"0": HOLD, "1": HOLD})) == {"0": 1, "1": 5}
    assert "signal 9" in raw.status()["problems"][0]


def test_a_worker_that_hangs_is_ended_by_the_time_limit(halt: Any, impatient: Any, make_raw: Any) -> None:
    raw = make_raw(impatient.url)
    raw.start("short")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    (worker,) = impatient.workers()
    halt(worker)
    status, detail = raw.refused("/step", {"0": HOLD})
    assert (status, "timed out after 5s" in detail) == (504, True)
    assert _wait_gone(worker)
    reply = raw.pickled("/step", {"0": HOLD})["0"]
    assert (reply["obs"]["timestep"], reply["obs"]["reset"]) == (0, True)
    assert "begins again" in reply["warning"]


def test_an_episode_that_always_hangs_is_given_up_and_told(halt: Any, impatient: Any, make_raw: Any) -> None:
    raw = make_raw(impatient.url)
    raw.start("short", "easy", episodes=1)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    for _ in range(3):
        (worker,) = impatient.workers()
        halt(worker)
        assert raw.refused("/step", {"0": HOLD})[0] == 504
        reply = raw.pickled("/step", {"0": HOLD})["0"]
    assert (reply["obs"]["episode_id"].split("/")[2:], reply["obs"]["timestep"]) == (["easy", "000"], 0)
    assert reply["episode_result"]["termination_reason"] == "worker_failed"
    assert raw.pickled("/step", {"0": HOLD})["0"]["obs"]["timestep"] == 1


def test_what_a_failed_request_did_not_tell_is_told_by_the_next_and_to_no_other_worker(
    halt: Any, impatient: Any, make_raw: Any
) -> None:
    raw = make_raw(impatient.url)
    raw.start("short", "easy")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    (first,) = impatient.workers()
    raw.pickled("/reset", {"worker_ids": ["0", "1"]})
    raw.pickled("/step_chunk", [{"0": HOLD, "1": HOLD}] * 11)
    halt(first)
    assert raw.refused("/step", {"0": HOLD, "1": HOLD})[0] == 504
    for _ in range(2):
        assert raw.pickled("/step", {"0": HOLD})["1"]["episode_result"] is None
    reply = raw.pickled("/step", {"1": HOLD})["1"]
    assert (reply["obs"]["timestep"], reply["obs"]["reset"]) == (0, True)
    assert reply["episode_result"]["seed"] == "001"
    assert raw.pickled("/step", {"1": HOLD})["1"]["obs"]["timestep"] == 1


def test_half_a_request_does_nothing(server: Any, raw: Any) -> None:
    raw.start("short")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    host, _, port = server.url.removeprefix("http://").partition(":")
    steps = []
    for _ in range(4):
        with socket.create_connection((host, int(port))) as half:
            half.sendall(b"POST /reset HTTP/1.1\r\nHost: here\r\nContent-Length: 30\r\n\r\n")
        steps.append(raw.pickled("/step", {"0": HOLD})["0"]["obs"]["timestep"])
    assert steps == [1, 2, 3, 4]


def test_ends_that_take_long_keep_nobody_waiting(halt: Any, make_server: Any, make_raw: Any) -> None:
    """More of them than a pool of threads would have."""
    names = [str(number) for number in range(1, 9)]
    server = make_server(limits={"end_s": 20.0})
    raw = make_raw(server.url)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    (kept,) = server.workers()
    raw.pickled("/reset", {"worker_ids": names})
    for worker in set(server.workers()) - {kept}:
        halt(worker)
    killing = threading.Thread(target=lambda: make_raw(server.url).json("/kill", {"data": {"worker_ids": names}}))
    killing.start()
    while raw.status()["active_workers"] != ["0"]:
        time.sleep(0.01)
    assert raw.pickled("/step_chunk", [{"0": HOLD}] * 12)["obs"]["0"]["episode_result"]["task_name"] == "short"
    assert killing.is_alive()
    for worker in set(server.workers()) - {kept}:
        os.kill(worker, signal.SIGCONT)
    killing.join(30)
    assert not killing.is_alive()


def test_an_episode_that_always_fails_is_given_up_and_the_job_goes_on(server: Any, raw: Any) -> None:
    raw.start("short", "easy", episodes=1)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    for _ in range(3):
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        reply = raw.pickled("/step", {"0": HOLD})["0"]
    assert reply["obs"]["episode_id"].endswith("easy/000")
    result = reply["episode_result"]
    assert (result["task_name"], result["score"], result["termination_reason"]) == ("short", 0.0, "worker_failed")
    assert "is given up" in reply["warning"]
    assert raw.status()["results"] == {"short": 0.0}


def test_workers_end_with_a_server_that_is_killed(make_server: Any, make_raw: Any) -> None:
    server = make_server()
    make_raw(server.url).pickled("/reset", {"worker_ids": ["0", "1"]})
    workers = server.workers()
    assert len(workers) == 2
    server.kill()
    assert all(_wait_gone(one) for one in workers)


def test_a_run_goes_on_where_it_was_killed(make_server: Any, make_raw: Any, tmp_path: Path) -> None:
    first = make_server(run_id="again", results=tmp_path / "kept")
    raw = make_raw(first.url)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.pickled("/step_chunk", [{"0": HOLD}] * 12)
    info = tmp_path / "kept" / "urlab" / "again" / "short" / "000" / "result_info.json"
    while not info.exists():
        time.sleep(0.01)
    raw.pickled("/step_chunk", [{"0": HOLD}] * 3)
    first.kill()
    second = make_server(run_id="again", results=tmp_path / "kept")
    raw = make_raw(second.url)
    assert (raw.status()["completed_episodes"], raw.status()["status"]) == (1, "incomplete")
    first_obs = raw.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]
    assert (first_obs["episode_id"], first_obs["timestep"]) == ("urlab/again/short/001", 0)
    assert json.loads(info.read_text())["termination_reason"] == "step_limit"


def test_two_clients_work_at_the_same_time(server: Any, raw: Any, make_raw: Any) -> None:
    raw.start("short", "easy")
    ends: dict[str, Any] = {}

    def work(worker: str) -> None:
        raw = make_raw(server.url)
        reply = raw.pickled("/reset", {"worker_ids": [worker]})[worker]
        results = []
        while reply["obs"] is not None:
            answer = raw.pickled("/step_chunk", [{worker: HOLD}] * 40)
            assert answer["obs"].keys() == {worker}
            reply = answer["obs"][worker]
            results += [reply["episode_result"]] if reply["episode_result"] else []
        ends[worker] = [(one["task_name"], one["seed"]) for one in results]

    threads = [threading.Thread(target=work, args=(one,)) for one in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ends["a"] + ends["b"]) == [("easy", "000"), ("easy", "001"), ("short", "000"), ("short", "001")]


def test_a_disk_without_room_costs_files_but_no_result(make_server: Any, make_raw: Any) -> None:
    """No file may grow beyond 2 kB: the records do not fit, the result does, and nothing half is left."""
    server = make_server(run_id="full", episodes=1, largest_file=2000)
    raw = make_raw(server.url)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.pickled("/step_chunk", [{"0": HOLD}] * 12)
    reply = raw.pickled("/step_chunk", [{"0": HOLD}] * 150)["obs"]["0"]
    assert (reply["obs"], reply["metric"].keys()) == (None, {"(1/1)short", "(1/1)easy"})
    assert any("cannot write" in problem and "trace.jsonl" in problem for problem in raw.status()["problems"])
    run = server.results / "urlab" / "full"
    assert {path.name for path in (run / "short" / "000").iterdir()} == {"result_info.json"}
    assert json.loads((run / "result.json").read_text()).keys() == {"(1/1)short", "(1/1)easy"}


def _step_in_vain(halt: Any, raw: Any, server: Any, told: list[tuple[int, str]]) -> tuple[int, threading.Thread]:
    """Stop the only worker and step it in a thread; the worker's process, and the thread whose answer is ``told``."""
    raw.pickled("/reset", {"worker_ids": ["0"]})
    (worker,) = server.workers()
    halt(worker)
    thread = threading.Thread(target=lambda: told.append(raw.refused("/step", {"0": HOLD})))
    before = server.log.stat().st_size
    thread.start()
    while "worker 0 carries out 1 actions" not in server.log.read_text()[before:]:
        time.sleep(0.01)
    return worker, thread


def test_a_worker_that_hangs_in_a_step_can_be_killed_and_reset(halt: Any, make_server: Any, make_raw: Any) -> None:
    """Long before the step's time limit."""
    server = make_server(limits={"busy_s": 0.3})
    told: list[tuple[int, str]] = []
    raw = make_raw(server.url)
    worker, thread = _step_in_vain(halt, make_raw(server.url), server, told)
    killing = threading.Thread(target=lambda: make_raw(server.url).json("/kill", {"data": {"worker_ids": ["0"]}}))
    killing.start()
    while raw.status()["active_workers"]:
        time.sleep(0.01)
    reply = raw.pickled("/reset", {"worker_ids": ["0"]})["0"]
    killing.join()
    thread.join()
    assert told == [(400, "worker 0 was ended; reset it to go on")]
    assert _wait_gone(worker)
    assert reply["obs"]["episode_id"].endswith("short/000")
    assert raw.pickled("/step", {"0": HOLD})["0"]["obs"]["timestep"] == 1


def test_a_server_with_a_worker_that_hangs_in_a_step_can_be_stopped(halt: Any, make_server: Any, make_raw: Any) -> None:
    server = make_server(limits={"busy_s": 0.3})
    told: list[tuple[int, str]] = []
    worker, thread = _step_in_vain(halt, make_raw(server.url), server, told)
    assert server.stop() == 0
    thread.join()
    assert told == [(400, "worker 0 was ended; reset it to go on")]
    assert _wait_gone(worker)
    assert "Traceback" not in server.log.read_text()


def test_episodes_leave_no_memory_behind(server: Any, raw: Any) -> None:
    raw.start("short", episodes=60)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    (worker,) = server.workers()

    def used_kb() -> int:
        return int(Path(f"/proc/{worker}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    used = []
    for _ in range(50):
        raw.pickled("/step_chunk", [{"0": HOLD}] * 12)
        used.append(used_kb())
    assert used[-1] - used[9] < 8 << 10


def test_an_unwritable_folder_costs_files_but_no_result(server: Any, raw: Any) -> None:
    run = server.results / "urlab" / "blocked"
    run.mkdir(parents=True)
    (run / "short").write_text("a file where a folder should be")
    raw.start("short", "easy", episodes=1, run_id="blocked")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    result = raw.pickled("/step_chunk", [{"0": HOLD}] * 12)["obs"]["0"]["episode_result"]
    assert (result["task_name"], result["score"]) == ("short", 0.0)
    reply = raw.pickled("/step_chunk", [{"0": HOLD}] * 150)["obs"]["0"]
    assert reply["obs"] is None
    assert reply["metric"].keys() == {"(1/1)short", "(1/1)easy"}
    assert any("cannot write" in problem for problem in raw.status()["problems"])
    assert (run / "easy" / "000" / "result_info.json").exists()
