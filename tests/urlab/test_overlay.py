"""The list of drawings and texts."""

import threading

import pytest

from urlab.errors import BadValue
from urlab.overlay import (
    ANCHORS,
    MAX_CHOICES,
    MAX_DRAWINGS,
    ONCE_LIMIT_S,
    TEXT_TTL_S,
    Drawing,
    Line,
    Marker,
    Overlay,
    ViewChoice,
)

RED = (1.0, 0.0, 0.0)


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def overlay(clock: Clock) -> Overlay:
    """An overlay that the view "eye" draws."""
    made = Overlay(clock)
    made.add_view("eye")
    return made


def marker(x: float, *, ttl_s: float = -1.0, tag: str = "") -> Marker:
    return Marker((x, 0.0, 0.0), RED, ttl_s=ttl_s, tag=tag)


def test_drawings_come_in_the_order_in_which_they_were_made(overlay: Overlay) -> None:
    made: list[Drawing] = [marker(1), Line((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), RED, ttl_s=5.0), marker(2)]
    for one in made:
        overlay.add(one)
    assert overlay.take("eye").items == tuple(made)
    assert overlay.take("eye").items == tuple(made)


def test_a_choice_keeps_what_is_chosen_while_it_is_offered_and_ends_when_it_is_not(
    overlay: Overlay, clock: Clock
) -> None:
    assert overlay.offer_choice("worker", ["1", "2"]) == "1"
    assert overlay.choose("worker", "2") == "2"
    clock.now_s += TEXT_TTL_S - 0.01
    assert overlay.offer_choice("worker", ["1", "2", "3"]) == "2"
    assert overlay.take("eye").choices == {"worker": ViewChoice(("1", "2", "3"), "2")}
    assert overlay.offer_choice("worker", ["1", "3"]) == "1"
    clock.now_s += TEXT_TTL_S + 0.01
    assert overlay.take("eye").choices == {}
    overlay.offer_choice("worker", ["1"])
    assert overlay.offer_choice("worker", []) is None
    assert overlay.take("eye").choices == {}


def test_a_choice_that_cannot_be_is_refused_and_changes_nothing(overlay: Overlay) -> None:
    overlay.offer_choice("worker", ["1", "2"])
    with pytest.raises(BadValue, match="no two the same"):
        overlay.offer_choice("worker", ["1", "1"])
    with pytest.raises(BadValue, match="256"):
        overlay.offer_choice("worker", [str(number) for number in range(300)])
    with pytest.raises(BadValue, match="worker is one of 1, 2, not '3'"):
        overlay.choose("worker", "3")
    with pytest.raises(BadValue, match="no choice 'robot': worker"):
        overlay.choose("robot", "3")
    for number in range(MAX_CHOICES - 1):
        overlay.offer_choice(f"choice {number}", ["1"])
    with pytest.raises(BadValue, match="16 choices already"):
        overlay.offer_choice("one more", ["1"])
    assert overlay.offer_choice("worker", ["1", "2"]) == "1"


def test_a_positive_ttl_ends_after_that_many_wall_seconds(overlay: Overlay, clock: Clock) -> None:
    overlay.add(marker(1, ttl_s=2.0))
    clock.now_s += 1.99
    assert len(overlay.take("eye").items) == 1
    clock.now_s += 0.02
    assert overlay.take("eye").items == ()


def test_a_negative_ttl_stays_until_cleared(overlay: Overlay, clock: Clock) -> None:
    overlay.add(marker(1, ttl_s=-0.5))
    clock.now_s += 1e7
    assert len(overlay.take("eye").items) == 1
    overlay.clear()
    assert overlay.take("eye").items == ()


def test_a_ttl_of_0_is_drawn_once_by_each_view(overlay: Overlay) -> None:
    overlay.add_view("other")
    overlay.add(marker(1, ttl_s=0.0))
    shown = [len(overlay.take(view).items) for view in ("eye", "eye", "other", "other", "eye")]
    assert shown == [1, 0, 1, 0, 0]


def test_a_view_that_comes_later_does_not_get_what_was_meant_for_one_picture(overlay: Overlay) -> None:
    overlay.add(marker(1, ttl_s=0.0))
    overlay.add(marker(2, ttl_s=-1.0))
    assert overlay.take("late").items == (marker(2, ttl_s=-1.0),)
    overlay.add(marker(3, ttl_s=0.0))
    assert overlay.take("late").items == (marker(2, ttl_s=-1.0), marker(3, ttl_s=0.0))


def test_a_ttl_of_0_does_not_wait_for_ever_for_a_view_that_draws_nothing(overlay: Overlay, clock: Clock) -> None:
    overlay.add(marker(1, ttl_s=0.0))
    clock.now_s += ONCE_LIMIT_S + 0.01
    assert overlay.take("eye").items == ()


def test_a_view_that_was_removed_is_not_waited_for(overlay: Overlay, clock: Clock) -> None:
    overlay.add_view("gone")
    overlay.remove_view("gone")
    overlay.add(marker(1, ttl_s=0.0))
    assert len(overlay.take("eye").items) == 1
    assert overlay.take("gone").items == ()


def test_clearing_a_tag_leaves_the_others(overlay: Overlay) -> None:
    for tag in ("a", "b", ""):
        overlay.add(marker(1, tag=tag))
    overlay.clear("a")
    assert [one.tag for one in overlay.take("eye").items] == ["b", ""]
    overlay.clear()
    assert overlay.take("eye").items == ()


def test_beyond_the_limit_the_oldest_go(overlay: Overlay) -> None:
    for x in range(MAX_DRAWINGS + 3):
        overlay.add(marker(float(x)))
    items = overlay.take("eye").items
    assert len(items) == MAX_DRAWINGS
    assert items[0] == marker(3.0)
    assert items[-1] == marker(MAX_DRAWINGS + 2.0)


@pytest.mark.parametrize("anchor", ANCHORS)
def test_each_anchor_has_a_text_of_its_own(anchor: str, overlay: Overlay) -> None:
    overlay.set_text("first", anchor)
    overlay.set_text("second", anchor)
    overlay.set_text("elsewhere", next(one for one in ANCHORS if one != anchor))
    texts = overlay.take("eye").texts
    assert (texts[anchor], len(texts)) == ("second", 2)


def test_a_text_is_shown_for_ten_seconds_from_when_it_was_last_set(overlay: Overlay, clock: Clock) -> None:
    overlay.set_text("old")
    clock.now_s += TEXT_TTL_S - 1
    overlay.set_text("new")
    clock.now_s += TEXT_TTL_S - 1
    assert overlay.take("eye").texts == {"top_left": "new"}
    clock.now_s += 1.01
    assert overlay.take("eye").texts == {}


def test_an_empty_text_clears_its_anchor_only(overlay: Overlay) -> None:
    overlay.set_text("a", "top")
    overlay.set_text("b", "bottom")
    overlay.set_text("", "top")
    assert overlay.take("eye").texts == {"bottom": "b"}


def test_an_unknown_anchor_is_refused_with_those_that_exist(overlay: Overlay) -> None:
    with pytest.raises(
        BadValue, match=r"bottom, bottom_left, bottom_right, center, top, top_left, top_right, not 'up'"
    ):
        overlay.set_text("x", "up")


def test_texts_labels_and_tags_of_absurd_length_are_refused(overlay: Overlay) -> None:
    with pytest.raises(BadValue, match="text may have 4000 characters, but has 4001"):
        overlay.set_text("x" * 4001)
    with pytest.raises(BadValue, match="tag may have 200"):
        overlay.add(marker(1, tag="x" * 201))
    with pytest.raises(BadValue, match="label may have 200"):
        overlay.add(Marker((0.0, 0.0, 0.0), RED, "x" * 201))
    assert overlay.take("eye").items == ()


def test_threads_may_draw_and_look_at_once(overlay: Overlay) -> None:
    seen: list[int] = []

    def draw(start: int) -> None:
        for x in range(500):
            overlay.add(marker(start + x, ttl_s=0.0))

    artists = [threading.Thread(target=draw, args=(1000 * k,)) for k in range(4)]
    for artist in artists:
        artist.start()
    while any(artist.is_alive() for artist in artists):
        seen += [int(one.location[0]) for one in overlay.take("eye").items if isinstance(one, Marker)]
    seen += [int(one.location[0]) for one in overlay.take("eye").items if isinstance(one, Marker)]
    assert sorted(seen) == [1000 * k + x for k in range(4) for x in range(500)]
