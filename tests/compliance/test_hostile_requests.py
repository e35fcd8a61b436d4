"""Nothing that a client sends harms anybody: every op, with anything in its fields.

A reply is always a map: ``<op>_ok`` or an error with a known code. A refused request changes nothing.
"""

import json
from typing import Any, get_args

import msgpack
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from urlab_wire import CATALOGUE, ErrorCode

SETTINGS = settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
RESTARTS = {"hello", "begin_pie", "stop_pie", "set_mode"}
"""Ops that, when they are served, leave a session or a play that the next request cannot use, or a live one, which goes
on by itself."""
NAMES = st.sampled_from(
    ["arm", "arm_0", "walker", "crate", "goal", "robot", "", "live", "a/b", "../x", "/", "\0", "é" * 300, "lift", "hip"]
)
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, 1, -1, 7, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf")]),
    st.floats(),
)
WORDS = st.sampled_from(["direct", "puppet", "ui", "raw", "full", "sync", "actor_name", "json", "kp", "timestep"])
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, NAMES, WORDS, st.text(max_size=5), st.binary(max_size=5))
KEYS = st.one_of(NAMES, WORDS, st.sampled_from(["ctrl", "ctrl_map", "xfrc_applied", "gravity", "integrator", "body1"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=8), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def fields_of(op: str) -> list[str]:
    return [one.encode_name for one in msgspec.structs.fields(CATALOGUE[op].request) if one.name != "session_id"]


def judge(reply: Any, op: str | None = None) -> bool:
    """Whether the request was served; fails when the reply is not one that the protocol knows."""
    assert isinstance(reply, dict)
    if reply["op"] == "error":
        assert reply["code"] in set(ErrorCode)
        assert reply["code"] != "internal_error", reply
        assert reply["message"]
        return False
    assert reply["op"] == CATALOGUE[op].reply_op if op else reply["op"].endswith("_ok")
    return True


def keep_playing(wire: Any) -> None:
    """A session of our own and a fresh arena in direct mode, whatever the last request did."""
    wire.hello()
    wire.play("arena")


def attack_with(wire: Any, world: Any, op: str, message: dict[str, Any]) -> None:
    """Send it; a refused request, and one that only reads, must leave the world as it was."""
    before = world()
    served = judge(wire.decode(wire.send(msgpack.packb(message))), op)
    if served and op in RESTARTS:
        keep_playing(wire)
    elif not served or (CATALOGUE[op].reads and op != "step"):
        assert world() == before


def fields_with_anything(op: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.one_of(st.sampled_from([*fields_of(op), "extra"]), KEYS), VALUES, max_size=4)


@pytest.mark.parametrize("op", CATALOGUE)
def test_any_field_may_hold_anything(wire: Any, stranger: Any, world: Any, sample: Any, op: str) -> None:
    @SETTINGS
    @given(fields_with_anything(op), st.booleans())
    def attack(fields: dict[str, Any], well_formed: bool) -> None:
        message = {**(sample(op) if well_formed else {}), **fields, "op": op, "session_id": wire.session_id}
        attack_with(wire, world, op, message)

    attack()
    stranger.hello()
    stranger.ok("forward")


@pytest.mark.every_transport
def test_any_op_may_hold_anything_over_any_transport(wire: Any, stranger: Any, world: Any, sample: Any) -> None:
    @SETTINGS
    @given(st.data())
    def attack(data: Any) -> None:
        op = data.draw(st.sampled_from(sorted(CATALOGUE)))
        message = {**sample(op), **data.draw(fields_with_anything(op)), "op": op, "session_id": wire.session_id}
        attack_with(wire, world, op, message)

    attack()
    stranger.hello()
    stranger.ok("forward")


@pytest.mark.parametrize("op", ["step", "reset", "set_sim_options", "set_qpos", "configure_controller"])
def test_the_deep_requests_withstand_wrong_leaves(wire: Any, world: Any, op: str) -> None:
    leaves = st.lists(SCALARS, max_size=8) | SCALARS
    shapes = {
        "step": st.fixed_dictionaries({"per_articulation": st.dictionaries(
            st.sampled_from(["arm", "walker", "crate", "no"]), st.fixed_dictionaries({}, optional={
                "ctrl": leaves, "ctrl_map": st.dictionaries(KEYS, leaves, max_size=2), "control_mode": SCALARS,
                "xfrc_applied": st.dictionaries(st.sampled_from(["upper", "crate", "no"]), leaves, max_size=2),
            }), max_size=3), "include_cameras": leaves | st.dictionaries(KEYS, leaves, max_size=2)}),
        "reset": st.fixed_dictionaries({"per_articulation_qpos": st.dictionaries(
            st.sampled_from(["arm", "walker", "no"]),
            st.dictionaries(st.sampled_from(["elbow", "root", "neck", "no"]), leaves, max_size=2), max_size=2)}),
        "set_sim_options": st.fixed_dictionaries({"options": st.dictionaries(
            st.sampled_from(["gravity", "wind", "impratio", "density", "cone", "integrator", "enable_sleep", "no"]),
            leaves, max_size=2)}),
        "set_qpos": st.fixed_dictionaries({"target": NAMES, "qpos": leaves, "target_by": SCALARS}),
        "configure_controller": st.fixed_dictionaries({"articulation": st.just("walker"), "params": st.dictionaries(
            st.sampled_from(["kp", "kv", "default_kp", "torque_limit", "no"]),
            leaves | st.dictionaries(st.sampled_from(["hip", "knee", "no"]), leaves, max_size=2), max_size=3)}),
    }  # fmt: skip

    @SETTINGS
    @given(shapes[op])
    def attack(fields: dict[str, Any]) -> None:
        before = world()
        message = {**fields, "op": op, "session_id": wire.session_id}
        if not judge(wire.decode(wire.send(msgpack.packb(message))), op):
            assert world() == before

    attack()


@pytest.mark.parametrize("seed", [1e20, -1e19, 2**64 - 1, 7])
def test_a_seed_that_no_reply_could_tell_is_refused(wire: Any, seed: float) -> None:
    reply = wire.ask("reset", seed=seed)
    assert (reply["op"] == "reset_ok") == (-(2**63) <= seed < 2**64)
    assert judge(wire.ask("pie_status"), "pie_status")


@pytest.mark.every_transport
def test_json_numbers_may_be_as_large_as_they_like(wire: Any, world: Any) -> None:
    before = world()
    for digits in (30, 400, 5000):
        huge = b"9" * digits
        for fields in (
            b'"op":"step","n_steps":%s', b'"op":"step","per_articulation":{"arm":{"ctrl":[%s,0]}}',
            b'"op":"set_twist","articulation":"walker","actions":%s', b'"op":"set_qpos","target":"arm","qpos":[%s]',
            b'"op":"configure_controller","articulation":"walker","params":{"default_kp":%s}',
        ):  # fmt: skip
            frame = b'{"session_id":"%s",' % wire.session_id.encode() + fields % huge + b"}"
            if digits > 30:
                assert not judge(wire.decode(wire.send(frame)))
                assert world() == before
            elif b"ctrl" not in fields:
                judge(wire.decode(wire.send(frame)))
                before = world()


@pytest.mark.every_transport
@SETTINGS
@given(st.binary(max_size=60))
def test_random_bytes_are_a_bad_request(stranger: Any, frame: bytes) -> None:
    assert not judge(stranger.decode(stranger.send(frame)))


@pytest.mark.every_transport
@SETTINGS
@given(st.data())
def test_a_good_frame_with_spoilt_bytes_costs_only_its_sender(wire: Any, world: Any, data: Any) -> None:
    frame = bytearray(msgpack.packb({"op": "set_qpos", "session_id": wire.session_id, "target": "no", "qpos": [0.5]}))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    before = world()
    assert not judge(wire.decode(wire.send(bytes(frame[: data.draw(st.integers(1, len(frame)))]))))
    assert world() == before


@SETTINGS
@given(st.sampled_from(sorted(CATALOGUE)), st.one_of(st.uuids().map(str), SCALARS))
def test_a_foreign_session_id_opens_nothing(wire: Any, world: Any, op: str, session_id: Any) -> None:
    if op in ("hello", "meta"):
        return
    before = world()
    message = {"op": op, "session_id": session_id}
    reply = wire.decode(wire.send(msgpack.packb(message)))
    assert reply["code"] == "session_expired"
    assert world() == before


@pytest.mark.every_transport
def test_an_oversized_request_is_refused(wire: Any, world: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("urlab.ops.parsing.MAX_REQUEST_BYTES", 1000)
    before = world()
    reply = wire.ask("step", padding="x" * 1000)
    assert (reply["code"], "1000" in reply["message"]) == ("bad_request", True)
    assert world() == before
    wire.ok("step")


@pytest.mark.every_transport
def test_a_request_may_be_nested_as_deeply_as_it_likes(wire: Any) -> None:
    deep: Any = 1
    for _ in range(400):
        deep = {"a": deep}
    assert wire.refused("configure_controller", articulation="walker", params=deep) == "controller_schema_violation"
    frame = b'{"op":"step","session_id":"%s","x":' % wire.session_id.encode() + b"[" * 50_000 + b"]" * 50_000 + b"}"
    assert not judge(wire.decode(wire.send(frame)))


@pytest.mark.parametrize("depth", [300, 500, 700, 900])
def test_how_deep_a_wrong_request_is_nested_makes_no_difference(wire: Any, world: Any, depth: int) -> None:
    before = world()
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = opening * depth + b"1" + closing * depth
        frame = b'{"op":"step","session_id":"%s","n_steps":"two","x":%s}' % (wire.session_id.encode(), deep)
        assert not judge(wire.decode(wire.send(frame)))
    assert world() == before


def test_unusual_text_is_only_text(wire: Any) -> None:
    for name in ("\U0001f916", "\u202e", "a\nb", "%s{}", "'\"`;--", "<b>", "\ud800"):
        request = json.dumps({"op": "set_qpos", "session_id": wire.session_id, "target": name, "qpos": [1]})
        assert not judge(wire.decode(wire.send(request.encode())))


def texts_of(op: str) -> list[str]:
    """The fields of an op that hold a text."""
    return [
        one.encode_name
        for one in msgspec.structs.fields(CATALOGUE[op].request)
        if str in (one.type, *get_args(one.type))
    ]


@pytest.mark.parametrize("op", CATALOGUE)
def test_an_error_does_not_say_back_what_the_client_sent(wire: Any, sample: Any, op: str) -> None:
    for field in texts_of(op):
        for text in ("x" * 50_000, "o'clock\n" * 10_000):
            message = {**sample(op), "op": op, "session_id": wire.session_id, field: text}
            reply = wire.send(msgpack.packb(message))
            if wire.decode(reply)["op"] == "error":
                assert len(reply) < 5000, field


def test_an_unknown_op_is_told_back_in_short(wire: Any) -> None:
    reply = wire.ask("fly" * 1_000_000)
    assert reply["code"] == "unknown_op"
    assert reply["message"].count("fly") < 100
    assert "step" in reply["message"]
