"""The publishers and subscriptions of one scene, and how much goes over each topic."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from urlab.ros2 import messages
from urlab.ros2.backend import AttributedSubscription, Backend, Publisher, Subscription
from urlab.ros2.convert.cameras import BadPicture, Picture, camera_info, camera_transform, compressed, image
from urlab.ros2.convert.robots import SceneChanged
from urlab.ros2.qos import RELIABLE, TF, Qos, QosRule
from urlab.ros2.topics import TF_MESSAGE, CameraTopics, CommandTopic, SceneTopics, TopicNames
from urlab_client.transports.zmq_streams import ControlSender
from urlab_wire.stream_messages import StateFull

log = logging.getLogger("urlab.ros2")

_LOGGED_EACH = 100
"""Of commands or pictures that are refused one after the other, so many are counted for one that is logged."""


# -- counting ----------------------------------------------------------------------------------------------------------


@dataclass
class TopicStatistics:
    """One topic. ``subscribers`` is None for topics that the bridge subscribes to; ``refused`` counts bad commands."""

    type_name: str
    subscribers: int | None
    messages: int = 0
    refused: int = 0
    rate_hz: float = 0.0


class TopicRegistry:
    """The topics that are open: their messages are counted, and rules change how they are delivered.

    Of several rules that fit a topic, the later ones win. Any thread may use it.
    """

    def __init__(self, rules: Iterable[QosRule] = ()) -> None:
        self._rules = tuple(rules)
        self._used_patterns: set[str] = set()
        self._lock = threading.Lock()
        self._topics: dict[str, TopicStatistics] = {}
        self._messages_before: dict[str, int] = {}
        self._sampled_s = time.monotonic()

    @property
    def unused_patterns(self) -> list[str]:
        """The patterns of those rules that no topic has fitted so far."""
        return [rule.pattern for rule in self._rules if rule.pattern not in self._used_patterns]

    def open(self, topic: str, type_name: str, qos: Qos, *, is_command: bool = False) -> Qos:
        """A topic is there from now on; returns how it is delivered: as usual (``qos``), or as the rules say."""
        with self._lock:
            self._topics.setdefault(topic, TopicStatistics(type_name, None if is_command else 0))
        for rule in self._rules:
            if fnmatchcase(topic, rule.pattern):
                self._used_patterns.add(rule.pattern)
                qos = replace(qos, **rule.changes)  # type: ignore[arg-type]  # fields of Qos, by parse_rule
        return qos

    def count(self, topic: str, *, refused: bool = False) -> None:
        """One message, or one that was refused; nothing once the topic has gone."""
        with self._lock:
            one = self._topics.get(topic)
            if one is not None:
                one.messages += 1
                one.refused += refused

    def clear(self) -> None:
        """The topics of a scene have gone."""
        with self._lock:
            self._topics.clear()
            self._messages_before.clear()

    def sample(self, subscribers: dict[str, int]) -> dict[str, TopicStatistics]:
        """All topics, with their rates since the last sample and the given numbers of subscribers."""
        now_s = time.monotonic()
        with self._lock:
            passed_s, self._sampled_s = max(now_s - self._sampled_s, 1e-6), now_s
            for topic, one in self._topics.items():
                one.rate_hz = (one.messages - self._messages_before.get(topic, 0)) / passed_s
                one.subscribers = subscribers.get(topic, one.subscribers)
                self._messages_before[topic] = one.messages
            return {topic: replace(one) for topic, one in self._topics.items()}


# -- publishing --------------------------------------------------------------------------------------------------------


class TopicPublisher:
    """One message to all topics of the same content; nothing is made while no topic has a subscriber."""

    def __init__(self, backend: Backend, registry: TopicRegistry, names: TopicNames, type_name: str, qos: Qos) -> None:
        self._registry = registry
        self._type_name = type_name
        self._publishers: dict[str, Publisher] = {}
        try:
            for name in names:
                self._publishers[name] = backend.publisher(name, type_name, registry.open(name, type_name, qos))
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> str:
        """Its topics, to be read."""
        return ", ".join(self._publishers)

    @property
    def has_subscribers(self) -> bool:
        """Whether any of its topics has a subscriber."""
        return any(one.subscribers for one in self._publishers.values())

    @property
    def subscribers(self) -> dict[str, int]:
        """How many subscribers there are, by topic."""
        return {name: one.subscribers for name, one in self._publishers.items()}

    def publish(self, make: Callable[[], Any], *, always: bool = False) -> None:
        """Send a message to those topics that have subscribers; ``always`` is for those that are latched."""
        wanted = [(name, one) for name, one in self._publishers.items() if always or one.subscribers]
        if not wanted:
            return
        cdr = messages.serialise(make(), self._type_name)
        for name, publisher in wanted:
            publisher.publish(cdr)
            self._registry.count(name)

    def close(self) -> None:
        """Withdraw the topics."""
        for publisher in self._publishers.values():
            publisher.close()


class CameraTopicPublisher:
    """A camera's topics: pictures, intrinsics, compressed pictures, and its place in tf if it follows something."""

    def __init__(self, backend: Backend, registry: TopicRegistry, topics: CameraTopics) -> None:
        self.topics = topics
        self._refused = 0
        with contextlib.ExitStack() as undo:
            self._image, self._info, self._compressed = (
                _closed_by(undo, TopicPublisher(backend, registry, *published)) for published in topics.published
            )
            self._place = TopicPublisher(backend, registry, ("/tf",), TF_MESSAGE, TF) if topics.follows else None
            undo.pop_all()

    @property
    def publishers(self) -> list[TopicPublisher]:
        """One for each kind of message."""
        return [self._image, self._info, self._compressed, *([self._place] if self._place else [])]

    @property
    def has_subscribers(self) -> bool:
        """Whether the camera has to be drawn."""
        return any(one.has_subscribers for one in (self._image, self._info, self._compressed))

    def show(
        self,
        data: bytes | memoryview,
        meta: Mapping[str, Any] | None = None,
        skipped: int = 0,  # noqa: ARG002
    ) -> None:
        """Publish a picture of the camera's stream; one that cannot be understood is logged and left out."""
        if meta is None:
            return
        try:
            self._publish(Picture.of_wire(data, meta))
            self._refused = 0
        except BadPicture as bad:
            if self._refused % _LOGGED_EACH == 0:
                log.warning("%s: %s", self.topics.view.full_name, bad)
            self._refused += 1

    def _publish(self, picture: Picture) -> None:
        frame_id = self.topics.frame_id
        if self._place is not None:
            transform = camera_transform(picture, frame_id)
            self._place.publish(lambda: messages.make(TF_MESSAGE, transforms=[transform]))
        self._info.publish(lambda: camera_info(picture, frame_id))
        self._image.publish(lambda: image(picture, frame_id))
        self._compressed.publish(lambda: compressed(picture, frame_id))

    def close(self) -> None:
        """Withdraw the topics."""
        for publisher in self.publishers:
            publisher.close()


class ScenePublishers:
    """Every publisher and subscription of one scene, from construction to `close`.

    ``control`` takes the commands; without it none are subscribed to.
    """

    def __init__(
        self, backend: Backend, registry: TopicRegistry, topics: SceneTopics, control: ControlSender | None
    ) -> None:
        self._registry = registry
        self._control = control
        self._failed: set[TopicPublisher] = set()
        with contextlib.ExitStack() as undo:
            self._states = [
                (one.convert, _closed_by(undo, TopicPublisher(backend, registry, one.names, one.type_name, one.qos)))
                for one in topics.states
            ]
            self.cameras = [_closed_by(undo, CameraTopicPublisher(backend, registry, one)) for one in topics.cameras]
            self._constants = [
                (one.message, _closed_by(undo, TopicPublisher(backend, registry, one.names, one.type_name, one.qos)))
                for one in topics.constants
            ]
            for command in topics.commands if control is not None else []:
                for name in command.names:
                    _closed_by(undo, self._subscribe(backend, name, command))
            for message, publisher in self._constants:
                publisher.publish(lambda message=message: message, always=True)
            self._undo = undo.pop_all()

    @property
    def has_subscribers(self) -> bool:
        """Whether any topic of states has a subscriber."""
        return any(publisher.has_subscribers for _, publisher in self._states)

    def publish(self, state: StateFull) -> None:
        """Publish all messages of a state; `SceneChanged` when it is another scene's.

        A topic whose message cannot be made for another reason is logged once, and keeps no other from being published.
        """
        for make, publisher in self._states:
            try:
                publisher.publish(lambda make=make: make(state))
            except SceneChanged:
                raise
            except Exception:
                if publisher not in self._failed:
                    self._failed.add(publisher)
                    log.exception("nothing can be said on %s", publisher.names)

    @property
    def subscribers(self) -> dict[str, int]:
        """How many subscribers there are, by topic."""
        publishers: Iterable[TopicPublisher] = [
            *(publisher for _, publisher in (*self._states, *self._constants)),
            *(publisher for camera in self.cameras for publisher in camera.publishers),
        ]
        return {name: count for publisher in publishers for name, count in publisher.subscribers.items()}

    def close(self) -> None:
        """Withdraw every topic. Once is enough."""
        self._undo.close()

    def _subscribe(self, backend: Backend, name: str, command: CommandTopic) -> Subscription:
        qos = self._registry.open(name, command.type_name, RELIABLE, is_command=True)
        subscription: Subscription | None = None
        refused = 0

        def take(cdr: bytes) -> None:
            nonlocal refused
            try:
                topic, payload = command.read(messages.deserialise(cdr, command.type_name))
            except Exception as bad:  # noqa: BLE001 - whatever is wrong with a message, the next one counts
                self._registry.count(name, refused=True)
                if refused % _LOGGED_EACH == 0:
                    log.warning("a command on %s%s is refused: %s", name, _origin(subscription), bad)
                refused += 1
                return
            if self._control is not None:
                self._control.send(topic, payload)
            self._registry.count(name)
            refused = 0

        subscription = backend.subscription(name, command.type_name, qos, take)
        return subscription


def _origin(subscription: Subscription | None) -> str:
    """Which publisher wrote the message that is being delivered, to be read; nothing where it cannot be known."""
    source = subscription.source() if isinstance(subscription, AttributedSubscription) else None
    return f" by the publisher {source}" if source else ""


def _closed_by(undo: contextlib.ExitStack, one: Any) -> Any:
    undo.callback(one.close)
    return one
