"""What a client is shows in its requests: how its actions are read, how it is answered, whether it is a new one."""

import base64
import http.client
import json
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.evaluation.report import document, read_run
from urlab.evaluation.runs.client import EvalClient, InvalidRequest

HOLD = {"action": [0.0] * 7 + [0.04, 0.04], "control_type": "joint_position"}
STILL = {**HOLD, "is_rel": True}

_numbers = count(2)


class Client:
    """A client on a host of its own (of this machine there are many addresses) with one worker of its own."""

    def __init__(self, raw: Any) -> None:
        number = next(_numbers)
        self.raw, self.worker = raw, f"w{number}"
        here = (f"127.0.0.{number}", 0)
        self.raw.connection = http.client.HTTPConnection(raw.connection.host, raw.connection.port, 60, here)

    def docs(self) -> None:
        assert self.raw.send("GET", "/docs", None, None)[0] == 200

    def announce(self) -> None:
        self.raw.json("/create_workers", {"data": {"worker_ids": [self.worker]}})

    def reset(self) -> Any:
        return self.raw.pickled("/reset", {"worker_ids": [self.worker]})[self.worker]

    def look(self) -> Any:
        return self.raw.pickled("/reset_result", {"worker_ids": [self.worker]})[self.worker]

    def step(self, action: dict[str, Any], times: int = 1) -> Any:
        for _ in range(times):
            reply = self.raw.pickled("/step", {self.worker: action})[self.worker]
        return reply

    def chunk(self, *actions: dict[str, Any]) -> Any:
        return self.raw.pickled("/step_chunk", [{self.worker: one} for one in actions])

    def kill(self) -> None:
        self.raw.json("/kill", {"data": {"worker_ids": [self.worker]}})


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, server: Any) -> Any:
    """A server at which no client has started a job: its own has many episodes of the easy task."""
    folder = tmp_path_factory.mktemp("fresh")
    made = type(server)(folder, episodes=500, run_id="fresh", tasks=[str(folder / "easy.toml")])
    yield made
    made.stop()


@pytest.fixture
def client(fresh: Any, make_raw: Any) -> Iterator[Client]:
    made = Client(make_raw(fresh.url))
    yield made
    made.kill()


def _joints(reply: dict[str, Any]) -> np.ndarray:
    encoded = reply["obs"]["joint_position_state"]
    return np.frombuffer(base64.b64decode(encoded["data"]), dtype=encoded["dtype"])


@pytest.mark.parametrize("sign", ["nothing", "create_workers", "docs and create_workers", "docs by a browser"])
def test_an_action_without_is_rel_is_a_change_for_clients_of_the_first_generation(client: Client, sign: str) -> None:
    if "browser" in sign:
        client.raw.headers = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}
    if "docs" in sign:
        client.docs()
    if "create_workers" in sign:
        client.announce()
    reply = client.reset()
    assert reply["actions_without_is_rel"] == "relative"
    change = {**HOLD, "action": [0.02, *[0.0] * 6, 0.04, 0.04]}
    client.step(change, 5)
    assert _joints(client.step(HOLD, 5))[0] - _joints(reply)[0] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("sign", ["docs", "base_motion", "create_workers and base_motion", "reset_result"])
def test_an_action_without_is_rel_is_absolute_for_later_clients(client: Client, sign: str) -> None:
    """Clients of the second generation announce their workers too: what they send shows what they are."""
    if sign == "docs":
        client.docs()
    if "create_workers" in sign:
        client.announce()
    reply = client.reset()
    assert reply["actions_without_is_rel"] == ("absolute" if sign == "docs" else "relative")
    first = _joints(reply)
    if sign == "reset_result":
        client.look()
    there = {**HOLD, "action": [0.02, *first[1:7].tolist(), 0.04, 0.04]}
    there |= {"base_motion": [0.0] * 3} if "base_motion" in sign else {}
    said = client.step(there).get("warning", "")
    assert ("from here on actions without is_rel are absolute" in said) is ("base_motion" in sign)
    client.step(there, 4)
    moved = _joints(client.step(there, 5))[:7] - first[:7]
    assert moved == pytest.approx([0.02 - first[0], *[0.0] * 6], abs=0.01)


@pytest.mark.parametrize(
    ("sign", "steps"), [("nothing", 110), ("create_workers", 110), ("docs", 60), ("is_rel", 60), ("step_chunk", 60)]
)
def test_the_hold_counter_follows_the_generation(client: Client, sign: str, steps: int) -> None:
    """A sign that comes with an action counts from then on."""
    if sign == "docs":
        client.docs()
    if sign == "create_workers":
        client.announce()
    client.reset()
    if sign == "step_chunk":
        assert client.chunk(*[STILL] * 150)["executed_steps"] == steps
        return
    action, taken = (STILL if sign in ("is_rel", "docs") else HOLD), 0
    while (reply := client.step(action))["episode_result"] is None:
        taken += 1
    assert reply["episode_result"]["termination_reason"] == "success"
    assert taken + 1 == steps


def test_a_command_far_beyond_a_joints_range_is_told_in_the_reply(client: Client, fresh: Any) -> None:
    """As when absolute targets are taken for changes: they add up."""
    first = client.reset()
    absolute = {**HOLD, "action": _joints(first)}
    warnings = [client.step(absolute).get("warning", "") for _ in range(5)]
    assert warnings[0] == ""
    assert "joint4 is commanded to -" in warnings[-1]
    assert "more than half a turn beyond its range of -3.07 to -0.07 rad" in warnings[-1]
    assert "are the actions absolute? Then send is_rel false, or start the server with --absolute" in warnings[-1]
    assert fresh.log.read_text().count("joint4 is commanded") == 1


def test_metric_has_the_shape_of_the_generation_and_marks_what_is_not_complete(server: Any, make_raw: Any) -> None:
    """Three clients of a job of four episodes: the first two run out while the third is still at work."""
    raw = make_raw(server.url)
    raw.start("short", episodes=4)
    last = Client(make_raw(server.url))
    last.announce()
    last.reset()
    metrics = []
    for kind in ("first", "later", "own"):
        if kind == "own":
            with EvalClient(server.url, ("own",)) as own:
                own.reset()
                metrics.append(own.step_chunk([{"own": STILL}] * 12)["own"]["metric"])
            continue
        client = Client(make_raw(server.url))
        if kind == "first":
            client.announce()
        client.reset()
        reply = client.chunk(*[STILL] * 12)["obs"][client.worker]
        metrics.append(reply["metric"])
        client.kill()
    assert metrics[:2] == [None, None]
    assert metrics[2] == {"*(3/4)short": {"score": 0.0, "sr": 0.0}}
    late = Client(make_raw(server.url))
    late.announce()
    assert late.reset()["metric"] == {"*(3/4)short": 0.0}
    late.kill()
    assert late.reset()["metric"] == {"*(3/4)short": {"score": 0.0, "sr": 0.0}}
    assert last.chunk(*[HOLD] * 12)["obs"][last.worker]["metric"] == {"short": 0.0}
    assert late.look()["metric"] == {"(4/4)short": {"score": 0.0, "sr": 0.0}}


def test_clients_that_choose_a_task_with_load_config_get_rates_and_absolute_actions(server: Any, make_raw: Any) -> None:
    client = Client(make_raw(server.url))
    client.raw.json("/load_config", {"data": {"config_path": "configs/tasks/short.yml"}})
    client.announce()
    assert client.reset()["actions_without_is_rel"] == "absolute"
    for _ in range(2):
        reply = client.chunk(*[STILL] * 12)["obs"][client.worker]
    assert (reply["obs"], reply["metric"]) == (None, {"short": 0.0})


@pytest.mark.parametrize(("flag", "meaning"), [("absolute", "absolute"), ("relative", "relative")])
def test_an_option_of_the_server_decides_for_all_clients(
    make_server: Any, make_raw: Any, flag: str, meaning: str
) -> None:
    server = make_server(**{flag: True})
    first, later = Client(make_raw(server.url)), Client(make_raw(server.url))
    first.announce()
    later.docs()
    assert {one.reset()["actions_without_is_rel"] for one in (first, later)} == {meaning}
    with EvalClient(server.url) as own:
        assert own.reset()["0"]["actions_without_is_rel"] == meaning


@pytest.fixture
def single(make_server: Any, tmp_path: Path) -> Any:
    """A server whose own job is one short episode."""
    return make_server(episodes=1, run_id="mine", tasks=[str(tmp_path / "server0" / "short.toml")])


@pytest.mark.parametrize("kind", ["announces", "looks at docs", "shows nothing"])
def test_a_client_that_comes_after_the_end_gets_a_new_run_and_is_told(single: Any, make_raw: Any, kind: str) -> None:
    def come() -> Client:
        client = Client(make_raw(single.url))
        client.worker = "0"
        if kind == "announces":
            client.announce()
        if kind == "looks at docs":
            client.docs()
        return client

    first = come()
    assert "warning" not in first.reset()
    assert first.chunk(*[STILL] * 12)["obs"]["0"]["obs"] is None
    if kind != "announces":
        first.kill()
    second = come()
    reply = second.reset()
    assert reply["obs"]["episode_id"] == "urlab/mine-2/short/000"
    assert "run mine is complete and keeps its results: this client begins a new one, run mine-2" in reply["warning"]
    assert "run mine is complete; a new client begins run mine-2" in single.log.read_text()
    assert second.chunk(*[STILL] * 12)["obs"]["0"]["metric"] is not None
    folder = single.results / "urlab"
    assert all((folder / run / "short" / "000" / "result_info.json").exists() for run in ("mine", "mine-2"))


def test_a_client_that_asks_again_for_its_results_gets_them_and_no_new_run(single: Any, make_raw: Any) -> None:
    client = Client(make_raw(single.url))
    client.docs()
    client.reset()
    done = client.chunk(*[STILL] * 12)["obs"][client.worker]
    for again in (client.step(STILL), client.look(), client.reset()):
        assert (again["obs"], again["metric"]) == (None, done["metric"])
    assert "run mine is complete: nothing is left to run" in client.reset()["warning"]
    assert client.raw.status()["run_id"] == "mine"


def test_a_client_of_the_same_run_that_comes_too_late_begins_no_new_one(single: Any, make_raw: Any) -> None:
    quick, late, ours = (Client(make_raw(single.url)) for _ in range(3))
    quick.docs()
    late.docs()
    quick.reset()
    quick.chunk(*[STILL] * 12)
    reply = late.reset()
    assert (reply["obs"], reply["metric"].keys()) == (None, {"(1/1)short"})
    with EvalClient(single.url, (ours.worker,), run_id="mine") as own:
        assert own.reset()[ours.worker]["obs"] is None
    with EvalClient(single.url, (ours.worker,), run_id="gone") as own, pytest.raises(InvalidRequest, match="'mine'"):
        own.reset()
    assert late.raw.status()["run_id"] == "mine"


def test_a_job_that_a_client_started_is_not_run_again_unasked(server: Any, make_raw: Any) -> None:
    client = Client(make_raw(server.url))
    client.raw.start("short", episodes=1, run_id="asked for")
    assert client.reset()["actions_without_is_rel"] == "absolute", "earlier generations start no jobs"
    client.chunk(*[STILL] * 12)
    client.kill()
    client.docs()
    reply = client.reset()
    assert (reply["obs"], reply["metric"].keys()) == (None, {"(1/1)short"})
    assert "these are its results: nothing was run for this client" in reply["warning"]


def test_tasks_of_several_robots_are_a_job_for_each_with_the_panda_first(make_server: Any, make_raw: Any) -> None:
    tasks = ["aloha_lift_tray", "robotiq_tower", "panda_cube_on_plate"]
    raw = make_raw(make_server(tasks=tasks, run_id="three", episodes=1).url)
    assert raw.status()["run_id"] == "three-franka_panda"
    assert raw.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]["robot_id"] == "manip/franka/panda_hand"
    assert raw.status()["total_episodes"] == 1


def test_attempts_that_came_to_nothing_are_recorded_and_counted(server: Any, raw: Any) -> None:
    raw.start("short", episodes=1, run_id="retried")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.pickled("/reset", {"worker_ids": ["0"]})
    for steps in (3, 5):
        raw.pickled("/step_chunk", [{"0": STILL}] * steps)
        raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.pickled("/step_chunk", [{"0": STILL}] * 4)
    (worker,) = server.workers()
    os.kill(worker, signal.SIGKILL)
    raw.pickled("/step", {"0": STILL})
    raw.pickled("/step", {"0": STILL})
    raw.json("/kill", {"data": {"worker_ids": ["0"]}})
    raw.start("short", episodes=1, run_id="retried")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    reply = raw.pickled("/step_chunk", [{"0": STILL}] * 12)["obs"]["0"]
    assert reply["episode_result"]["attempts"] == 5
    folder = server.results / "urlab" / "retried"
    info = json.loads((folder / "short" / "000" / "result_info.json").read_text())
    assert info["attempts"] == 5
    assert info["retries"] == {"resets": 2, "kills": 1, "worker_deaths": 1, "steps": 13}
    rows = [json.loads(line) for line in (folder / "attempts.jsonl").read_text().splitlines()]
    assert [(row["ended_by"], row["steps"]) for row in rows] == [
        *[("reset", 3), ("reset", 5), ("worker_death", 4), ("kill", 1)]
    ]
    told = document([read_run(folder)])["runs"][0]
    assert told["episodes"][0]["retries"] == info["retries"]
    assert told["overall"]["retries"] == info["retries"]


def test_an_episode_that_is_given_up_has_a_result_file(server: Any, raw: Any) -> None:
    raw.start("short", "easy", episodes=1, run_id="deadly")
    raw.pickled("/reset", {"worker_ids": ["0"]})
    for _ in range(3):
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)
        raw.pickled("/step", {"0": STILL})
    (episode,) = read_run(server.results / "urlab" / "deadly").episodes
    assert (episode.task, episode.reason, episode.score, episode.attempts) == ("short", "worker_failed", 0.0, 3)
    assert episode.detail is not None
    assert "signal 9" in episode.detail
    raw.start("short", "easy", episodes=1, run_id="deadly")
    assert raw.status()["completed_episodes"] == 1


def test_an_episode_that_its_policy_gave_up_has_failed_and_the_next_one_begins(server: Any, raw: Any) -> None:
    raw.start("short", episodes=2, run_id="given up")
    raw.json("/reset", {"worker_ids": ["0"]})
    raw.json("/step", {"0": STILL})
    reply = raw.json("/give_up", {"worker_ids": ["0"], "reason": "CUDA out of memory"})["0"]
    result = reply["episode_result"]
    assert (result["termination_reason"], result["score"], result["steps"]) == ("policy_failed", 0.0, 1)
    assert (reply["obs"]["episode_id"], reply["obs"]["timestep"]) == ("urlab/given up/short/001", 0)
    status, detail = raw.refused("/give_up", b'{"worker_ids": ["0"]}', "application/json")
    assert (status, "reason" in detail) == (400, True)
    raw.json("/kill", {"data": {"worker_ids": ["0"]}})
    (episode,) = read_run(server.results / "urlab" / "given up").episodes
    assert (episode.reason, episode.detail, episode.steps) == ("policy_failed", "CUDA out of memory", 1)
    assert (server.results / "urlab" / "given up" / "short" / "000" / "trace.jsonl").exists()
