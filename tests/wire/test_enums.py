"""The words of the client reference and the protocol reference."""

from enum import StrEnum

import msgpack
import pytest

from urlab_wire import encode, enums

WORDS: dict[type[StrEnum], dict[str, str]] = {
    enums.StepMode: {"AUTO": "auto", "DIRECT": "direct", "PUPPET": "puppet", "LIVE": "live"},
    enums.ControlMode: {"UE_CONTROLLER": "ue_controller", "RAW": "raw"},
    enums.ControlSource: {"ZMQ": "zmq", "UI": "ui"},
    enums.ActuatorType: {
        "MOTOR": "motor", "POSITION": "position", "VELOCITY": "velocity", "INT_VELOCITY": "intvelocity",
        "DAMPER": "damper", "CYLINDER": "cylinder", "MUSCLE": "muscle", "ADHESION": "adhesion",
        "DC_MOTOR": "dcmotor", "GENERAL": "general",
    },
    enums.ControllerKind: {"PD": "pd", "PASSTHROUGH": "passthrough"},
    enums.CameraMode: {"REAL": "real", "DEPTH": "depth", "SEMANTIC": "semantic", "INSTANCE": "instance"},
    enums.CameraTiming: {"SYNC": "sync", "LATEST": "latest"},
    enums.ObservationLevel: {"MINIMAL": "minimal", "STANDARD": "standard", "FULL": "full"},
    enums.PIEState: {
        "OFF": "off", "COMPILING": "compiling", "COMPILE_FAILED": "compile_failed", "TIMEOUT": "timeout",
        "READY": "ready",
    },
    enums.LightKind: {"DIRECTIONAL": "directional", "POINT": "point", "SPOT": "spot"},
    enums.Encoding: {"MSGPACK": "msgpack", "JSON": "json"},
    enums.OpCategory: {
        "EDITOR_ONLY": "editor_only", "MANAGER_REQUIRED": "manager_required", "NO_MANAGER": "no_manager",
    },
}  # fmt: skip


@pytest.mark.parametrize("enum", WORDS, ids=lambda enum: enum.__name__)
def test_members_and_words_are_those_of_the_reference(enum: type[StrEnum]) -> None:
    assert {member.name: member.value for member in enum} == WORDS[enum]


@pytest.mark.parametrize("enum", WORDS, ids=lambda enum: enum.__name__)
def test_a_member_is_its_word_in_python_and_on_the_wire(enum: type[StrEnum]) -> None:
    for member in enum:
        assert member == str(member) == member.value
        assert msgpack.unpackb(encode({"word": member})) == {"word": member.value}
