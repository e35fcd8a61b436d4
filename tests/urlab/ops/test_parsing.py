import msgpack
import pytest

from urlab.errors import BadRequest, BadValue, MissingField, MissingOp
from urlab.ops.parsing import read_envelope, read_request
from urlab_wire import CATALOGUE
from urlab_wire.ops.runtime import SetQposRequest


def test_the_envelope_is_read_whatever_else_is_wrong() -> None:
    frame = msgpack.packb({"op": "step", "session_id": "a", "n_steps": ["?"], "more": {"x": 1}})
    assert read_envelope(frame) == ("step", "a")


def test_a_session_id_of_another_type_is_none() -> None:
    assert read_envelope(msgpack.packb({"op": "step", "session_id": 7})) == ("step", None)


@pytest.mark.parametrize("message", [{}, {"op": 7}, {"op": ""}])
def test_a_request_needs_an_op(message: object) -> None:
    with pytest.raises(MissingOp):
        read_envelope(msgpack.packb(message))


def test_the_size_of_a_request_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urlab.ops.parsing.MAX_REQUEST_BYTES", 10)
    with pytest.raises(BadRequest, match="limit is 10"):
        read_envelope(b"x" * 11)


def read(**fields: object) -> object:
    return read_request(CATALOGUE["set_qpos"], msgpack.packb({"op": "set_qpos", **fields}))


def test_a_good_request_is_typed() -> None:
    request = read(target="a", qpos=[1, 2.5])
    assert isinstance(request, SetQposRequest)
    assert request.qpos == [1.0, 2.5]


def test_the_first_missing_field_is_named() -> None:
    assert "'target'" in str(read())
    assert "'qpos'" in str(read(target="a"))
    assert isinstance(read(target="a", qpos=None), MissingField)


def test_a_wrong_type_is_named_with_its_place() -> None:
    wrong = read(target="a", qpos=[1, "x"])
    assert isinstance(wrong, BadValue)
    assert "qpos" in str(wrong)
    assert "set_qpos" in str(wrong)


def test_a_missing_field_is_found_before_a_wrong_one() -> None:
    assert isinstance(read(target=5), MissingField)
