"""The viewport's camera, as geometry."""

import itertools
import math

import numpy as np
import pytest

from urlab.geometry import wxyz_from_euler_deg
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
