"""Checks that several handlers share; each failure names the field and what would be right."""

from enum import StrEnum
from typing import Protocol, TypeVar

from urlab.errors import BadValue, MissingField, known

Word = TypeVar("Word", bound=StrEnum)
_TARGET_WORDS = ("actor_id", "actor_name")


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


class Targeted(Protocol):
    """A request that names an actor."""

    target: str
    target_by: str | None


def by_name(request: Targeted) -> bool:
    """Whether the target is a name only, and not an actor_id either."""
    word = request.target_by or _TARGET_WORDS[0]
    if word not in _TARGET_WORDS:
        raise BadValue(f"target_by must be one of {known(_TARGET_WORDS)}, not {word!r}")
    return word == _TARGET_WORDS[1]
