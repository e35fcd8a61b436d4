from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from urlab.transport.subscriptions import Subscriptions


def test_a_topic_is_wanted_when_somebody_subscribed_to_its_beginning() -> None:
    subscriptions = Subscriptions()
    assert not subscriptions
    assert not subscriptions.wants(b"arm/joint/a")
    assert subscriptions.update([b"\1arm/"])
    assert subscriptions
    assert subscriptions.wants(b"arm/joint/a")
    assert not subscriptions.wants(b"arm")
    assert not subscriptions.wants(b"arm-2/joint/a")


def test_the_empty_prefix_wants_everything() -> None:
    subscriptions = Subscriptions()
    subscriptions.update([b"\1"])
    assert subscriptions.wants(b"anything")
    subscriptions.update([b"\0"])
    assert not subscriptions.wants(b"anything")


def test_only_new_prefixes_are_news() -> None:
    subscriptions = Subscriptions()
    assert subscriptions.update([b"\1a", b"\1b"])
    assert not subscriptions.update([b"\1a"])
    assert not subscriptions.update([b"\0a"])
    assert subscriptions.update([b"\1a"])


def test_other_words_are_ignored() -> None:
    subscriptions = Subscriptions()
    assert not subscriptions.update([b"", b"hello", b"\0never", b"\2a"])
    assert not subscriptions


prefixes = st.text("ab", max_size=3).map(str.encode)


@given(st.lists(st.tuples(st.booleans(), prefixes), max_size=30), prefixes)
def test_it_agrees_with_counting_the_words_of_a_socket(words: list[tuple[bool, bytes]], topic: bytes) -> None:
    """A socket speaks of a prefix when its count leaves 0 and when it comes back to 0."""
    subscriptions, counts = Subscriptions(), Counter[bytes]()
    for subscribes, prefix in words:
        if subscribes:
            counts[prefix] += 1
            if counts[prefix] == 1:
                subscriptions.update([b"\1" + prefix])
        elif counts[prefix]:
            counts[prefix] -= 1
            if not counts[prefix]:
                subscriptions.update([b"\0" + prefix])
    assert subscriptions.wants(topic) is any(counts[prefix] and topic.startswith(prefix) for prefix in counts)
