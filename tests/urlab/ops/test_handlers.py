import pytest

from urlab.ops import HANDLERS
from urlab.ops.context import handler
from urlab_wire import CATALOGUE


def test_every_op_is_served() -> None:
    assert set(HANDLERS) == set(CATALOGUE)


def test_every_handler_says_what_it_does() -> None:
    assert [name for name, function in HANDLERS.items() if not function.__doc__] == []


@pytest.mark.parametrize("op", HANDLERS)
def test_a_handler_answers_with_the_reply_of_its_op(op: str) -> None:
    assert HANDLERS[op].__annotations__["return"] in (CATALOGUE[op].reply, CATALOGUE[op].reply | bytes)
    assert HANDLERS[op].__annotations__["request"] is CATALOGUE[op].request


def test_an_op_has_one_handler() -> None:
    with pytest.raises(ValueError, match="'step' has two handlers"):
        handler("step")(lambda *_: None)


def test_a_handler_needs_an_op() -> None:
    with pytest.raises(ValueError, match="no op 'fly'"):
        handler("fly")
