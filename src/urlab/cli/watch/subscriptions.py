"""Listening at several endpoints, which may move while one listens."""

from collections.abc import Sequence
from dataclasses import dataclass

from urlab.cli.watch.meter import Meter
from urlab.cli.watch.window import Tally
from urlab_client.live import Listener


@dataclass(frozen=True, slots=True)
class Subscription:
    """What is wanted from an endpoint; the newest payload of the topic ``kept`` is. ``queue`` is in messages."""

    endpoint: str
    topics: tuple[str, ...]
    kept: str
    queue: int


class Subscriptions:
    """Counts what some subscriptions bring, on a thread of its own until `stop`.

    What was counted stays counted when one goes and comes back.
    """

    def __init__(self) -> None:
        self._meters: dict[Subscription, Meter] = {}
        self._followed: list[Subscription] = []
        self._listener: Listener | None = None

    def follow(self, wanted: Sequence[Subscription]) -> None:
        """Listen to these and no others. Nothing happens where nothing changed."""
        if list(wanted) == self._followed:
            return
        self.stop()
        self._followed, self._listener = list(wanted), Listener("urlab-watch")
        for one in wanted:
            self._listener.add(self._meters.setdefault(one, Meter(one.endpoint, one.topics, one.kept, one.queue)))

    def stop(self) -> None:
        """Listen to nothing."""
        if self._listener is not None:
            self._listener.stop()
        self._followed, self._listener = [], None

    @property
    def all_have_spoken(self) -> bool:
        """Whether each of them has brought something."""
        return all(self._meters[one].tallies() for one in self._followed)

    def newest(self, subscription: Subscription) -> bytes | None:
        """The newest payload that is kept of a subscription, the same object until there is a newer one."""
        meter = self._meters.get(subscription)
        return None if meter is None else meter.newest

    def tallies(self) -> dict[str, Tally]:
        """What came so far from all of them, by topic."""
        total: dict[str, Tally] = {}
        for meter in self._meters.values():
            for topic, tally in meter.tallies().items():
                before = total.get(topic, Tally(0, 0))
                total[topic] = Tally(before.messages + tally.messages, before.bytes + tally.bytes)
        return total
