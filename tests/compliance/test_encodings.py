"""msgpack by default, JSON for sessions that ask for it; numbers are exact in both."""

import base64
import json
from typing import Any

import msgpack
import numpy as np
import pytest

pytestmark = pytest.mark.every_transport


def ask_json(wire: Any, **message: Any) -> bytes:
    return wire.send(json.dumps(message).encode())


def test_a_json_session_is_answered_in_json(wire: Any) -> None:
    wire.hello(encoding="json")
    request = msgpack.packb({"op": "step", "session_id": wire.session_id})
    assert json.loads(wire.send(request))["op"] == "step_ok"
    assert json.loads(ask_json(wire, op="fly", session_id=wire.session_id))["code"] == "unknown_op"


def test_a_msgpack_session_is_answered_in_msgpack_even_when_it_asks_in_json(wire: Any) -> None:
    assert msgpack.unpackb(ask_json(wire, op="step", session_id=wire.session_id))["op"] == "step_ok"


def test_every_hello_goes_back_to_msgpack(wire: Any) -> None:
    wire.hello(encoding="json")
    assert msgpack.unpackb(wire.send(msgpack.packb({"op": "hello"})))["op"] == "hello_ok"


def test_encodings_are_known_in_any_case(wire: Any) -> None:
    assert json.loads(ask_json(wire, op="hello", encoding="JSON"))["op"] == "hello_ok"


def test_before_a_session_the_reply_mirrors_the_request(stranger: Any) -> None:
    assert json.loads(ask_json(stranger, op="meta"))["op"] == "meta_ok"
    assert msgpack.unpackb(stranger.send(msgpack.packb({"op": "meta"})))["op"] == "meta_ok"
    assert json.loads(ask_json(stranger, op="step"))["code"] == "session_expired"
    assert json.loads(stranger.send(b'{"op": '))["code"] == "bad_request"
    assert msgpack.unpackb(stranger.send(b"\xc1"))["code"] == "bad_request"


def test_under_json_the_model_travels_as_base64(wire: Any) -> None:
    model = wire.hello()["mjb"]
    reply = wire.hello(encoding="json")
    assert "mjb" not in reply
    assert reply["mjb_size"] == len(model)
    assert base64.b64decode(reply["mjb_base64"]) == model


def test_under_msgpack_the_model_travels_once(wire: Any) -> None:
    assert not {"mjb_base64", "mjb_size"} & set(wire.hello())


@pytest.mark.parametrize("encoding", ["msgpack", "json"])
def test_numbers_keep_every_digit(wire: Any, engine: Any, encoding: str) -> None:
    wire.hello(encoding=encoding)
    wire.json = encoding == "json"
    seen = wire.ok("step", n_steps=7, per_articulation={"arm": {"ctrl": [0.1, 1 / 3]}})
    assert seen["per_articulation"]["arm"]["ctrl"] == [0.1, 1 / 3]
    data = engine().data
    assert np.array_equal(seen["per_articulation"]["arm"]["qpos"], data.qpos[:2])
    assert seen["time"] == data.time


def test_counters_and_ids_are_integers_and_quantities_are_floats(wire: Any) -> None:
    seen = wire.ok("step", observations="full")
    assert type(seen["step"]) is type(seen["sim_time"]["nsec"]) is int
    assert type(seen["time"]) is float
    assert {type(x) for x in seen["per_articulation"]["arm"]["qpos"]} == {float}
    assert type(wire.hello()["entities"]["crate"]["qpos_offset"]) is int
