"""How topics are delivered: the qualities of service that the bridge uses by convention, and rules that change them.

A rule is ``TOPIC=WORD,...``: ``TOPIC`` is a name or a pattern with ``*``, a word is ``reliable``, ``best_effort``,
``transient_local``, ``volatile`` or ``depth=N``. What a rule does not name stays as it is by convention.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Qos:
    """What a writer offers, or a reader asks for; a history of the last ``depth`` messages is kept in both.

    A reader matches a writer only if it asks for no more than is offered: a reliable reader never matches a
    best-effort writer, a transient-local one never a volatile writer.
    """

    reliable: bool
    transient_local: bool
    depth: int


RELIABLE = Qos(reliable=True, transient_local=False, depth=10)
"""ROS's default for topics and services, and ours: a subscriber with default settings gets data from every topic."""

PICTURES = Qos(reliable=True, transient_local=False, depth=1)
"""Pictures, of which the newest counts. A reader may ask for less, and then gets what fits its buffers."""

LATCHED = Qos(reliable=True, transient_local=True, depth=1)
"""Published once, and kept for later subscribers: a robot's description."""

TF = Qos(reliable=True, transient_local=False, depth=100)
TF_STATIC = Qos(reliable=True, transient_local=True, depth=1)
"""One message per publisher, which holds every fixed transform."""


# -- rules of the user -------------------------------------------------------------------------------------------------

_WORDS: dict[str, dict[str, bool]] = {
    "reliable": {"reliable": True},
    "best_effort": {"reliable": False},
    "transient_local": {"transient_local": True},
    "volatile": {"transient_local": False},
}
_DEEPEST = 10_000


class BadRule(ValueError):
    """A rule that cannot be read; the message says what one looks like."""


@dataclass(frozen=True)
class QosRule:
    """What is different for the topics of a pattern."""

    pattern: str
    changes: dict[str, bool | int]


def parse_rule(text: str) -> QosRule:
    """Read one rule; `BadRule` if that fails."""
    pattern, equals, words = text.partition("=")
    if not equals or not pattern.startswith(("/", "*")):
        raise BadRule(f"{text!r} is not TOPIC=WORD,... with a topic such as /joint_states or */image_raw")
    changes: dict[str, bool | int] = {}
    for word in words.split(","):
        changes |= _read_word(word.strip(), text)
    return QosRule(pattern, changes)


def _read_word(word: str, rule: str) -> dict[str, bool] | dict[str, int]:
    if word in _WORDS:
        return _WORDS[word]
    name, _, number = word.partition("=")
    if name == "depth" and number.isascii() and number.isdigit() and 1 <= int(number) <= _DEEPEST:
        return {"depth": int(number)}
    known = ", ".join((*_WORDS, f"depth=N (1 to {_DEEPEST})"))
    raise BadRule(f"{word!r} in {rule!r} says nothing about a topic's delivery; there are: {known}")
