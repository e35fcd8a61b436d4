import msgpack
import msgspec
import pytest

from urlab_wire import CATALOGUE, ErrorCode, ErrorReply, encode
from urlab_wire.envelope import ERROR_OP, error, ok_op


def test_an_error_reply_is_op_code_and_message() -> None:
    reply = error(ErrorCode.UNKNOWN_BODY, "no body 'foot'")
    got = msgpack.unpackb(encode(reply))
    assert got == {"op": "error", "code": "unknown_body", "message": "no body 'foot'"}
    assert list(got) == ["op", "code", "message"]


def test_the_code_of_an_error_reply_is_a_plain_string() -> None:
    assert type(error(ErrorCode.BAD_VALUE, "").code) is str


def test_an_error_may_name_the_path_that_it_is_about() -> None:
    reply = error("path_not_writable", "read-only", absolute_path="/there/ep.json")
    assert msgpack.unpackb(encode(reply))["absolute_path"] == "/there/ep.json"


def test_an_error_reply_reads_back() -> None:
    reply = error(ErrorCode.MISSING_OP, "no op")
    assert msgspec.convert(msgpack.unpackb(encode(reply)), ErrorReply) == reply


def test_no_op_is_called_error() -> None:
    assert ERROR_OP not in CATALOGUE
    assert ERROR_OP not in {spec.reply_op for spec in CATALOGUE.values()}


@pytest.mark.parametrize("op", ["hello", "step", "set_mode", "set_camera"])
def test_a_reply_is_called_after_its_op(op: str) -> None:
    assert ok_op(op) == f"{op}_ok"


def test_the_reply_of_set_viewport_mode_is_set_mode_ok() -> None:
    assert ok_op("set_viewport_mode") == "set_mode_ok"
