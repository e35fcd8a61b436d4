"""The flows of GenManip's clients, from the first request to the last."""

import base64
import json
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import pytest

from urlab.evaluation.http.service import StockClients


class RawClient(Protocol):
    """What `raw` gives; see conftest.py."""

    prefix: str
    headers: dict[str, str]

    def send(self, method: str, path: str, body: bytes | None, content_type: str | None) -> tuple[int, bytes]: ...
    def pickled(self, path: str, value: Any, *, protocol: int = 5) -> Any: ...
    def json(self, path: str, value: Any) -> Any: ...
    def status(self, query: str = "") -> dict[str, Any]: ...
    def start(self, *tasks: str, **more: Any) -> None: ...


HOLD = {"action": [0.0] * 7 + [0.04, 0.04], "control_type": "joint_position"}
EE = {"action": (np.zeros(3), (1.0, 0.0, 0.0, 0.0), [0.04, 0.04]), "control_type": "ee_pose"}

P2_KEYS = {"camera_data", "instruction", "joint_position_state", "ee_pose_state", "timestep", "reset"}
P4_KEYS = {"state.joints", "state.gripper", "state.base", "state.ee_pose", "episode_id", "robot_id"}
OUR_KEYS = {"state.base_pose", "state.ee_tcp_offset"}


def _array(encoded: dict[str, Any]) -> np.ndarray:
    """As the clients decode it."""
    assert encoded["type"] == "numpy_array"
    raw = base64.b64decode(encoded["data"])
    return np.frombuffer(raw, dtype=encoded["dtype"]).reshape(encoded["shape"])


def _only_builtins(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _only_builtins(one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return all(map(_only_builtins, value))
    return value is None or type(value) in (str, int, float, bool)


def test_the_first_generation_runs_its_job_to_the_end(raw: RawClient) -> None:
    """create_workers, reset, steps until every metric is there, kill."""
    raw.start("short")
    assert raw.json("/create_workers", {"data": {"worker_ids": ["0", "1"]}}) == {"data": {"success": True}}
    replies = raw.pickled("/reset", {"worker_ids": ["0", "1"]})
    assert set(replies) == {"0", "1"}
    assert {reply["obs"]["episode_id"].rpartition("/")[2] for reply in replies.values()} == {"000", "001"}
    steps = 0
    while not all(reply["metric"] is not None for reply in replies.values()):
        assert all(reply["obs"]["timestep"] == steps for reply in replies.values())
        assert all(reply["obs"]["reset"] is (steps == 0) for reply in replies.values())
        assert replies.keys() == {"0", "1"}
        assert _only_builtins(replies)
        replies = raw.pickled("/step", {"0": HOLD, "1": EE})
        steps += 1
    assert steps == 12
    assert [replies[one]["obs"] for one in "01"] == [None, None]
    assert [replies[one]["metric"] for one in "01"] == [{"short": 0.0}] * 2
    assert raw.pickled("/step", {"0": HOLD, "1": HOLD})["0"]["obs"] is None
    assert raw.json("/kill", {"data": {"worker_ids": ["0", "1"]}}) == {"data": {"success": True}}
    assert raw.status()["status"] == "complete"


def test_an_observation_has_the_keys_of_both_generations(raw: RawClient) -> None:
    raw.start("short")
    observation = raw.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]
    assert observation.keys() == P2_KEYS | P4_KEYS | OUR_KEYS
    assert observation["camera_data"] == {}
    assert observation["instruction"] == "Put the grey cube on the grey plate."
    joints = _array(observation["joint_position_state"])
    assert joints.shape == (9,)
    assert np.array_equal(_array(observation["state.joints"]), joints[:7])
    assert np.array_equal(_array(observation["state.gripper"]), joints[7:])
    position, quat = map(_array, observation["ee_pose_state"])
    assert (position.shape, quat.shape) == ((3,), (4,))


def test_a_later_generation_runs_its_job_to_the_end(raw: RawClient) -> None:
    """docs, reset, steps and chunks until every obs is None and every metric is there, kill."""
    raw.start("short", run_id="later")
    assert raw.send("GET", "/docs", None, None)[0] == 200
    replies = raw.pickled("/reset", {"worker_ids": ["0"]})
    ended = []
    while not (replies["0"]["metric"] is not None and replies["0"]["obs"] is None):
        assert "reset_pending" not in replies["0"]
        answer = raw.pickled("/step_chunk?subframes=2&render_suffix=2&render_mode=lite", [{"0": HOLD}] * 5)
        replies = answer["obs"]
        ended += [(replies["0"]["episode_result"], answer["executed_steps"], answer["stopped_early"])]
    results = [result for result, _, _ in ended if result]
    assert [executed for _, executed, _ in ended] == [5, 5, 2, 5, 5, 2]
    assert [early for _, _, early in ended] == [False, False, True] * 2
    assert results == [
        {
            "episode_id": f"urlab/later/short/00{seed}",
            "task_name": "short",
            "seed": f"00{seed}",
            "score": 0.0,
            "sr": 0.0,
            "termination_reason": "step_limit",
            "steps": 12,
            "attempts": 1,
        }
        for seed in range(2)
    ]
    assert raw.json("/kill", {"data": {"worker_ids": ["0"]}}) == {"data": {"success": True}}


@pytest.mark.parametrize(
    ("generation", "steps", "metric"),
    [("first", 110, {"easy": 1.0}), ("later", 60, {"(1/1)easy": {"score": 1.0, "sr": 1.0}})],
)
def test_a_goal_must_hold_longer_for_the_first_generation(
    raw: RawClient, generation: str, steps: int, metric: dict[str, Any]
) -> None:
    raw.start("easy", episodes=1)
    if generation == "first":
        raw.json("/create_workers", {"data": {"worker_ids": ["0"]}})
    reply, taken = raw.pickled("/reset", {"worker_ids": ["0"]})["0"], 0
    while reply["obs"] is not None:
        reply, taken = raw.pickled("/step", {"0": HOLD})["0"], taken + 1
    assert taken == steps
    assert reply["episode_result"]["termination_reason"] == "success"
    assert reply["metric"] == metric
    raw.json("/kill", {"data": {"worker_ids": ["0"]}})


def test_a_chunk_with_a_worker_that_is_done_is_carried_out_for_the_other(raw: RawClient) -> None:
    raw.start("short", episodes=2)
    raw.pickled("/reset", {"worker_ids": ["0", "1"]})
    raw.pickled("/step_chunk", [{"0": HOLD}] * 12)
    answer = raw.pickled("/step_chunk", [{"0": HOLD, "1": HOLD}] * 5)
    assert (answer["executed_steps"], answer["stopped_early"]) == (5, False)
    assert answer["obs"]["1"]["obs"]["timestep"] == 5
    answer = raw.pickled("/step_chunk", [{"0": HOLD, "1": HOLD}] * 7)
    assert (answer["executed_steps"], answer["stopped_early"]) == (7, False)
    assert all(reply["metric"] is not None and reply["obs"] is None for reply in answer["obs"].values())


def test_a_client_goes_on_until_the_last_of_its_workers_is_done(raw: RawClient) -> None:
    """Stock clients stop when their first worker has no observation: it gets one for as long as another is busy."""
    raw.start("short", episodes=3, run_id="odd")
    replies = raw.pickled("/reset", {"worker_ids": ["0", "1"]})
    told: dict[str, list[Any]] = {"0": [], "1": []}
    while not all(reply["metric"] is not None for reply in replies.values()):
        assert all(reply["obs"] is not None for reply in replies.values())
        replies = raw.pickled("/step", {"0": HOLD, "1": HOLD})
        for one, reply in replies.items():
            told[one].append((reply["obs"] and (reply["obs"]["episode_id"], reply["obs"]["reset"]), reply["metric"]))
    waiting, busy = sorted("01", key=lambda one: "waiting" not in str(told[one]))
    assert told[waiting][11:23] == [((f"urlab/odd/waiting/{waiting}", step == 0), None) for step in range(12)]
    assert told[busy][11:23] == [(("urlab/odd/short/002", step == 0), None) for step in range(12)]
    assert told["0"][23:] == told["1"][23:] == [(None, {"(3/3)short": {"score": 0.0, "sr": 0.0}})]
    assert raw.status()["status"] == "complete"


def test_a_worker_that_waits_stays_with_the_robot_that_it_is_shown() -> None:
    clients = StockClients()
    seen = {one: {"obs": {"episode_id": one, "reset": False, "timestep": 7}, "episode_result": None} for one in "abc"}
    idle = {"obs": None, "episode_result": None, "metric": {}}

    def shown(*busy: str) -> tuple[Any, Any]:
        replies = {one: seen[one] if one in busy else idle for one in "abc"} | {"w": idle}
        told = clients.fill_idle({one: {**reply} for one, reply in replies.items()}, "run")["w"]
        return told["obs"] and (told["obs"]["reset"], told["obs"]["timestep"]), told["metric"]

    assert shown("b", "c") == ((True, 7), None)
    assert shown("a", "b", "c") == ((False, 7), None)
    assert shown("a", "c") == ((True, 7), None)
    seen["a"]["obs"] |= {"reset": True, "timestep": 0}
    assert shown("a") == ((True, 0), None)
    assert shown() == (None, {})


def test_a_worker_without_any_episode_waits_from_the_start(raw: RawClient) -> None:
    raw.start("short", episodes=1)
    replies = raw.pickled("/reset", {"worker_ids": ["0", "1"]})
    assert [replies[one]["obs"]["reset"] for one in "01"] == [True, True]
    assert {reply["obs"]["episode_id"].rsplit("/", 2)[1] for reply in replies.values()} == {"short", "waiting"}
    shown = raw.pickled("/reset_result", {"worker_ids": ["0", "1"]})
    assert all(reply["obs"] is not None and reply["metric"] is None for reply in shown.values())
    replies = raw.pickled("/step_chunk", [{"0": HOLD, "1": HOLD}] * 12)["obs"]
    assert all(reply["obs"] is None and reply["metric"] is not None for reply in replies.values())


def test_an_empty_body_resets_a_first_worker(raw: RawClient) -> None:
    raw.start("short")
    status, _ = raw.send("POST", "/reset", b"", "application/octet-stream")
    assert status == 200
    assert raw.status()["active_workers"] == ["0"]


_MOVE = ([0.001, 0.001, 0.001], [1.0, 0.0, 0.0, 0.0])
_ROBOTS = {
    "panda_cube_on_plate": ([0.0] * 9, (*_MOVE, [0.04, 0.04]), 9),
    "robotiq_tower": ([0] * 13, (*_MOVE, [0.7853, 0.7853, -0.7853, -0.7853, -0.7853, -0.7853]), 13),
    "aloha_lift_tray": ([*[0.0] * 6, 0.05, 0.05] * 2, ((*_MOVE, [0.05, 0.05]), (*_MOVE, [0.05, 0.05])), 16),
}


@pytest.mark.parametrize("task", _ROBOTS)
def test_every_robot_takes_both_kinds_of_action_as_stock_clients_send_them(raw: RawClient, task: str) -> None:
    joints, ee_pose, length = _ROBOTS[task]
    more = {"base_motion": [0.0, 0.0, 0.0], "is_rel": True}
    by_joints = {"action": joints, "control_type": "joint_position", **more}
    by_pose = {"action": ee_pose, "control_type": "ee_pose", **more}
    raw.start(task, episodes=1)
    assert raw.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]["reset"] is True
    for step, action in enumerate((by_joints, by_pose), start=1):
        assert raw.pickled("/step", {"0": action})["0"]["obs"]["timestep"] == step
    observation = raw.pickled("/step_chunk", [{"0": by_pose}, {"0": by_joints}])["obs"]["0"]["obs"]
    assert (observation["timestep"], observation["joint_position_state"]["shape"]) == (4, (length,))
    arms = observation["ee_pose_state"] if length == 16 else [observation["ee_pose_state"]]
    assert [[len(_array(part)) for part in arm] for arm in arms] == [[3, 4]] * len(arms)


def test_another_job_forgets_who_announced_workers(raw: RawClient) -> None:
    raw.json("/create_workers", {"data": {"worker_ids": ["0"]}})
    raw.start("easy", episodes=1)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    assert raw.pickled("/step_chunk", [{"0": HOLD}] * 150)["executed_steps"] == 60


def test_workers_announced_after_load_config_are_not_of_the_first_generation(raw: RawClient) -> None:
    raw.json("/kill", {"data": {"worker_ids": ["0"]}})
    raw.json("/load_config", {"data": {"config_path": "easy"}})
    raw.json("/create_workers", {"data": {"worker_ids": ["0"]}})
    raw.pickled("/reset", {"worker_ids": ["0"]})
    assert raw.pickled("/step_chunk", [{"0": HOLD}] * 150)["executed_steps"] == 60


def test_a_job_of_the_same_name_goes_on_with_what_was_just_finished(raw: RawClient) -> None:
    raw.start("short", run_id="same", episodes=3)
    for done in (1, 2, 3):
        assert raw.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]["timestep"] == 0
        raw.pickled("/step_chunk", [{"0": HOLD}] * 12)
        raw.start("short", run_id="same", episodes=3)
        assert raw.status()["completed_episodes"] == done
    reply = raw.pickled("/reset", {"worker_ids": ["0"]})["0"]
    assert (reply["obs"], reply["metric"]) == (None, {"(3/3)short": {"score": 0.0, "sr": 0.0}})


def test_an_absolute_server_takes_actions_without_a_flag_as_they_are(make_server: Any, make_raw: Any) -> None:
    client = make_raw(make_server(absolute=True).url)
    first = _array(client.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]["joint_position_state"])
    there = {"0": {**HOLD, "action": first + np.array([0.1, *[0.0] * 8], np.float32)}}
    client.pickled("/step_chunk", [there] * 4)
    change = {"0": {**HOLD, "action": [0.05, *[0.0] * 6, 0.04, 0.04], "is_rel": True}}
    still = {"0": {**HOLD, "is_rel": True}}
    reply = client.pickled("/step_chunk", [change, *[still] * 6])["obs"]["0"]["obs"]
    moved = _array(reply["joint_position_state"]) - first
    assert moved[:7] == pytest.approx([0.15, *[0.0] * 6], abs=0.01)


def test_status_counts_and_the_files_say_the_same(raw: RawClient, server: Any) -> None:
    raw.start("short", run_id="counted/one")
    assert raw.status() == {
        "status": "idle",
        "benchmark_id": "urlab",
        "run_id": "counted/one",
        "total_episodes": 2,
        "completed_episodes": 0,
        "solved_episodes": 0,
        "in_progress_episodes": 0,
        "active_workers": [],
        "results": {},
        "problems": [],
    }
    raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.pickled("/step_chunk", [{"0": HOLD}] * 12)
    told = raw.status("?refresh=1")
    assert (told["status"], told["completed_episodes"], told["in_progress_episodes"]) == ("running", 1, 1)
    assert told["results"] == {"short": 0.0}
    run = Path(server.results) / "urlab" / "counted" / "one"
    assert json.loads((run / "progress.json").read_text()) == {"*(1/2)short": {"score": 0.0, "sr": 0.0}}
    raw.pickled("/step_chunk", [{"0": HOLD}] * 12)
    assert json.loads((run / "result.json").read_text()) == {"(2/2)short": {"score": 0.0, "sr": 0.0}}
    assert not (run / "progress.json").exists()
    raw.json("/kill", {"data": {"worker_ids": ["0"]}})
    assert raw.status()["status"] == "complete"


def test_load_config_is_a_job_of_one_task(raw: RawClient) -> None:
    assert raw.json("/load_config", {"data": {"config_path": "configs/tasks/easy.yml"}}) == {"data": {"success": True}}
    assert raw.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]["episode_id"].split("/")[2] == "easy"


@pytest.fixture
def stepping(raw: RawClient) -> RawClient:
    """A client of a job with many short episodes: tests that only reset and step share its worker's process."""
    if raw.status()["run_id"] != "many":
        raw.start("short", episodes=500, run_id="many")
    return raw


def test_reset_result_shows_where_the_workers_are(stepping: RawClient) -> None:
    stepping.pickled("/reset", {"worker_ids": ["0"]})
    stepped = stepping.pickled("/step", {"0": HOLD})
    assert stepping.pickled("/reset_result", {"worker_ids": ["0"]}) == stepped


def test_the_last_observation_of_an_episode_is_there_for_the_asking(stepping: RawClient) -> None:
    stepping.pickled("/reset", {"worker_ids": ["0"]})
    result = stepping.pickled("/step_chunk?terminal=1", [{"0": HOLD}] * 12)["obs"]["0"]["episode_result"]
    assert result["terminal_obs"]["timestep"] == 12
    assert result["terminal_obs"]["reset"] is False


def test_the_flag_of_an_action_is_honoured(stepping: RawClient) -> None:
    first = _array(stepping.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]["joint_position_state"])
    still = {"0": {**HOLD, "is_rel": True}}
    change = {"0": {**still["0"], "action": np.array([0.02, *[0.0] * 6, 0.04, 0.04], dtype=np.float32)}}
    moved = stepping.pickled("/step_chunk", [*[change] * 5, *[still] * 5])["obs"]["0"]["obs"]
    assert _array(moved["joint_position_state"])[0] - first[0] == pytest.approx(0.1, abs=0.01)
    stepping.pickled("/reset", {"worker_ids": ["0"]})
    absolute = {"0": {**HOLD, "action": tuple(map(float, first)), "is_rel": False}}
    there = stepping.pickled("/step_chunk", [absolute] * 8)["obs"]["0"]["obs"]
    assert _array(there["joint_position_state"])[:7] == pytest.approx(first[:7], abs=2e-3)


def test_ee_poses_come_as_tuples_of_any_sequence(stepping: RawClient) -> None:
    """As stock clients send them: tuples of lists, of arrays, of tuples."""
    first = stepping.pickled("/reset", {"worker_ids": ["0"]})["0"]["obs"]
    position, quat, grip = [0.0, 0.0, -0.002], [1.0, 0.0, 0.0, 0.0], [0.04, 0.04]
    forms = [
        (position, quat, grip),
        (np.array(position), np.array(quat, np.float32), np.array(grip)),
        [tuple(position), tuple(quat), tuple(grip)],
    ]
    for form in forms * 2:
        action = {"action": form, "base_motion": [0.0] * 3, "control_type": "ee_pose", "is_rel": True}
        stepping.pickled("/step", {"0": action})
    reply = stepping.pickled("/step_chunk", [{"0": {**EE, "is_rel": True}}] * 5)["obs"]["0"]
    moved = _array(reply["obs"]["ee_pose_state"][0]) - _array(first["ee_pose_state"][0])
    assert moved == pytest.approx([0.0, 0.0, -0.012], abs=2e-3)


def test_a_connection_for_every_request_will_do(stepping: RawClient) -> None:
    """As ``requests.post`` makes them."""
    stepping.headers = {"Connection": "close"}
    stepping.pickled("/reset", {"worker_ids": ["0"]})
    for step in (1, 2, 3):
        assert stepping.pickled("/step", {"0": HOLD})["0"]["obs"]["timestep"] == step


def test_headers_queries_and_prefixes_of_hosted_services_are_accepted(stepping: RawClient) -> None:
    stepping.prefix, stepping.headers = "/some/prefix", {"run_id": "task-7", "Authorization": "Bearer whatever"}
    assert stepping.send("GET", "/docs", None, None)[0] == 200
    replies = stepping.pickled("/reset?run_id=task-7", {"worker_ids": ["0"]})
    assert stepping.pickled("/step?run_id=task-7", {"0": HOLD}).keys() == replies.keys()


def test_json_and_msgpack_are_answered_in_kind(stepping: RawClient) -> None:
    stepping.json("/reset", {"worker_ids": ["0"]})
    by_json = stepping.json("/step", {"0": HOLD})
    assert by_json.keys() == {"0"}
    status, body = stepping.send(
        "POST", "/reset_result", msgspec.msgpack.encode({"worker_ids": ["0"]}), "application/msgpack"
    )
    assert status == 200
    assert msgspec.msgpack.decode(body)["0"]["obs"] == by_json["0"]["obs"]
    status, body = stepping.send("POST", "/step", msgspec.msgpack.encode({"0": HOLD}), "application/msgpack")
    packed = msgspec.msgpack.decode(body)["0"]["obs"]
    assert isinstance(packed["joint_position_state"]["data"], bytes)
    unpickled = stepping.pickled("/reset_result", {"worker_ids": ["0"]})["0"]["obs"]
    assert _array(unpickled["joint_position_state"]).tobytes() == packed["joint_position_state"]["data"]


def test_a_reply_to_some_workers_has_all_that_were_reset_together(stepping: RawClient) -> None:
    stepping.pickled("/reset", {"worker_ids": ["0", "1"]})
    replies = stepping.pickled("/step", {"1": HOLD})
    assert {one: reply["obs"]["timestep"] for one, reply in replies.items()} == {"0": 0, "1": 1}
    answer = stepping.pickled("/step_chunk", [{"0": HOLD, "1": HOLD}, {"0": HOLD}, {"0": HOLD}])
    assert {one: reply["obs"]["timestep"] for one, reply in answer["obs"].items()} == {"0": 3, "1": 2}
    assert answer["executed_steps"] == 3


def test_in_a_chunk_of_two_workers_each_stops_at_the_end_of_its_own_episode(stepping: RawClient) -> None:
    first = stepping.pickled("/reset", {"worker_ids": ["0", "1"]})["0"]["obs"]
    stepping.pickled("/step_chunk", [{"0": HOLD}] * 10)
    answer = stepping.pickled("/step_chunk", [{"0": HOLD, "1": HOLD}] * 5)
    assert (answer["executed_steps"], answer["stopped_early"]) == (5, True)
    assert answer["executed_by_worker"] == {"0": 2, "1": 5}
    assert {one: reply["obs"]["timestep"] for one, reply in answer["obs"].items()} == {"0": 0, "1": 5}
    assert answer["obs"]["0"]["episode_result"]["episode_id"] == first["episode_id"]
    assert answer["obs"]["1"]["episode_result"] is None
