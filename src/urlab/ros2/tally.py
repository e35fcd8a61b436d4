"""How much went over each topic."""

import threading
import time
from dataclasses import dataclass, replace


@dataclass
class TopicTally:
    """One topic. ``subscribers`` is None for topics that the bridge hears; ``refused`` counts bad commands."""

    type_name: str
    subscribers: int | None
    messages: int = 0
    refused: int = 0
    rate_hz: float = 0.0


class Tally:
    """Counts by topic. Any thread may use it."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._topics: dict[str, TopicTally] = {}
        self._seen: dict[str, int] = {}
        self._at_s = time.monotonic()

    def open(self, topic: str, type_name: str, *, heard: bool = False) -> None:
        """A topic is there from now on."""
        with self._turn:
            self._topics.setdefault(topic, TopicTally(type_name, None if heard else 0))

    def count(self, topic: str, *, refused: bool = False) -> None:
        """One message, or one that was refused; nothing once the topic has gone."""
        with self._turn:
            one = self._topics.get(topic)
            if one is not None:
                one.messages += 1
                one.refused += refused

    def forget(self) -> None:
        """The topics of a scene have gone."""
        with self._turn:
            self._topics.clear()
            self._seen.clear()

    def look(self, subscribers: dict[str, int]) -> dict[str, TopicTally]:
        """All topics, with their rates since the last look and how many listen now."""
        now_s = time.monotonic()
        with self._turn:
            passed_s, self._at_s = max(now_s - self._at_s, 1e-6), now_s
            for topic, one in self._topics.items():
                one.rate_hz = (one.messages - self._seen.get(topic, 0)) / passed_s
                one.subscribers = subscribers.get(topic, one.subscribers)
                self._seen[topic] = one.messages
            return {topic: replace(one) for topic, one in self._topics.items()}
