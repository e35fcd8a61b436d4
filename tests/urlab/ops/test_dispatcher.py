import json
from typing import Any

import msgpack
import pytest

from urlab.ops import HANDLERS, Dispatcher
from urlab_wire.ops.sim import PieStatusReply


def test_a_handler_that_crashes_is_an_internal_error_of_that_request_only(ask: Any, monkeypatch: Any) -> None:
    def crash(context: Any, request: Any) -> Any:
        raise ZeroDivisionError("ouch")

    with monkeypatch.context() as patched:
        patched.setitem(HANDLERS, "pie_status", crash)
        reply = ask("pie_status")
    assert reply["code"] == "internal_error"
    assert all(word in reply["message"] for word in ("pie_status", "ZeroDivisionError", "ouch"))
    assert ask("pie_status")["op"] == "pie_status_ok"


def test_a_reply_that_cannot_be_encoded_is_an_internal_error(ask: Any, monkeypatch: Any) -> None:
    reply = PieStatusReply(state="off", compile_error="", sim_time=2**70)
    monkeypatch.setitem(HANDLERS, "pie_status", lambda *_: reply)
    assert ask("pie_status")["code"] == "internal_error"


def test_an_internal_error_is_told_in_the_sessions_encoding(ask: Any, dispatcher: Dispatcher, monkeypatch: Any) -> None:
    session_id = json.loads(dispatcher.handle(b'{"op":"hello","encoding":"json"}'))["session_id"]
    monkeypatch.setitem(HANDLERS, "pie_status", lambda *_: 1 / 0)
    frame = msgpack.packb({"op": "pie_status", "session_id": session_id})
    assert json.loads(dispatcher.handle(frame))["code"] == "internal_error"


def test_an_empty_level_can_be_played(ask: Any) -> None:
    assert ask("begin_pie")["state"] == "ready"
    assert ask("set_mode", mode="direct")["current_mode"] == "direct"
    ask("reset")
    seen = ask("step", n_steps=3)
    assert (seen["per_articulation"], seen["entities"]) == ({}, {})
    assert seen["time"] == pytest.approx(0.006)


def test_a_draining_dispatcher_refuses_everything(ask: Any, dispatcher: Dispatcher) -> None:
    dispatcher.drain()
    assert ask("pie_status")["code"] == "shutting_down"
    assert ask("hello")["code"] == "shutting_down"
    assert json.loads(dispatcher.handle(b"{"))["code"] == "shutting_down"


LONG = [
    {"op": "step", "n_steps": 10_000},
    {"op": "begin_pie"},
    {"op": "recording_save"},
    {"op": "step", "include_cameras": True},
    {"op": "hello"},
    {"op": "replay_load", "x": [1]},
]
SHORT = [
    {"op": "step"},
    {"op": "step", "n_steps": 1},
    {"op": "reset"},
    {"op": "pie_status"},
    {"op": 5},
    {},
    {"op": "fly"},
]


@pytest.mark.parametrize("encode", [msgpack.packb, lambda message: json.dumps(message).encode()])
def test_requests_that_may_take_long_are_known_beforehand(dispatcher: Dispatcher, encode: Any) -> None:
    assert [dispatcher.read(encode(message)).takes_long for message in LONG] == [True] * len(LONG)
    assert [dispatcher.read(encode(message)).takes_long for message in SHORT] == [False] * len(SHORT)


@pytest.mark.parametrize(
    "frame", [b"", b"\xc1", b"{", b"\x91" * 10_000, b"\x81\xa2op\xa1\xff", b"[1]", b'{"op":"\\ud800"}']
)
def test_a_broken_request_does_not_take_long(dispatcher: Dispatcher, frame: bytes) -> None:
    assert dispatcher.read(frame).takes_long is False
