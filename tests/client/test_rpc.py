from collections.abc import Callable
from typing import Any

import pytest

from urlab_client import InProcessTransport, URLabRPCError
from urlab_client.rpc import RpcChannel
from urlab_wire.codec import encode


def channel(answer: dict[str, Any] | bytes, rcv_timeout_ms: int = 5000) -> RpcChannel:
    frame = answer if isinstance(answer, bytes) else encode(answer)
    return RpcChannel(InProcessTransport(lambda _: frame), rcv_timeout_ms)


def test_an_error_reply_raises_its_code():
    with pytest.raises(URLabRPCError) as raised:
        channel({"op": "error", "code": "bad_value", "message": "why"}).call("set_mode", {})
    assert (raised.value.code, raised.value.message, raised.value.op) == ("bad_value", "why", "set_mode")


def test_an_error_reply_without_a_code_is_unknown():
    with pytest.raises(URLabRPCError, match="unknown"):
        channel({"op": "error"}).call("set_mode", {})


def test_an_expired_session_says_how_to_rejoin():
    with pytest.raises(URLabRPCError, match=r"call discover\(\) again") as raised:
        channel({"op": "error", "code": "session_expired", "message": "gone"}).call("step", {})
    assert raised.value.code == "session_expired"


def test_advice_that_the_server_gave_is_not_repeated():
    with pytest.raises(URLabRPCError) as raised:
        channel({"op": "error", "code": "session_expired", "message": "Say hello (client.discover())."}).call("step")
    assert raised.value.message == "Say hello (client.discover())."


def test_another_reply_than_expected_is_refused():
    with pytest.raises(URLabRPCError, match="expected 'step_ok', got 'reset_ok'") as raised:
        channel({"op": "reset_ok"}).call("step", {})
    assert raised.value.code == "unexpected_reply_op"


def test_one_of_several_expected_replies_will_do():
    assert channel({"op": "step_ok"}).call("reset", {}, expected_op=("reset_ok", "step_ok")) == {"op": "step_ok"}


def test_the_reply_of_set_viewport_mode_is_set_mode_ok():
    assert channel({"op": "set_mode_ok", "mode": "lit"}).call("set_viewport_mode", {})["mode"] == "lit"


def test_a_reply_that_cannot_be_read_is_a_transport_error():
    with pytest.raises(URLabRPCError, match="cannot be read") as raised:
        channel(b"\xc1").call("step", {})
    assert raised.value.code == "transport_error"


@pytest.mark.parametrize(
    ("op", "patience_ms", "expected_ms"),
    [
        ("step", 5000, 7000),
        ("step", 9000, 9000),
        ("step", 300, 300),
        ("hello", 300, 300),
        ("hello", 5000, 32_000),
        ("import_xml", 300, 122_000),
        ("import_xml", 5000, 122_000),
        ("no_such_op", 300, 300),
    ],
)
def test_we_wait_as_long_as_asked_and_for_slow_ops_longer_than_the_server_does(
    op: str, patience_ms: int, expected_ms: int
):
    assert channel({}, patience_ms).timeout_ms(op) == expected_ms


def test_requests_carry_the_session_and_null_before_there_is_one(server: Any, refuse: Callable[..., dict[str, str]]):
    asking = RpcChannel(InProcessTransport(server.handle), 5000)
    asking.call("meta")
    asking.session_id = "abc"
    asking.call("meta")
    assert [request["session_id"] for request in server.received] == [None, "abc"]
