import json

import pytest

from urlab_client.enums import ActuatorType, StepMode, coerce, wire


def test_a_member_serialises_as_its_wire_word():
    assert json.dumps({"mode": StepMode.PUPPET}) == '{"mode": "puppet"}'


@pytest.mark.parametrize("member", [*StepMode, *ActuatorType])
def test_every_member_survives_the_wire(member: StepMode | ActuatorType):
    assert coerce(type(member), wire(member)) is member
    assert coerce(type(member), member) is member


def test_an_unknown_word_is_logged_and_refused_with_the_known_ones(caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    with pytest.raises(ValueError, match="auto, direct, puppet, live"):
        coerce(StepMode, "bogus")
    assert "Unknown StepMode wire value 'bogus'" in caplog.text
    assert caplog.records[0].levelname == "DEBUG"


def test_none_takes_the_default_or_is_refused():
    assert coerce(StepMode, None, default=StepMode.LIVE) is StepMode.LIVE
    with pytest.raises(ValueError, match="StepMode is needed"):
        coerce(StepMode, None)


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="not int"):
        coerce(StepMode, 3)  # type: ignore[arg-type]
