"""Depth, compared with geometry and with rays of MuJoCo's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from urlab.config import RenderProfile

MakeScene = Callable[..., Any]


def facing(distance_m: float, images: Any, camera: str = 'fovy="60"') -> str:
    """A camera at the origin that looks along X at the middle of a cube's face."""
    half = 0.4 * distance_m
    return f"""<camera name="eye" {images.along_x} {camera}/>
    <geom type="box" pos="{distance_m + half} 0 0" size="{half} {half} {half}"/>"""


@pytest.mark.parametrize("distance_m", [0.011, 0.05, 0.3, 1.75, 12.5, 40.0, 99.0])
def test_a_face_is_at_its_distance_to_a_tenth_of_a_millimetre(
    scene_of: MakeScene, images: Any, distance_m: float
) -> None:
    depths = images.metres(scene_of(facing(distance_m, images)).draw("depth"))
    seen = depths[np.isfinite(depths)]
    assert seen.size > 1000
    assert np.abs(seen - distance_m).max() < 1e-4


def test_it_is_measured_along_the_optical_axis_and_not_along_the_ray(scene_of: MakeScene, images: Any) -> None:
    world = f'<camera name="eye" {images.along_x} fovy="90"/><geom type="box" pos="2.5 0 0" size=".5 9 9"/>'
    depths = images.metres(scene_of(world).draw("depth"))
    assert depths == pytest.approx(np.full_like(depths, 2.0), abs=1e-5)


SCATTERED = """<geom type="plane" size="200 200 1"/>
<geom type="box" pos="1.2 .3 .8" euler="20 30 40" size=".1 .2 .3"/>
<geom type="box" pos="6 -1 .5" euler="50 10 80" size=".4 .3 .9"/>
<geom type="box" pos="50 6 3" euler="70 30 40" size="4 3 2"/>"""


@pytest.mark.parametrize("profile", [RenderProfile.FAST, RenderProfile.QUALITY])
@pytest.mark.parametrize(
    "camera",
    ['fovy="60"', 'sensorsize=".0064 .0048" focal=".005 .006" principal=".001 -.0005" resolution="160 120"'],
)
def test_every_pixel_agrees_with_a_ray(scene_of: MakeScene, images: Any, profile: RenderProfile, camera: str) -> None:
    tilted = f'<body pos="-.1 .05 1.1" euler="5 12 -7"><camera name="eye" {images.along_x} {camera}/></body>'
    made = scene_of(tilted + SCATTERED, profile=profile)
    frame = made.draw("depth")
    depths, truth = images.metres(frame), images.truth(made, frame)
    sure = truth.inside() & (truth.depths < 90)
    assert sure.mean() > 0.5
    assert {0, 1, 2, 3} <= set(np.unique(truth.geoms[sure]))
    assert (np.abs(depths[sure] / truth.depths[sure] - 1) < 2e-5).all()
    assert np.isinf(depths[truth.inside() & (truth.geoms < 0)]).all()


def test_nothing_is_infinitely_far(scene_of: MakeScene, images: Any) -> None:
    depths = images.metres(
        scene_of(f'<camera name="eye" {images.along_x}/><geom pos="-3 0 0" size="1"/>').draw("depth")
    )
    assert np.isposinf(depths).all()


def test_what_is_in_the_hand_is_seen_in_a_large_scene(scene_of: MakeScene, images: Any) -> None:
    made = scene_of(facing(0.02, images) + '<geom pos="0 400 0" size="1"/>')
    assert made.scene.model.stat.extent > 100
    depths = images.metres(made.draw("depth"))
    assert depths[60, 80] == pytest.approx(0.02, abs=1e-5)


def test_an_orthographic_camera_measures_too(scene_of: MakeScene, images: Any) -> None:
    frame = scene_of(facing(2.0, images, 'projection="orthographic" fovy="4"')).draw("depth")
    depths = images.metres(frame)
    seen = np.isfinite(depths)
    assert depths[seen] == pytest.approx(np.full(seen.sum(), 2.0), abs=1e-4)
    assert seen.sum() == (1.6 * frame.K[0]) * (1.6 * frame.K[4]) == 48 * 48
