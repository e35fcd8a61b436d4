"""The viewport's camera as geometry, and following an actor with it."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from urlab.errors import BadValue
from urlab.geometry import Pose, wxyz_from_euler_deg
from urlab.viewport import ViewCamera
from urlab.viewport.camera import FRAME_FILL

FORWARD = ViewCamera((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 90.0)


def test_at_identity_it_looks_along_x_with_z_up() -> None:
    assert (FORWARD.forward, FORWARD.left, FORWARD.up) == ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def test_a_positive_pitch_looks_down_and_a_positive_yaw_to_the_left() -> None:
    down = ViewCamera((0.0, 0.0, 0.0), wxyz_from_euler_deg((0, 30, 0)))
    left = ViewCamera((0.0, 0.0, 0.0), wxyz_from_euler_deg((0, 0, 30)))
    assert down.forward == pytest.approx((math.cos(math.pi / 6), 0, -0.5))
    assert left.forward == pytest.approx((math.cos(math.pi / 6), 0.5, 0))


@pytest.mark.parametrize(
    ("point", "pixel"),
    [
        ((1.0, 0.0, 0.0), (200.0, 100.0)),
        ((1.0, 1.0, 0.0), (0.0, 100.0)),
        ((2.0, -1.0, 0.0), (300.0, 100.0)),
        ((1.0, 0.0, 0.5), (200.0, 0.0)),
        ((4.0, 0.0, -1.0), (200.0, 150.0)),
    ],
)
def test_points_are_seen_where_a_pinhole_shows_them(
    point: tuple[float, float, float], pixel: tuple[float, float]
) -> None:
    assert FORWARD.project(point, 400, 200) == pytest.approx(pixel)


def test_what_is_behind_it_is_not_seen() -> None:
    assert FORWARD.project((-1.0, 0.0, 0.0), 400, 200) is None
    assert FORWARD.project((0.0, 1.0, 0.0), 400, 200) is None


@pytest.mark.parametrize("target", [(1.0, 2.0, 3.0), (-4.0, 0.1, -2.0), (0.0, 0.0, 5.0), (0.0, 0.0, -5.0)])
def test_it_turns_to_a_point_without_rolling(target: tuple[float, float, float]) -> None:
    turned = FORWARD.looking_at(target)
    assert turned.project(target, 400, 200) == pytest.approx((200.0, 100.0))
    assert turned.left[2] == pytest.approx(0.0, abs=1e-12)
    assert turned.up[2] >= -1e-12


def test_its_own_place_turns_nothing() -> None:
    assert FORWARD.looking_at((0.0, 0.0, 0.0)) is FORWARD


@pytest.mark.parametrize("seed", range(20))
def test_a_framed_box_is_wholly_seen_and_fills_one_direction(seed: int) -> None:
    random = np.random.default_rng(seed)
    lower = random.uniform(-5, 5, 3)
    upper = lower + random.uniform(0.01, 4, 3)
    camera = ViewCamera(
        tuple(random.uniform(-9, 9, 3)),
        wxyz_from_euler_deg(random.uniform(-180, 180, 3)),
        float(random.uniform(20, 140)),
    )
    aspect = float(random.uniform(0.4, 2.5))
    framed = camera.framing(tuple(lower), tuple(upper), aspect)
    assert (framed.quat_wxyz, framed.fov_deg) == (camera.quat_wxyz, camera.fov_deg)
    pixels = [framed.project(corner, 1000, 1000) for corner in itertools.product(*zip(lower, upper, strict=True))]
    sides = [pixel[0] / 500 - 1 for pixel in pixels if pixel is not None]
    heights = [(pixel[1] / 500 - 1) * aspect for pixel in pixels if pixel is not None]
    spans = [(max(values) - min(values)) / 2 for values in (sides, heights)]
    assert len(sides) == 8
    assert max(spans) == pytest.approx(FRAME_FILL)
    for values in (sides, heights):
        assert max(map(abs, values)) <= FRAME_FILL + 1e-9


def test_a_box_without_size_is_framed_from_near() -> None:
    framed = FORWARD.framing((2.0, 3.0, 4.0), (2.0, 3.0, 4.0), 1.5)
    assert framed.project((2.0, 3.0, 4.0), 300, 200) == pytest.approx((150.0, 100.0))
    assert 0 < 2.0 - framed.location[0] < 1


# -- following an actor ------------------------------------------------------------------------------------------------

START = (-3.0, 0.0, 0.0)


class Actor:
    """Something that can be tracked, at a place that can be changed."""

    def __init__(self, at: tuple[float, float, float]) -> None:
        self.at = at

    def __call__(self) -> Pose:
        return Pose(self.at)


def looks_at(camera: Any, point: tuple[float, float, float]) -> bool:
    way = np.array(point) - camera.location
    return bool(np.allclose(camera.forward, way / np.linalg.norm(way)))


def test_it_stands_two_metres_behind_and_one_above_and_looks_at_the_actor(studio: Any) -> None:
    studio.viewport.track(lambda: Pose((5.0, 1.0, 0.5)))
    camera = studio.viewport.camera
    assert camera.location == pytest.approx((3.0, 1.0, 1.5))
    assert looks_at(camera, (5.0, 1.0, 0.5))


def test_the_offset_turns_with_the_actor(studio: Any) -> None:
    actor = Pose((1.0, 0.0, 0.0), wxyz_from_euler_deg((0, 0, 90)))
    studio.viewport.track(lambda: actor, (-2.0, 0.5, 1.0))
    assert studio.viewport.camera.location == pytest.approx((0.5, -2.0, 1.0))


def test_it_follows_on_every_reading(studio: Any) -> None:
    places = iter([(1.0, 0.0, 0.0), (7.0, 0.0, 0.0)])
    studio.viewport.track(lambda: Pose(next(places)))
    assert [studio.viewport.camera.location[0] for _ in range(2)] == pytest.approx([-1.0, 5.0])


def test_smoothing_depends_on_time_and_not_on_how_often_one_looks(studio: Any) -> None:
    def after(looks: int, seconds: float) -> tuple[float, float, float]:
        actor = Actor((-1.0, 0.0, -1.0))
        studio.viewport.track(actor, smoothing=0.9)
        assert studio.viewport.camera.location == START
        actor.at = (5.0, 4.0, 3.0)
        for _ in range(looks):
            studio.clock.now_s += seconds / looks
            camera = studio.viewport.camera
        return camera.location  # type: ignore[no-any-return]

    assert after(1, 0.2) == pytest.approx(after(97, 0.2))
    assert after(1, 1 / 60) == pytest.approx((-3 + 0.1 * 6, 0.1 * 4, 0.1 * 4))
    assert after(1, 60.0) == pytest.approx((3.0, 4.0, 4.0))


def test_on_its_way_it_looks_at_the_actor(studio: Any) -> None:
    actor = Actor((-1.0, 0.0, -1.0))
    studio.viewport.track(actor, smoothing=0.99)
    assert studio.viewport.camera.location == START
    actor.at = (5.0, 4.0, 3.0)
    studio.clock.now_s += 0.3
    camera = studio.viewport.camera
    assert math.dist(camera.location, (3.0, 4.0, 4.0)) > 1
    assert looks_at(camera, (5.0, 4.0, 3.0))


@pytest.mark.parametrize("smoothing", [0.0, 0.5, 0.999])
def test_the_first_picture_of_a_tracked_actor_is_from_its_place(studio: Any, smoothing: float) -> None:
    studio.show("<geom size='.1' pos='50 4 3' rgba='1 0 0 1'/>", mode="unlit")
    studio.viewport.track(lambda: Pose((50.0, 4.0, 3.0)), smoothing=smoothing)
    seen = studio.find((1.0, 0.0, 0.0))
    assert seen.middle == pytest.approx((160.0, 90.0), abs=1.0)
    assert studio.viewport.camera.location == pytest.approx((48.0, 4.0, 4.0))


def test_without_time_nothing_moves_unless_it_shall_follow_at_once(studio: Any) -> None:
    for smoothing, x in ((0.5, 3.0), (0.0, 7.0)):
        actor = Actor((5.0, 0.0, 0.0))
        studio.viewport.track(actor, smoothing=smoothing)
        assert studio.viewport.camera.location == pytest.approx((3.0, 0.0, 1.0))
        actor.at = (9.0, 0.0, 0.0)
        assert studio.viewport.camera.location == pytest.approx((x, 0.0, 1.0))


def test_smoothing_is_in_the_seconds_of_the_clock_that_is_given_and_a_clock_that_goes_back_ends_it(studio: Any) -> None:
    actor, sim_time = Actor((5.0, 0.0, 0.0)), [10.0]
    studio.viewport.track(actor, smoothing=0.9, clock=lambda: sim_time[0])
    assert studio.viewport.camera.location[0] == pytest.approx(3.0)
    actor.at = (15.0, 0.0, 0.0)
    studio.clock.now_s += 1000.0
    assert studio.viewport.camera.location[0] == pytest.approx(3.0), "the wall's time does not count"
    sim_time[0] += 1 / 60
    assert studio.viewport.camera.location[0] == pytest.approx(4.0)
    sim_time[0] = 0.0
    assert studio.viewport.camera.location[0] == pytest.approx(13.0), "after a reset it is there at once"


def test_where_the_actor_is_gone_the_camera_stays_until_it_is_back(studio: Any) -> None:
    poses: list[Pose | None] = [Pose((5.0, 0.0, 0.0)), None, Pose((6.0, 0.0, 0.0))]
    turns = iter(poses)
    studio.viewport.track(lambda: next(turns))
    assert [studio.viewport.camera.location[0] for _ in poses] == pytest.approx([3.0, 3.0, 4.0])


def test_the_last_one_wins_and_untrack_tells_whether_there_was_one(studio: Any) -> None:
    viewport = studio.viewport
    assert viewport.untrack() is False
    viewport.track(lambda: Pose((5.0, 0.0, 0.0)))
    viewport.track(lambda: Pose((9.0, 0.0, 0.0)))
    assert viewport.untrack() is True
    assert viewport.camera.location == pytest.approx((7.0, 0.0, 1.0))
    assert viewport.untrack() is False


def test_placing_the_camera_or_framing_something_ends_tracking(studio: Any) -> None:
    viewport = studio.viewport
    viewport.track(lambda: Pose((5.0, 0.0, 0.0)))
    viewport.set_camera((1.0, 2.0, 3.0))
    assert (viewport.camera.location, viewport.untrack()) == ((1.0, 2.0, 3.0), False)
    viewport.track(lambda: Pose((5.0, 0.0, 0.0)))
    viewport.frame((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    assert viewport.untrack() is False


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 2.0, float("nan")])
def test_smoothing_is_at_least_0_and_below_1(smoothing: float, studio: Any) -> None:
    with pytest.raises(BadValue, match="smoothing must be at least 0 and below 1"):
        studio.viewport.track(lambda: Pose(), smoothing=smoothing)


def test_a_picture_has_the_actor_in_its_middle(studio: Any) -> None:
    studio.show("<geom size='.1' pos='5 4 3' rgba='1 0 0 1'/>", mode="unlit")
    studio.viewport.track(lambda: Pose((5.0, 4.0, 3.0)))
    assert studio.find((1.0, 0.0, 0.0)).middle == pytest.approx((160.0, 90.0), abs=1.0)
