"""The front door of the room: every name that it lists is there, wherever it lives."""

import pytest

import urlab.evaluation


@pytest.mark.parametrize("name", urlab.evaluation.__all__)
def test_every_name_of_the_front_door_is_there(name: str) -> None:
    assert getattr(urlab.evaluation, name) is not None


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        urlab.evaluation.nothing  # noqa: B018
