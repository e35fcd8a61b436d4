import pytest

from urlab_client import PIEState, URLabPIEError, URLabRPCError, URLabTimeoutError


def test_an_rpc_error_carries_code_message_and_op():
    error = URLabRPCError("bad_value", "no such word", op="set_mode")
    assert (error.code, error.message, error.op) == ("bad_value", "no such word", "set_mode")
    assert str(error) == "set_mode: no such word [bad_value]"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("step: n_steps is below zero", "step: n_steps is below zero [c]"),
        ("step is not served here", "step is not served here [c]"),
        ("step_ok was expected", "step: step_ok was expected [c]"),
    ],
)
def test_the_op_is_not_named_twice(message: str, text: str):
    assert str(URLabRPCError("c", message, op="step")) == text


def test_a_timeout_is_an_rpc_error_and_a_timeout_error():
    error = URLabTimeoutError("tcp://127.0.0.1:5559", 7.0)
    error.op = "step"
    assert isinstance(error, URLabRPCError)
    assert isinstance(error, TimeoutError)
    assert error.code == "timeout"
    assert str(error).startswith("step: no answer from tcp://127.0.0.1:5559 within 7 s")


def test_a_pie_error_carries_the_state():
    error = URLabPIEError(code="pie_timeout", message="slow", state=PIEState.TIMEOUT)
    assert isinstance(error, URLabRPCError)
    assert error.state is PIEState.TIMEOUT
