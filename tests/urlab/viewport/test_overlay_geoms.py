"""Every kind of drawing, by what is in the picture."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from urlab.geometry import Pose, wxyz_from_euler_deg
from urlab.overlay import MARKER_RADIUS_M, Arrow, Axes, Drawing, Line, Marker, WireBox

ORANGE = (0.9, 0.5, 0.1)
RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
SUN = "<light pos='-3 0 3' dir='1 0 -1' diffuse='1 1 1'/>"
ONE_OF_EACH: list[Drawing] = [
    Marker((0.0, 0.5, 0.3), ORANGE),
    Line((0.0, -1.0, 0.0), (0.0, 1.0, 0.5), ORANGE, 3.0),
    WireBox((0.0, 0.0, 0.0), (0.3, 0.4, 0.5), ORANGE),
    Arrow((0.0, 0.0, 0.0), (0.0, 0.6, 0.6), ORANGE),
]


def focal_px(studio: Any) -> float:
    """Pixels of one metre at one metre."""
    return 160 / math.tan(math.radians(studio.viewport.camera.fov_deg) / 2)


def test_a_marker_is_a_sphere_of_its_radius_in_its_colour(studio: Any) -> None:
    studio.viewport.set_camera((-1.0, 0.0, 0.0))
    studio.overlay.add(Marker((0.0, 0.4, -0.2), ORANGE))
    spot = studio.find(ORANGE)
    assert spot.middle == pytest.approx(studio.pixel((0.0, 0.4, -0.2)), abs=0.7)
    left, top, right, bottom = spot.box
    across = 2 * MARKER_RADIUS_M * focal_px(studio)
    assert bottom - top == pytest.approx(across, abs=1.5)
    assert right - left == pytest.approx(across, rel=0.12, abs=1.5)
    assert spot.count == pytest.approx(np.pi / 4 * (right - left) * (bottom - top), rel=0.15)


def test_a_line_runs_between_its_ends_and_is_as_thick_as_it_says(studio: Any) -> None:
    studio.overlay.add(Line((0.0, 1.0, 0.5), (0.0, -1.0, 0.5), ORANGE, 5.0))
    spot = studio.find(ORANGE)
    start, end = studio.pixel((0.0, 1.0, 0.5)), studio.pixel((0.0, -1.0, 0.5))
    left, top, right, bottom = spot.box
    assert (left, right) == pytest.approx((start[0], end[0]), abs=1.5)
    assert (top + bottom) / 2 == pytest.approx(start[1], abs=1.0)
    assert bottom - top == pytest.approx(5, abs=1)


def test_a_thin_line_is_one_pixel_thick(studio: Any) -> None:
    for thickness in (0.0, 1.0):
        studio.overlay.add(Line((0.0, 1.0, 0.5), (0.0, -1.0, 0.5), ORANGE, thickness))
        picture = studio.picture()
        column = np.abs(picture[:, 160] - picture[0, 0]).sum(axis=1) > 60
        assert 1 <= column.sum() <= 2


def test_a_box_is_its_twelve_edges_and_nothing_between_them(studio: Any) -> None:
    turn = wxyz_from_euler_deg((10, 20, 30))
    studio.viewport.set_camera((-1.8, 0.0, 0.0))
    studio.overlay.add(WireBox((0.0, 0.1, 0.05), (0.3, 0.4, 0.5), ORANGE, turn))
    picture = studio.picture()
    spot = studio.find(ORANGE, picture, tolerance=60)
    pose = Pose((0.0, 0.1, 0.05), turn)
    corners = [pose.apply(Pose(c)).pos for c in itertools.product((-0.3, 0.3), (-0.4, 0.4), (-0.5, 0.5))]
    for a, b in itertools.combinations(range(8), 2):
        if (a ^ b) in (1, 2, 4):
            middle = tuple((np.array(corners[a]) + corners[b]) / 2)
            assert spot.has(*studio.pixel(middle), within=2), (a, b)
    seen = [studio.pixel(corner) for corner in corners]
    left, top, right, bottom = spot.box
    assert (left, right) == pytest.approx((min(x for x, _ in seen), max(x for x, _ in seen)), abs=2)
    assert (top, bottom) == pytest.approx((min(y for _, y in seen), max(y for _, y in seen)), abs=2)
    assert spot.count < 0.2 * (right - left) * (bottom - top)


@pytest.mark.parametrize(("arrow_size", "head_m"), [(None, 0.2), (0.4, 0.4), (9.0, 1.0)])
def test_an_arrow_has_a_head_at_its_tip(arrow_size: float | None, head_m: float, studio: Any) -> None:
    studio.viewport.set_camera((-8.0, 0.0, 0.0), None, 14.0)
    studio.overlay.add(Arrow((0.0, -0.5, 0.0), (0.0, 0.5, 0.0), ORANGE, 3.0, arrow_size))
    spot = studio.find(ORANGE, tolerance=30)
    heights = spot.mask.sum(axis=0)
    tip, tail = studio.pixel((0.0, 0.5, 0.0))[0], studio.pixel((0.0, -0.5, 0.0))[0]
    assert (spot.box[0], spot.box[2]) == pytest.approx((tip, tail), abs=6)
    head = head_m * focal_px(studio) / 8
    assert np.nonzero(heights > 5)[0].max() == pytest.approx(tip + head, abs=3)
    assert np.nonzero(heights == heights.max())[0].max() == pytest.approx(tip + head, abs=2)
    assert heights.max() == pytest.approx(0.4 * head, rel=0.1, abs=2)


@pytest.mark.parametrize("to", [(0.5, 0.0, 0.0), (-0.5, 0.0, 0.0), (0.0, 0.0, 0.5), (0.0, 0.0, -0.5), (0.3, 0.3, 0.3)])
def test_an_arrow_head_is_closed_on_all_sides(to: tuple[float, float, float], studio: Any) -> None:
    studio.viewport.set_camera((-1.2, 0.0, 0.0))
    studio.overlay.add(Arrow((0.0, 0.0, 0.0), to, ORANGE))
    spot = studio.find(ORANGE, studio.picture(width=640, height=360))
    head = tuple(0.85 * part for part in to)
    x, y = studio.pixel(head, 640, 360)
    assert spot.mask[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].all()


def test_an_arrow_without_length_draws_no_head(studio: Any) -> None:
    studio.overlay.add(Arrow((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), ORANGE, arrow_size=0.5))
    assert studio.find(ORANGE).count <= 4


def test_axes_are_red_green_and_blue_and_turn(studio: Any) -> None:
    turn = wxyz_from_euler_deg((40, 30, 50))
    studio.viewport.set_camera((-1.0, 0.0, 0.0))
    studio.overlay.add(Axes((0.0, 0.0, 0.0), turn, 0.4))
    picture = studio.picture()
    pose = Pose((0.0, 0.0, 0.0), turn)
    for axis, colour in zip(np.eye(3), (RED, GREEN, BLUE), strict=True):
        spot = studio.find(colour, picture)
        end = pose.apply(Pose(tuple(0.4 * axis))).pos
        inside = pose.apply(Pose(tuple(0.3 * axis))).pos
        beyond = pose.apply(Pose(tuple(0.5 * axis))).pos
        assert spot.has(*studio.pixel(inside), within=1)
        assert spot.has(*studio.pixel(end), within=2)
        assert not spot.has(*studio.pixel(beyond), within=2)


@pytest.mark.parametrize("mode", ["lit", "unlit", "reflections", "collision"])
@pytest.mark.parametrize("drawing", ONE_OF_EACH, ids=lambda one: type(one).__name__)
def test_a_drawing_keeps_its_colour_whatever_the_light(drawing: Drawing, mode: str, studio: Any) -> None:
    studio.show(SUN + "<geom type='plane' size='4 4 .1' pos='0 0 -.5' rgba='.2 .3 .2 1'/>", mode=mode)
    studio.overlay.add(drawing)
    assert studio.find(ORANGE, tolerance=2).count >= 12


@pytest.mark.parametrize("drawing", ONE_OF_EACH, ids=lambda one: type(one).__name__)
def test_a_drawing_is_there_in_wireframe(drawing: Drawing, studio: Any) -> None:
    studio.viewport.set_mode("wireframe")
    studio.overlay.add(drawing)
    assert studio.find(ORANGE, tolerance=60).count >= 20


def test_what_stands_before_a_drawing_hides_it(studio: Any) -> None:
    studio.show("<geom type='box' size='.1 .5 .5' rgba='.2 .2 .2 1'/>")
    studio.overlay.add(Marker((1.0, 0.0, 0.0), ORANGE, ttl_s=-1))
    assert studio.find(ORANGE).count == 0
    studio.overlay.add(Marker((-0.5, 0.0, 0.0), ORANGE))
    assert studio.find(ORANGE).count > 20


def test_lines_on_a_floor_are_not_half_hidden_in_it(studio: Any) -> None:
    studio.viewport.set_camera((-3.0, 0.0, 1.5), wxyz_from_euler_deg((0, 25, 0)))
    lying: list[Drawing] = [
        Line((-1.0, 1.0, 0.0), (2.0, -1.0, 0.0), ORANGE, 3.0, ttl_s=-1),
        WireBox((0.0, 0.0, 0.0), (1.0, 1.5, 0.0), ORANGE, ttl_s=-1),
    ]
    for drawing in lying:
        studio.overlay.add(drawing)
    free = studio.find(ORANGE, studio.picture(width=1280, height=720), tolerance=60).count
    studio.show("<geom type='plane' size='9 9 .1' rgba='.36 .42 .48 1'/>", mode="unlit")
    on_floor = studio.find(ORANGE, studio.picture(width=1280, height=720), tolerance=60).count
    assert on_floor > 0.95 * free > 1000


def test_a_drawing_casts_no_shadow(studio: Any) -> None:
    studio.show(
        "<light pos='0 0 4' dir='0 0 -1' type='directional'/><geom type='plane' size='4 4 .1' pos='0 0 -1'/>",
        mode="reflections",
    )
    bare = studio.picture()
    studio.overlay.add(WireBox((0.0, 0.0, 1.2), (0.5, 0.5, 0.1), ORANGE))
    studio.overlay.add(Marker((0.0, 0.0, 1.0), ORANGE))
    assert (studio.picture()[100:] == bare[100:]).all()


def test_a_ttl_of_0_is_in_the_next_picture_only(studio: Any) -> None:
    studio.overlay.add(Marker((0.0, 0.0, 0.0), ORANGE))
    assert [studio.find(ORANGE).count > 0 for _ in range(3)] == [True, False, False]


def test_a_ttl_in_seconds_and_a_cleared_tag_end_a_drawing(studio: Any) -> None:
    studio.overlay.add(Marker((0.0, 0.5, 0.0), RED, ttl_s=3.0))
    studio.overlay.add(Marker((0.0, 0.0, 0.0), GREEN, ttl_s=-1, tag="mine"))
    studio.overlay.add(Marker((0.0, -0.5, 0.0), BLUE, ttl_s=-1))

    def seen() -> list[bool]:
        picture = studio.picture()
        return [studio.find(colour, picture).count > 0 for colour in (RED, GREEN, BLUE)]

    assert seen() == [True, True, True]
    studio.clock.now_s += 3.01
    assert seen() == [False, True, True]
    studio.overlay.clear("mine")
    assert seen() == [False, False, True]
    studio.overlay.clear()
    assert seen() == [False, False, False]


def test_many_drawings_are_all_there(studio: Any) -> None:
    for row, column in itertools.product(range(20), range(20)):
        studio.overlay.add(
            Arrow((0.0, column / 10 - 1, row / 20 - 0.5), (0.0, column / 10 - 1, row / 20 - 0.48), ORANGE, 3.0)
        )
    picture = studio.picture(width=640, height=360)
    spot = studio.find(ORANGE, picture, tolerance=60)
    for row, column in itertools.product(range(20), range(20)):
        assert spot.has(*studio.pixel((0.0, column / 10 - 1, row / 20 - 0.49), 640, 360), within=2)
