"""The words of the protocol, and how to turn strings into them and back."""

import logging
from enum import StrEnum
from typing import TypeVar

from urlab_wire.enums import (
    ActuatorType,
    CameraMode,
    CameraTiming,
    ControllerKind,
    ControlMode,
    ControlSource,
    ExportState,
    LightKind,
    ObservationLevel,
    PIEState,
    SpaceMode,
    StepMode,
)

__all__ = [
    "ActuatorType",
    "CameraMode",
    "CameraTiming",
    "ControlMode",
    "ControlSource",
    "ControllerKind",
    "ExportState",
    "LightKind",
    "ObservationLevel",
    "PIEState",
    "SpaceMode",
    "StepMode",
    "coerce",
    "wire",
]

Word = TypeVar("Word", bound=StrEnum)

_log = logging.getLogger(__name__)


def coerce(cls: type[Word], value: str | None, *, default: Word | None = None) -> Word:
    """The member of ``cls`` that a wire word names; None gives ``default``.

    Raises ValueError on an unknown word (and logs it, for debugging) or on None without a default, TypeError on other
    types.
    """
    if isinstance(value, cls):
        return value
    if value is None and default is not None:
        return default
    if value is None:
        raise ValueError(f"a {cls.__name__} is needed: choose one of {', '.join(cls)}")
    if not isinstance(value, str):
        raise TypeError(f"{cls.__name__} is a string or a member, not {type(value).__name__}")
    try:
        return cls(value)
    except ValueError:
        _log.debug("Unknown %s wire value %r", cls.__name__, value)
        raise ValueError(f"{value!r} is no {cls.__name__}: choose one of {', '.join(cls)}") from None


def wire(value: str) -> str:
    """The plain string that travels, of a member or of a string."""
    return value.value if isinstance(value, StrEnum) else value
