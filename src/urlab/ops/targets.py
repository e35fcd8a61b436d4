"""How requests name an actor."""

from typing import Protocol

from urlab.errors import BadValue, known

_WORDS = ("actor_id", "actor_name")


class Targeted(Protocol):
    """A request that names an actor."""

    target: str
    target_by: str | None


def by_name(request: Targeted) -> bool:
    """Whether the target is a name only, and not an actor_id either."""
    word = request.target_by or _WORDS[0]
    if word not in _WORDS:
        raise BadValue(f"target_by must be one of {known(_WORDS)}, not {word!r}")
    return word == _WORDS[1]
