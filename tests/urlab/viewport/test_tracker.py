"""Following an actor."""

import math
from typing import Any

import numpy as np
import pytest

from urlab.errors import BadValue
from urlab.geometry import Pose, wxyz_from_euler_deg

START = (-3.0, 0.0, 0.0)


def looks_at(camera: Any, point: tuple[float, float, float]) -> bool:
    way = np.array(point) - camera.location
    return bool(np.allclose(camera.forward, way / np.linalg.norm(way)))


def test_it_stands_two_metres_behind_and_one_above_and_looks_at_the_actor(studio: Any) -> None:
    studio.viewport.track(lambda: Pose((5.0, 1.0, 0.5)), "/path")
    camera = studio.viewport.camera
    assert camera.location == pytest.approx((3.0, 1.0, 1.5))
    assert looks_at(camera, (5.0, 1.0, 0.5))


def test_the_offset_turns_with_the_actor(studio: Any) -> None:
    actor = Pose((1.0, 0.0, 0.0), wxyz_from_euler_deg((0, 0, 90)))
    studio.viewport.track(lambda: actor, "/path", (-2.0, 0.5, 1.0))
    assert studio.viewport.camera.location == pytest.approx((0.5, -2.0, 1.0))


def test_it_follows_whenever_somebody_looks(studio: Any) -> None:
    places = iter([(1.0, 0.0, 0.0), (7.0, 0.0, 0.0)])
    studio.viewport.track(lambda: Pose(next(places)), "/path")
    assert [studio.viewport.camera.location[0] for _ in range(2)] == pytest.approx([-1.0, 5.0])


def test_smoothing_depends_on_time_and_not_on_how_often_one_looks(studio: Any) -> None:
    def after(looks: int, seconds: float) -> tuple[float, float, float]:
        studio.viewport.set_camera(START)
        studio.viewport.track(lambda: Pose((5.0, 4.0, 3.0)), "/path", smoothing=0.9)
        for _ in range(looks):
            studio.clock.now_s += seconds / looks
            camera = studio.viewport.camera
        return camera.location  # type: ignore[no-any-return]

    assert after(1, 0.2) == pytest.approx(after(97, 0.2))
    assert after(1, 1 / 60) == pytest.approx((-3 + 0.1 * 6, 0.1 * 4, 0.1 * 4))
    assert after(1, 60.0) == pytest.approx((3.0, 4.0, 4.0))


def test_on_its_way_it_looks_at_the_actor(studio: Any) -> None:
    studio.viewport.track(lambda: Pose((5.0, 4.0, 3.0)), "/path", smoothing=0.99)
    studio.clock.now_s += 0.3
    camera = studio.viewport.camera
    assert math.dist(camera.location, (3.0, 4.0, 4.0)) > 1
    assert looks_at(camera, (5.0, 4.0, 3.0))


def test_without_time_nothing_moves_unless_it_shall_follow_at_once(studio: Any) -> None:
    studio.viewport.track(lambda: Pose((5.0, 0.0, 0.0)), "/path", smoothing=0.5)
    assert studio.viewport.camera.location == START
    studio.viewport.track(lambda: Pose((5.0, 0.0, 0.0)), "/path", smoothing=0.0)
    assert studio.viewport.camera.location == pytest.approx((3.0, 0.0, 1.0))


def test_where_the_actor_is_gone_the_camera_stays_until_it_is_back(studio: Any) -> None:
    poses: list[Pose | None] = [Pose((5.0, 0.0, 0.0)), None, Pose((6.0, 0.0, 0.0))]
    turns = iter(poses)
    studio.viewport.track(lambda: next(turns), "/path")
    assert [studio.viewport.camera.location[0] for _ in poses] == pytest.approx([3.0, 3.0, 4.0])


def test_the_last_one_wins_and_untrack_tells_whether_there_was_one(studio: Any) -> None:
    viewport = studio.viewport
    assert (viewport.tracked_path, viewport.untrack()) == (None, False)
    viewport.track(lambda: Pose((5.0, 0.0, 0.0)), "/first")
    viewport.track(lambda: Pose((9.0, 0.0, 0.0)), "/second")
    assert viewport.tracked_path == "/second"
    assert viewport.untrack() is True
    assert viewport.camera.location == pytest.approx((7.0, 0.0, 1.0))
    assert viewport.untrack() is False


def test_placing_the_camera_or_framing_something_ends_tracking(studio: Any) -> None:
    viewport = studio.viewport
    viewport.track(lambda: Pose((5.0, 0.0, 0.0)), "/path")
    viewport.set_camera((1.0, 2.0, 3.0))
    assert (viewport.camera.location, viewport.tracked_path) == ((1.0, 2.0, 3.0), None)
    viewport.track(lambda: Pose((5.0, 0.0, 0.0)), "/path")
    viewport.frame((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    assert viewport.tracked_path is None


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 2.0, float("nan")])
def test_smoothing_is_at_least_0_and_below_1(smoothing: float, studio: Any) -> None:
    with pytest.raises(BadValue, match="smoothing must be at least 0 and below 1"):
        studio.viewport.track(lambda: Pose(), "/path", smoothing=smoothing)


def test_a_picture_has_the_actor_in_its_middle(studio: Any) -> None:
    studio.show("<geom size='.1' pos='5 4 3' rgba='1 0 0 1'/>", mode="unlit")
    studio.viewport.track(lambda: Pose((5.0, 4.0, 3.0)), "/path")
    assert studio.find((1.0, 0.0, 0.0)).middle == pytest.approx((160.0, 90.0), abs=1.0)
