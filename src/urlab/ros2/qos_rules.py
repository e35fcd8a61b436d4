"""Other qualities of service than the usual ones, where whoever runs the bridge wants them.

A rule is ``TOPIC=WORD,...``: ``TOPIC`` is a name or a pattern with ``*``, a word is ``reliable``, ``best_effort``,
``transient_local``, ``volatile`` or ``depth=N``. What a rule does not name stays as it is by convention.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from urlab.ros2.backend import Backend, OnMessage, Publisher, Serve, Subscription
from urlab.ros2.qos import Qos

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


class RuledBackend:
    """A backend whose topics follow rules; of several that fit, the later ones win. The rest is as the backend's."""

    def __init__(self, backend: Backend, rules: Iterable[QosRule]) -> None:
        self._backend = backend
        self._rules = tuple(rules)
        self._used: set[str] = set()

    @property
    def name(self) -> str:
        """The backend's."""
        return self._backend.name

    @property
    def unused(self) -> list[str]:
        """The patterns of those rules that no topic has fitted so far."""
        return [rule.pattern for rule in self._rules if rule.pattern not in self._used]

    def publisher(self, topic: str, type_name: str, qos: Qos) -> Publisher:
        """Offer a topic, as the rules say."""
        return self._backend.publisher(topic, type_name, self.ruled(topic, qos))

    def subscription(self, topic: str, type_name: str, qos: Qos, on_message: OnMessage) -> Subscription:
        """Listen to a topic, as the rules say."""
        return self._backend.subscription(topic, type_name, self.ruled(topic, qos), on_message)

    def service(self, name: str, type_name: str, serve: Serve) -> Subscription:
        """Serve requests; rules are for topics."""
        return self._backend.service(name, type_name, serve)

    def close(self) -> None:
        """End the backend."""
        self._backend.close()

    def ruled(self, topic: str, qos: Qos) -> Qos:
        """What a topic of that usual quality gets."""
        for rule in self._rules:
            if fnmatchcase(topic, rule.pattern):
                self._used.add(rule.pattern)
                qos = replace(qos, **rule.changes)  # type: ignore[arg-type]  # fields of Qos, by parse_rule
        return qos
