"""What is refused, with which status and words; the episode goes on afterwards."""

import json
import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HOLD = {"action": [0.0] * 7 + [0.04, 0.04], "control_type": "joint_position"}


@pytest.fixture(scope="module")
def running(server: Any) -> Any:
    """The common server with one worker in an episode; nothing that is refused may end it."""
    raw = server.client()
    raw.start("easy", episodes=9)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.close()
    return server


@pytest.fixture
def client(running: Any, make_raw: Any) -> Any:
    """A client of that server."""
    return make_raw(running.url)


def test_a_bad_action_is_named_and_moves_nobody(client: Any) -> None:
    before = client.pickled("/reset_result", {"worker_ids": ["0"]})["0"]["obs"]["timestep"]
    cases = [
        ({"0": {"control_type": "joint_position"}}, "action is missing"),
        ({"0": {"action": [0.0] * 9}}, "control_type is one of"),
        ({"0": {**HOLD, "action": [0.0] * 8}}, "9"),
        ({"0": {**HOLD, "action": [math.nan] * 9}}, "action"),
        ({"0": {**HOLD, "action": "text"}}, "action"),
        ({"0": {**HOLD, "control_type": "magic"}}, "magic"),
        ({"0": {**HOLD, "control_type": "ee_pose"}}, "position 3, quaternion 4, gripper 2"),
        ({"0": {**HOLD, "is_rel": "yes"}}, "is_rel"),
        ({"0": None}, "an action is a dict"),
        ({"0": {**HOLD, "action": np.zeros((0, 1 << 20))}}, "action"),
    ]
    for body, words in cases:
        status, detail = client.refused("/step", body)
        assert status == 400, detail
        assert "worker 0" in detail
        assert words in detail
    status, detail = client.refused("/step_chunk", [{"0": HOLD}, {"0": {}}])
    assert status == 400
    assert client.pickled("/reset_result", {"worker_ids": ["0"]})["0"]["obs"]["timestep"] == before
    assert client.pickled("/step", {"0": HOLD})["0"]["obs"]["timestep"] == before + 1


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/step", {"7": HOLD}, "there is no worker '7'"),
        ("/step", {"0": HOLD, "7": HOLD}, "there is no worker '7'"),
        ("/step", {}, "dict of actions by worker"),
        ("/step", [HOLD], "dict of actions by worker"),
        ("/step", HOLD, "an action without a worker"),
        ("/step", {0: HOLD}, "'0' and not 0"),
        ("/step", {"0": {**HOLD, "action": np.zeros(9, complex)}}, "dtype of numbers"),
        ("/step", {"0": {**HOLD, "action": np.array([None] * 9)}}, "dtype of numbers"),
        ("/step", b"", "dict of actions by worker"),
        ("/step", b"\x80\x05junk", "Invalid pickle"),
        ("/step_chunk", [], "list of 1 to"),
        ("/step_chunk", {"0": HOLD}, "list of 1 to"),
        ("/step_chunk", [{}], "dict of actions by worker"),
        ("/reset", {"worker_ids": "0"}, "worker_ids must be a list"),
        ("/reset", {"worker_ids": [0]}, "such as ['0', '1'], but a list with 0 in it was sent"),
        ("/reset", {"worker_ids": ["x" * 100]}, "worker_ids must be a list"),
        ("/reset", ["0"], "dict with worker_ids"),
        ("/reset", {"worker_ids": [str(one) for one in range(40)]}, "--workers"),
        ("/reset_result", {"worker_ids": ["7"]}, "there is no worker '7'"),
    ],
)
def test_a_bad_body_is_refused(client: Any, path: str, body: Any, words: str) -> None:
    status, detail = client.refused(path, body)
    assert status == 400
    assert words in detail


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/create_workers", {}, '{"data": {...}}'),
        ("/create_workers", {"data": {}}, "worker_ids must be a list"),
        ("/kill", {"data": {"worker_ids": None}}, "worker_ids must be a list"),
        ("/kill", [1], '{"data": {...}}'),
        ("/start_new_job", {"data": {}}, "config_path must be a list"),
        ("/start_new_job", {"config_path": ["short"]}, '{"data": {...}}'),
        ("/start_new_job", {"data": {"config_path": []}}, "config_path must be a list"),
        ("/start_new_job", {"data": {"config_path": ["short", 3]}}, "config_path must be a list"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": "a/../../b"}}, "cannot name a folder"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": "a/./b"}}, "cannot name a folder"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": "a//b"}}, "cannot name a folder"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": "a\\..\\b"}}, "cannot name a folder"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": "\u00e9" * 200}}, "File name too long"),
        ("/start_new_job", {"data": {"config_path": "short"}}, "config_path must be a list"),
        ("/start_new_job", {"data": {"config_path": ["  "]}}, "config_path must be a list"),
        ("/start_new_job", {"data": {"config_path": ["none"]}}, "there is no task 'none'"),
        ("/start_new_job", {"data": {"config_path": ["/etc/passwd.toml"]}}, "there is no task"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": 3}}, "run_id must be text"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": "../x"}}, "cannot name a folder"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": "/x"}}, "cannot name a folder"),
        ("/start_new_job", {"data": {"config_path": ["short"], "run_id": ""}}, "cannot name a folder"),
        ("/start_new_job", {"data": {"config_path": ["short"], "episodes": 0}}, "episodes must be"),
        ("/start_new_job", {"data": {"config_path": ["short"], "episodes": True}}, "episodes must be"),
        ("/load_config", {"data": {"config_path": 7}}, "config_path must be a list"),
    ],
)
def test_a_bad_control_request_is_refused(client: Any, path: str, body: Any, words: str) -> None:
    status, detail = client.refused(path, json.dumps(body).encode(), "application/json")
    assert status == 400
    assert words in detail
    assert client.pickled("/step", {"0": HOLD})["0"]["obs"] is not None


def test_an_unknown_content_type_is_refused(client: Any) -> None:
    status, detail = client.refused("/step", b"x", "text/plain")
    assert status == 400
    assert "application/octet-stream, application/json, application/msgpack" in detail


def test_a_pickle_that_would_run_something_is_refused_over_http(client: Any, tmp_path: Path) -> None:
    class Armed:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'marker'}",)

    for path in ("/reset", "/step", "/step_chunk", "/reset_result"):
        status, detail = client.refused(path, pickle.dumps({"0": Armed()}, 5))
        assert status == 400
        assert "posix.system" in detail
    assert not (tmp_path / "marker").exists()


def test_a_large_body_is_refused_before_it_is_read(client: Any) -> None:
    client.connection.putrequest("POST", "/step")
    client.connection.putheader("Content-Length", str(1 << 34))
    client.connection.endheaders()
    response = client.connection.getresponse()
    assert response.status == 413
    assert "limit" in json.loads(response.read())["detail"]


def test_a_large_body_without_a_length_is_refused_as_soon_as_it_shows(client: Any) -> None:
    client.connection.putrequest("POST", "/step")
    client.connection.putheader("Transfer-Encoding", "chunked")
    client.connection.endheaders()
    for size in (*[1 << 20] * 8, 1):
        client.connection.send(b"%x\r\n%b\r\n" % (size, b"x" * size))
    assert client.connection.getresponse().status == 413


def test_unknown_workers_may_be_killed(client: Any) -> None:
    assert client.json("/kill", {"data": {"worker_ids": ["never", "was"]}}) == {"data": {"success": True}}


def test_a_token_is_asked_of_everything_but_the_docs(make_server: Any, make_raw: Any) -> None:
    server = make_server(token="a secret of many letters")
    stranger, guest = make_raw(server.url), make_raw(server.url, Authorization="Bearer a secret of many letters")
    wrong = make_raw(server.url, Authorization="Bearer A secret of many letters")
    for client in (stranger, wrong):
        assert client.refused("/reset", {"worker_ids": ["0"]})[0] == 401
        assert client.send("GET", "/status", None, None)[0] == 401
        assert client.send("GET", "/docs", None, None)[0] == 200
    assert guest.status()["status"] == "idle"
