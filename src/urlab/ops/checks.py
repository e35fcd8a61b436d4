"""Checks that several handlers share; each failure names the field and what would be right."""

import math
from enum import StrEnum
from typing import TypeVar

from urlab.errors import BadValue, MissingField, known

Word = TypeVar("Word", bound=StrEnum)


def required(field: str, value: str | None) -> str:
    """A field that the protocol checks inside the handler."""
    if not value:
        raise MissingField(f"field {field!r} is missing")
    return value


def one_of(field: str, words: type[Word], value: str) -> Word:
    """The enum member of a wire word, in any case."""
    try:
        return words(value.lower())
    except ValueError:
        raise BadValue(f"{field} must be one of {known(str(word) for word in words)}, not {value!r}") from None


def finite(field: str, value: float) -> float:
    """A number that is one."""
    if not math.isfinite(value):
        raise BadValue(f"{field} must be finite, but is {value}")
    return value
