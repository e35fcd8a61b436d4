"""What a service answers beside its data: a code, and a sentence that says what is wrong and what to do."""

from enum import IntEnum
from typing import Any

from urlab.ros2.messages import make
from urlab.ros2.simulation_messages import PACKAGE

_RESULT = f"{PACKAGE}/msg/Result"


class Code(IntEnum):
    """The codes that all services share; those above 100 belong to one service each."""

    FEATURE_UNSUPPORTED = 0
    OK = 1
    NOT_FOUND = 2
    INCORRECT_STATE = 3
    OPERATION_FAILED = 4


class SetStateCode(IntEnum):
    """Those of SetSimulationState."""

    ALREADY_IN_TARGET_STATE = 101
    STATE_TRANSITION_ERROR = 102
    INCORRECT_TRANSITION = 103


class SpawnCode(IntEnum):
    """Those of SpawnEntity."""

    NAME_NOT_UNIQUE = 101
    NAME_INVALID = 102
    UNSUPPORTED_FORMAT = 103
    NO_RESOURCE = 104
    NAMESPACE_INVALID = 105
    RESOURCE_PARSE_ERROR = 106
    INVALID_POSE = 109


INVALID_POSE = 101
"""That of SetEntityState."""


class Refused(Exception):
    """A request that cannot be done; ``code`` and ``message`` are what the caller is told."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = int(code)
        self.message = message


def result(code: int = Code.OK, message: str = "") -> Any:
    """A Result message."""
    return make(_RESULT, result=int(code), error_message=message)
