"""Counting what the sockets bring, and rates out of it: over the last while, or since the beginning."""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from urlab_client.transports import find_key
from urlab_client.transports.zmq_streams import Message, StreamListener

Value = TypeVar("Value")


class Tally(NamedTuple):
    """How many messages there were so far, and how many bytes they had together."""

    messages: int
    bytes: int


class Rate(NamedTuple):
    """Messages and bytes per second."""

    hz: float
    bytes_per_s: float


class Samples(Generic[Value]):
    """The first and the last of some timed values. ``span_s`` forgets what is older; None forgets nothing."""

    def __init__(self, span_s: float | None) -> None:
        self._span_s = span_s
        self._samples: deque[tuple[float, Value]] = deque()

    def add(self, at_s: float, value: Value) -> None:
        """Take the next value; times only grow."""
        samples = self._samples
        if self._span_s is None and len(samples) > 1:
            samples.pop()
        samples.append((at_s, value))
        while self._span_s is not None and len(samples) > 2 and samples[1][0] <= at_s - self._span_s:
            samples.popleft()

    def ends(self) -> tuple[tuple[float, Value], tuple[float, Value]] | None:
        """Both ends with their times; None before there are two."""
        return (self._samples[0], self._samples[-1]) if len(self._samples) > 1 else None

    def clear(self) -> None:
        """Forget all samples."""
        self._samples.clear()


class RateWindow(Samples[Mapping[str, Tally]]):
    """Rates out of tallies."""

    @property
    def seconds(self) -> float:
        """How long the window is."""
        ends = self.ends()
        return 0.0 if ends is None else ends[1][0] - ends[0][0]

    def rates(self) -> dict[str, Rate]:
        """By the names of the last tallies; zero for what has not come in this window."""
        ends = self.ends()
        if ends is None or self.seconds <= 0:
            return {}
        (_, before), (_, now) = ends
        return {name: _rate(before.get(name, Tally(0, 0)), tally, self.seconds) for name, tally in now.items()}


class Pace:
    """How fast simulated time runs. Steps back (a reset, a new scene) count as nothing."""

    def __init__(self, span_s: float | None) -> None:
        self._samples: Samples[float] = Samples(span_s)
        self._newest: tuple[float, float] | None = None
        self._sim_s = self._wall_s = 0.0

    def add(self, sim_s: float, wall_s: float) -> None:
        """Take the time of a state and when the server published it; the same one again changes nothing."""
        if self._newest is not None:
            sim_passed, wall_passed = sim_s - self._newest[0], wall_s - self._newest[1]
            if sim_passed >= 0 and wall_passed > 0:
                self._sim_s += sim_passed
                self._wall_s += wall_passed
        if self._newest is None or wall_s != self._newest[1]:
            self._samples.add(self._wall_s, self._sim_s)
        self._newest = sim_s, wall_s

    def clear(self) -> None:
        """Forget all samples."""
        self._samples.clear()
        self._newest = None

    def factor(self) -> float | None:
        """Simulated seconds per second; None while that is not known."""
        ends = self._samples.ends()
        if ends is None or ends[1][0] <= ends[0][0]:
            return None
        (first_s, first_sim_s), (last_s, last_sim_s) = ends
        return (last_sim_s - first_sim_s) / (last_s - first_s)


def _rate(before: Tally, now: Tally, seconds: float) -> Rate:
    return Rate((now.messages - before.messages) / seconds, (now.bytes - before.bytes) / seconds)


@dataclass(frozen=True, slots=True)
class StreamSubscription:
    """What is wanted from an endpoint, and the topic whose newest payload is stored. ``queue`` is in messages."""

    endpoint: str
    topics: tuple[str, ...]
    stored_topic: str
    queue: int


class TopicCounter:
    """A channel of a `StreamListener` that counts by topic; ``newest`` is the last payload of the stored topic.

    Sizes are those of whole messages, topic and payload. It is fed on the listener's thread; any thread may read.
    """

    def __init__(self, wanted: StreamSubscription) -> None:
        self.endpoint, self.queue = wanted.endpoint, wanted.queue
        self.topics = tuple(topic.encode() for topic in wanted.topics)
        self.newest: bytes | None = None
        self._stored_topic = wanted.stored_topic.encode()
        self._lock = threading.Lock()
        self._counts: dict[bytes, list[int]] = {}

    def feed(self, message: Message) -> None:
        """Count one message; what is not topic and payload is ignored."""
        if len(message) != 2:
            return
        topic = message[0].bytes.rstrip(b" ")
        with self._lock:
            count = self._counts.setdefault(topic, [0, 0])
            count[0] += 1
            count[1] += len(message[0]) + len(message[1])
        if topic == self._stored_topic:
            self.newest = message[1].bytes

    def flush(self) -> None:
        """Part of a channel's interface: this one holds nothing back."""

    def tallies(self) -> dict[str, Tally]:
        """What came so far, by topic."""
        with self._lock:
            return {topic.decode(errors="replace"): Tally(*count) for topic, count in self._counts.items()}


class Subscriptions:
    """Counts what some subscriptions bring, on a thread of its own until `stop`.

    What was counted stays counted when one goes and comes back.
    """

    def __init__(self) -> None:
        self._counters: dict[StreamSubscription, TopicCounter] = {}
        self._followed: list[StreamSubscription] = []
        self._listener: StreamListener | None = None

    def follow(self, wanted: Sequence[StreamSubscription]) -> None:
        """Listen to these and no others. Nothing happens where nothing changed."""
        if list(wanted) == self._followed:
            return
        self.stop()
        self._followed, self._listener = list(wanted), StreamListener("urlab-watch", find_key(None))
        for one in wanted:
            self._listener.add(self._counters.setdefault(one, TopicCounter(one)))

    def stop(self) -> None:
        """Listen to nothing."""
        if self._listener is not None:
            self._listener.stop()
        self._followed, self._listener = [], None

    @property
    def all_have_data(self) -> bool:
        """Whether each of them has brought something."""
        return all(self._counters[one].tallies() for one in self._followed)

    def newest(self, subscription: StreamSubscription) -> bytes | None:
        """The newest payload that is stored of a subscription, the same object until there is a newer one."""
        counter = self._counters.get(subscription)
        return None if counter is None else counter.newest

    def tallies(self) -> dict[str, Tally]:
        """What came so far from all of them, by topic."""
        total: dict[str, Tally] = {}
        for counter in self._counters.values():
            for topic, tally in counter.tallies().items():
                before = total.get(topic, Tally(0, 0))
                total[topic] = Tally(before.messages + tally.messages, before.bytes + tally.bytes)
        return total
