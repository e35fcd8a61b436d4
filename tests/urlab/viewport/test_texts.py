"""Texts in a picture."""

from typing import Any

import pytest

from urlab.overlay import ANCHORS, TEXT_TTL_S, Line, Marker

WHITE, BLACK, RED = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)
THIRDS = {"left": 0, "top": 0, "center": 1, "right": 2, "bottom": 2}


def third(low: float, high: float, size: float) -> int:
    """Which third of a side something lies in; -1 when it lies in more than one."""
    first, last = int(3 * low / size), int(3 * (high - 1) / size)
    return first if first == last else -1


@pytest.mark.parametrize("anchor", ANCHORS)
def test_a_text_stands_at_its_anchor(anchor: str, studio: Any) -> None:
    studio.overlay.set_text("step 12", anchor)
    spot = studio.find(WHITE, studio.picture(width=640, height=360), tolerance=60)
    vertical, _, horizontal = anchor.partition("_")
    left, top, right, bottom = spot.box
    assert spot.count > 50
    assert third(left, right, 640) == THIRDS[horizontal or "center"]
    assert third(top, bottom, 360) == THIRDS[vertical]


@pytest.mark.parametrize("anchor", ANCHORS)
def test_a_long_text_of_many_lines_stays_inside_the_picture(anchor: str, studio: Any) -> None:
    studio.overlay.set_text("the quick brown fox " * 20 + "\nsecond\n\tthird", anchor)
    spot = studio.find(WHITE, studio.picture(width=640, height=360), tolerance=60)
    left, top, right, bottom = spot.box
    assert 2 < left < right < 638
    assert 2 < top < bottom < 358
    assert right - left > 500


def test_letters_have_a_dark_rim_so_that_they_can_be_read_on_white(studio: Any) -> None:
    studio.show("<geom type='box' size='.1 9 9' rgba='1 1 1 1'/>", mode="unlit")
    bare = studio.picture()
    assert studio.find(BLACK, bare).count == 0
    studio.overlay.set_text("step 12")
    assert studio.find(BLACK, tolerance=40).count > 40


def test_a_text_lasts_ten_seconds_and_an_empty_one_clears_it(studio: Any) -> None:
    studio.overlay.set_text("one")
    assert studio.find(WHITE).count > 0
    studio.clock.now_s += TEXT_TTL_S
    assert studio.find(WHITE).count == 0
    studio.overlay.set_text("two", "bottom")
    assert studio.find(WHITE).count > 0
    studio.overlay.set_text("", "bottom")
    assert studio.find(WHITE).count == 0


@pytest.mark.parametrize("text", ["\u03b1 → \u03b2, 30°", "日本", "\r\n", " ", "a\x00b", "\n\n\n"])
def test_any_text_can_be_written(text: str, studio: Any) -> None:
    for anchor in ("top_left", "center", "bottom_right"):
        studio.overlay.set_text(text, anchor)
    studio.overlay.add(Marker((0.0, 1.0, -0.5), RED, text))
    assert studio.find(RED).count > 10


def test_letters_grow_with_the_picture(studio: Any) -> None:
    studio.overlay.set_text("H")
    heights = []
    for height in (360, 1080):
        _, top, _, bottom = studio.find(WHITE, studio.picture(width=480, height=height), tolerance=60).box
        heights.append(bottom - top)
    assert heights[1] > 2 * heights[0]


def test_a_label_stands_to_the_right_of_its_marker(studio: Any) -> None:
    studio.overlay.add(Marker((0.0, 0.5, 0.2), RED, "goal"))
    picture = studio.picture(width=640, height=360)
    ball, letters = studio.find(RED, picture), studio.find(WHITE, picture, tolerance=60)
    assert ball.middle == pytest.approx(studio.pixel((0.0, 0.5, 0.2), 640, 360), abs=1)
    assert ball.box[2] <= letters.box[0] <= ball.box[2] + 8
    assert letters.middle[1] == pytest.approx(ball.middle[1], abs=5)


def test_labels_behind_the_camera_or_beside_the_picture_are_not_written(studio: Any) -> None:
    for location in ((-6.0, 0.0, 0.0), (0.0, 50.0, 0.0), (0.0, 0.0, -50.0)):
        studio.overlay.add(Marker(location, RED, "goal"))
    studio.overlay.add(Line((0.0, 1.0, 0.0), (0.0, -1.0, 0.0), RED, 3.0))
    picture = studio.picture()
    assert studio.find(WHITE, picture, tolerance=60).count == 0
    assert studio.find(RED, picture, tolerance=60).count > 0
