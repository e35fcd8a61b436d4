"""What a view frames by itself: robots and not arenas, where they are now."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from urlab.errors import NoBounds
from urlab.overlay import Overlay
from urlab.viewport import Viewport
from urlab.viewport.framing import box_of_actor, box_of_scene
from urlab.viewport.posed_model import PosedData

ARM = """<body pos="3 2 1"><joint axis="0 0 1"/><geom type="box" size=".2 .1 .3" rgba="1 0 0 1"/></body>"""
FLOOR = "<geom type='plane' size='0 0 1'/>"
ARENA = """<geom type='plane' size='40 40 1'/><geom type='box' size='.1 40 3' pos='40 0 3'/>
<geom type='box' size='40 .1 3' pos='0 40 3'/>"""
PEDESTAL = "<geom type='box' size='.1 .1 .1' pos='3 2 .6'/>"
SPHERES = "".join(f"<body pos='{x} 0 0'><freejoint/><geom size='.1'/></body>" for x in (0, 1))


def corners(posed: Any, actor: str | None = None) -> tuple[Any, Any] | None:
    data = PosedData().of(posed)
    box = box_of_scene(posed.model, data) if actor is None else box_of_actor(posed, data, actor)
    return None if box is None else (pytest.approx(box.lower, abs=1e-6), pytest.approx(box.upper, abs=1e-6))


def scene(make_posed: Any, body: str, **changes: Any) -> Any:
    return make_posed(f"<mujoco><worldbody>{body}</worldbody></mujoco>", **changes)


@pytest.mark.parametrize("around", ["", FLOOR, ARENA])
def test_a_robot_is_framed_and_not_what_is_around_it(make_posed: Any, around: str) -> None:
    assert corners(scene(make_posed, around + ARM)) == ((2.8, 1.9, 0.7), (3.2, 2.1, 1.3))


def test_what_stands_close_to_a_robot_is_framed_with_it(make_posed: Any) -> None:
    assert corners(scene(make_posed, ARENA + PEDESTAL + ARM)) == ((2.8, 1.9, 0.5), (3.2, 2.1, 1.3))


def test_where_nothing_moves_all_that_stands_is_framed_but_the_floor(make_posed: Any) -> None:
    assert corners(scene(make_posed, FLOOR + PEDESTAL)) == ((2.9, 1.9, 0.5), (3.1, 2.1, 0.7))
    assert corners(scene(make_posed, "<geom type='plane' size='2 3 1' pos='0 0 1'/>")) == ((-2, -3, 1), (2, 3, 1))
    assert corners(scene(make_posed, FLOOR)) is None


def test_things_are_framed_where_they_are_now_and_not_what_has_fallen_off_the_world(make_posed: Any) -> None:
    posed = scene(make_posed, SPHERES)
    qpos = posed.qpos.copy()
    qpos[1], qpos[7 + 1] = 0.5, -0.5
    assert corners(replace(posed, qpos=qpos)) == ((-0.1, -0.6, -0.1), (1.1, 0.6, 0.1))
    qpos[7 + 2] = -5000.0
    assert corners(replace(posed, qpos=qpos)) == ((-0.1, 0.4, -0.1), (0.1, 0.6, 0.1))


def test_a_cloth_is_framed(make_posed: Any) -> None:
    cloth = """<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".5 .5 .5" pos="0 0 2" radius=".01" dim="2"/>"""
    assert corners(scene(make_posed, FLOOR + cloth)) == ((-0.51, -0.51, 1.99), (0.51, 0.51, 2.01))


def test_an_actor_is_framed_without_the_floor_that_it_brought(make_posed: Any) -> None:
    posed = scene(make_posed, f"<geom name='arm_floor' type='plane' size='9 9 1'/>{ARM}")
    posed = replace(posed, actors={"arm": frozenset([1]), "lamp": frozenset()})
    assert corners(posed, "arm") == ((2.8, 1.9, 0.7), (3.2, 2.1, 1.3))
    turned = replace(posed, qpos=np.array([np.pi / 2]))
    assert corners(turned, "arm") == ((2.9, 1.8, 0.7), (3.1, 2.2, 1.3))
    assert corners(posed, "lamp") is None


@pytest.mark.parametrize(("size", "half"), [("9 8 1", (9, 8)), ("0 0 1", (2, 2))])
def test_an_arena_of_a_plane_alone_is_framed_as_far_as_it_goes(
    make_posed: Any, size: str, half: tuple[float, float]
) -> None:
    posed = scene(make_posed, f"<geom name='hall_floor' type='plane' size='{size}' pos='1 1 0'/>")
    posed = replace(posed, actors={"hall": frozenset()})
    x, y = half
    assert corners(posed, "hall") == ((1 - x, 1 - y, 0), (1 + x, 1 + y, 0))


# -- in a viewport ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(320, 180), (180, 320)])
def test_a_fresh_view_frames_the_robot_in_an_arena(studio: Any, make_posed: Any, width: int, height: int) -> None:
    studio.posed = scene(make_posed, ARENA + ARM)
    studio.viewport = Viewport(lambda: studio.posed, Overlay())
    left, top, right, bottom = studio.find((1, 0, 0), studio.picture("unlit", width=width, height=height)).box
    assert (left > 0, top > 0, right < width, bottom < height) == (True, True, True, True)
    assert max((right - left) / width, (bottom - top) / height) > 0.6
    assert (left + right) / 2 == pytest.approx(width / 2, abs=0.05 * width)


def test_a_fresh_view_stays_while_the_scene_moves_and_frames_the_next_one(studio: Any, make_posed: Any) -> None:
    studio.posed = scene(make_posed, SPHERES)
    viewport = Viewport(lambda: studio.posed, Overlay())
    first = viewport.camera
    qpos = studio.posed.qpos.copy()
    qpos[0] = -4.0
    studio.posed = replace(studio.posed, qpos=qpos)
    assert viewport.camera == first
    studio.posed = scene(make_posed, ARM)
    assert viewport.camera != first
    placed = viewport.set_camera((1.0, 2.0, 3.0))
    studio.posed = scene(make_posed, SPHERES)
    assert viewport.camera == placed


def test_an_actor_is_framed_where_it_is_now_or_refused(studio: Any, make_posed: Any) -> None:
    posed = scene(make_posed, SPHERES)
    qpos = posed.qpos.copy()
    qpos[2] = 70.0
    studio.posed = replace(posed, qpos=qpos, actors={"ball": frozenset([1]), "lamp": frozenset()})
    camera = studio.viewport.frame_actor("ball")
    assert np.linalg.norm(np.subtract(camera.location, (0.0, 0.0, 70.0))) < 1.0
    with pytest.raises(NoBounds, match="'lamp' has no geometry that a view could frame"):
        studio.viewport.frame_actor("lamp")
