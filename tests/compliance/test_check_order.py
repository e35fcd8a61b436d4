"""What is wrong with a request is looked for in the protocol's order: the first fault is the one answered."""

import json
from typing import Any

import msgpack
import pytest

from urlab.ops import HANDLERS
from urlab_wire import CATALOGUE

pytestmark = pytest.mark.every_transport

NOT_A_REQUEST = {
    "nothing": b"",
    "half a map": b"\x82\xa2op",
    "an int": msgpack.packb(7),
    "a list": msgpack.packb(["op", "hello"]),
    "text": b"hello",
    "broken JSON": b'{"op": "hello"',
    "a JSON list after a space": b" [1]",
    "integer keys": msgpack.packb({1: 2, "op": "pie_status"}),
    "text that is not UTF-8": b"\x81\xa2op\xa1\xff",
    "deep nesting": b"\x91" * 100_000,
    "deep JSON": b'{"op":' + b"[" * 100_000,
}
NO_OP: list[Any] = [{}, {"op": None}, {"op": ""}, {"op": 5}, {"op": ["hello"]}, {"Op": "hello"}]


@pytest.mark.parametrize("frame", NOT_A_REQUEST.values(), ids=NOT_A_REQUEST)
def test_a_frame_that_is_not_a_map_is_a_bad_request(stranger: Any, frame: bytes) -> None:
    reply = stranger.decode(stranger.send(frame))
    assert (reply["op"], reply["code"]) == ("error", "bad_request")


@pytest.mark.parametrize("message", NO_OP, ids=str)
def test_a_map_without_an_op_misses_it(stranger: Any, message: Any) -> None:
    assert stranger.exchange(message)["code"] == "missing_op"


def test_the_session_is_checked_before_the_op(stranger: Any) -> None:
    assert stranger.refused("fly") == "session_expired"


def test_an_unknown_op_is_named_with_those_that_exist(wire: Any) -> None:
    reply = wire.ask("fly")
    assert reply["code"] == "unknown_op"
    assert all(name in reply["message"] for name in ("'fly'", "step", "begin_pie", "untrack"))


def test_op_names_are_case_sensitive(wire: Any) -> None:
    assert wire.refused("STEP") == "unknown_op"


def test_a_missing_field_is_found_before_the_missing_manager(wire: Any) -> None:
    wire.ok("stop_pie")
    for op, spec in CATALOGUE.items():
        if not (required := spec.required_fields()):
            continue
        reply = wire.ask(op)
        assert (op, reply["code"]) == (op, "missing_field")
        assert required[0] in reply["message"]
        assert (op, wire.refused(op, **dict.fromkeys(required))) == (op, "missing_field"), "null is absent"


def test_without_a_play_every_op_that_needs_one_says_so(wire: Any, sample: Any) -> None:
    wire.ok("stop_pie")
    needy = [name for name, spec in CATALOGUE.items() if spec.category == "manager_required"]
    assert {op: wire.refused(op, **sample(op)) for op in needy} == dict.fromkeys(needy, "no_active_manager")


def test_an_op_without_a_handler_is_not_in_the_editor(wire: Any, sample: Any) -> None:
    missing = [name for name in CATALOGUE if name not in HANDLERS]
    assert {op: wire.refused(op, **sample(op)) for op in missing} == dict.fromkeys(missing, "not_in_editor")


def test_a_null_field_is_an_absent_one(wire: Any) -> None:
    absent = dict.fromkeys(("n_steps", "observations", "include_cameras", "per_articulation", "time", "qpos", "extra"))
    assert wire.ok("step", **absent)["step"] == 1


def test_unknown_fields_are_ignored(wire: Any) -> None:
    assert wire.ok("step", n_steps=2, frobnicate={"a": [1]}, mode="puppet")["step"] == 2


@pytest.mark.parametrize("blanks", [b"", b" ", b"\t\r\n "])
def test_json_may_begin_with_blanks(wire: Any, blanks: bytes) -> None:
    request = {"op": "pie_status", "session_id": wire.session_id}
    assert wire.decode(wire.send(blanks + json.dumps(request).encode()))["op"] == "pie_status_ok"
