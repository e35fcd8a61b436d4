"""Publishers: several topics of the same content, made only for subscribers, opened all or none; and their counts."""

from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.backend import BackendError
from urlab.ros2.publishers import TopicPublisher, TopicRegistry
from urlab.ros2.qos import RELIABLE, Qos

STRING = "std_msgs/msg/String"


class Offer:
    def __init__(self) -> None:
        self.subscribers = 0
        self.sent: list[bytes] = []
        self.is_open = True

    def publish(self, cdr: bytes | memoryview) -> None:
        self.sent.append(bytes(cdr))

    def close(self) -> None:
        self.is_open = False


class Board:
    """A backend that keeps what is published, and refuses the topics of its list."""

    name = "board"

    def __init__(self, *refused: str) -> None:
        self.offers: dict[str, Offer] = {}
        self._refused = refused

    def publisher(self, topic: str, type_name: str, qos: Qos) -> Offer:
        assert (type_name, qos) == (STRING, RELIABLE)
        if topic in self._refused:
            raise BackendError(f"no {topic}")
        self.offers[topic] = Offer()
        return self.offers[topic]

    def subscription(self, *_: Any) -> Any:
        raise NotImplementedError

    def service(self, *_: Any) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        pass


def test_a_message_is_made_once_and_only_for_topics_that_are_heard():
    board, registry, made = Board(), TopicRegistry(), []
    publisher = TopicPublisher(board, registry, ("/a", "/b", "/c"), STRING, RELIABLE)

    def make() -> Any:
        made.append(1)
        return messages.make(STRING, data="hello")

    publisher.publish(make)
    assert not made
    assert not publisher.has_subscribers
    board.offers["/a"].subscribers = board.offers["/c"].subscribers = 1
    publisher.publish(make)
    assert len(made) == 1
    assert publisher.subscribers == {"/a": 1, "/b": 0, "/c": 1}
    assert board.offers["/a"].sent == board.offers["/c"].sent
    assert messages.deserialise(board.offers["/a"].sent[0], STRING).data == "hello"
    assert not board.offers["/b"].sent
    counts = {topic: one.messages for topic, one in registry.sample(publisher.subscribers).items()}
    assert counts == {"/a": 1, "/b": 0, "/c": 1}


def test_what_is_latched_is_published_without_subscribers():
    board = Board()
    TopicPublisher(board, TopicRegistry(), ("/a",), STRING, RELIABLE).publish(
        lambda: messages.make(STRING), always=True
    )
    assert len(board.offers["/a"].sent) == 1


def test_when_one_topic_is_refused_the_others_are_withdrawn():
    board = Board("/b")
    with pytest.raises(BackendError):
        TopicPublisher(board, TopicRegistry(), ("/a", "/b"), STRING, RELIABLE)
    assert not board.offers["/a"].is_open


def test_a_message_that_is_late_for_its_scene_is_not_counted():
    board, registry = Board(), TopicRegistry()
    publisher = TopicPublisher(board, registry, ("/a",), STRING, RELIABLE)
    registry.clear()
    publisher.publish(lambda: messages.make(STRING), always=True)
    assert not registry.sample({})


def test_rates_are_since_the_last_look():
    registry = TopicRegistry()
    registry.open("/a", STRING, RELIABLE)
    registry.count("/a")
    first = registry.sample({"/a": 2})["/a"]
    assert first.rate_hz > 0
    assert first.subscribers == 2
    assert registry.sample({})["/a"].rate_hz == 0
    assert first.rate_hz > 0
