"""What each mode shows, by its pictures."""

import copy
from typing import Any

import numpy as np
import pytest

from urlab.errors import InvalidMode
from urlab.viewport.view_mode import ViewMode

RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BROWN = (0.6, 0.4, 0.2)
SUN = "<light pos='-3 0 3' dir='1 0 -1'/>"
FRONT = (-0.5, 0.0, 0.0)
BOX = "<geom type='box' size='.5 .5 .5' rgba='.6 .4 .2 1'/>"
U_MESH = """
<asset><mesh name="u" vertex="
 0 -1 0  0 -.4 0  0 -.4 .6  0 .4 .6  0 .4 0  0 1 0  0 1 1  0 -1 1
 .2 -1 0  .2 -.4 0  .2 -.4 .6  .2 .4 .6  .2 .4 0  .2 1 0  .2 1 1  .2 -1 1"
 face="0 1 2  0 2 7  2 3 6  2 6 7  3 4 5  3 5 6   8 10 9  8 15 10  10 14 11  10 15 14  11 13 12  11 14 13
 0 8 9  0 9 1  1 9 10  1 10 2  2 10 11  2 11 3  3 11 12  3 12 4
 4 12 13  4 13 5  5 13 14  5 14 6  6 14 15  6 15 7  7 15 8  7 8 0"/>
</asset>
"""


def at(studio: Any, picture: Any, point: tuple[float, float, float]) -> list[int]:
    x, y = studio.pixel(point)
    return list(picture[int(y), int(x)])


def test_a_mode_is_named_by_its_word_in_any_case(studio: Any) -> None:
    assert studio.viewport.mode is ViewMode.LIT
    assert [studio.viewport.set_mode(str(mode)) for mode in ViewMode] == list(ViewMode)
    assert studio.viewport.set_mode("UnLit") is ViewMode.UNLIT


def test_an_unknown_mode_is_refused_and_changes_nothing(studio: Any) -> None:
    studio.viewport.set_mode("wireframe")
    with pytest.raises(InvalidMode, match="collision, lit, reflections, unlit, wireframe, not 'x-ray'"):
        studio.viewport.set_mode("x-ray")
    assert studio.viewport.mode is ViewMode.WIREFRAME


def test_unlit_shows_exactly_the_colour_of_the_material_on_every_side(studio: Any) -> None:
    material = "<asset><material name='m' rgba='.6 .4 .2 1' shininess='1' specular='1' emission='.3'/></asset>"
    studio.show(SUN + "<geom type='box' size='.5 .5 .5' material='m'/>", extra=material)
    studio.viewport.set_camera((-2.0, -1.0, 1.5))
    studio.viewport.set_camera((-2.0, -1.0, 1.5), studio.viewport.camera.looking_at((0.0, 0.0, 0.0)).quat_wxyz)
    flat = studio.picture("unlit")
    spots = [(-0.5, 0.0, 0.0), (0.0, -0.5, 0.0), (0.0, 0.0, 0.5)]
    assert [at(studio, flat, spot) for spot in spots] == [[153, 102, 51]] * 3
    lit = studio.picture("lit")
    assert len({tuple(at(studio, lit, spot)) for spot in spots}) == 3


def test_unlit_keeps_textures(studio: Any) -> None:
    paint = """<asset>
      <texture name='t' type='cube' builtin='flat' rgb1='.2 .8 .4' rgb2='.2 .8 .4' width='8' height='48'/>
      <material name='m' texture='t'/>
    </asset>"""
    studio.show(SUN + "<geom type='box' size='.5 .5 .5' material='m'/>", extra=paint)
    assert at(studio, studio.picture("unlit"), FRONT) == pytest.approx([51, 204, 102], abs=1)


def test_wireframe_shows_the_edges_and_the_background_between_them(studio: Any) -> None:
    studio.show(BOX)
    solid = studio.find(BROWN, studio.picture("unlit"))
    wires = studio.picture("wireframe")
    left, top, right, bottom = solid.box
    inside = wires[top + 3 : bottom - 3, left + 3 : right - 3].sum(axis=2)
    assert solid.count == pytest.approx((right - left) * (bottom - top), rel=0.02)
    assert (inside == 0).mean() > 0.3
    edge = studio.find(BROWN, wires, tolerance=90)
    assert edge.has(*studio.pixel((-0.5, 0.5, 0.2)), within=2)
    assert edge.has(*studio.pixel((-0.5, -0.1, 0.5)), within=2)
    assert edge.has(*studio.pixel((0.5, 0.5, 0.5)), within=2)


def test_collision_hides_what_only_looks_and_shows_what_only_collides(studio: Any) -> None:
    studio.show(
        "<geom size='.3' pos='0 1 0' rgba='1 0 0 1' contype='0' conaffinity='0'/>"
        "<geom size='.3' pos='0 0 0' rgba='0 1 0 1' group='3'/>"
        "<geom size='.3' pos='0 -1 0' rgba='0 0 1 1' conaffinity='0'/>"
        "<site size='.3' pos='0 0 1' rgba='1 1 0 1'/>"
    )
    places = [(0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)]
    empty = list(studio.picture("lit")[0, 0])

    def seen(mode: str) -> list[bool]:
        picture = studio.picture(mode)
        return [at(studio, picture, place) != empty for place in places]

    assert seen("lit") == [True, False, True, True]
    assert seen("collision") == [False, True, True, False]


def test_collision_shows_what_is_invisible_and_what_collides_by_a_pair_only(studio: Any) -> None:
    studio.show(
        "<geom size='.3' pos='0 1 0' rgba='0 0 0 0'/>"
        "<body><freejoint/><geom name='a' size='.3' pos='0 0 0' contype='0' conaffinity='0' rgba='0 1 0 .2'/></body>"
        "<geom name='b' size='.3' pos='0 -1 0' contype='0' conaffinity='0' rgba='0 0 1 1'/>",
        extra="<contact><pair geom1='a' geom2='b'/></contact>",
    )
    picture = studio.picture("collision")
    empty = list(picture[0, 0])
    places = [(0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, -1.0, 0.0)]
    colours = [at(studio, picture, place) for place in places]
    assert empty not in colours
    assert [int(np.argmax(colour)) for colour in colours] == [0, 1, 2]
    assert at(studio, studio.picture("lit"), places[1]) != colours[1], "it is opaque now"


def test_collision_shows_a_mesh_as_its_convex_hull(studio: Any) -> None:
    studio.show("<geom type='mesh' mesh='u' rgba='.6 .4 .2 1'/>", extra=U_MESH)
    picture = studio.picture("lit")
    empty, notch, leg = list(picture[0, 0]), (0.0, 0.0, 0.2), (0.0, 0.7, 0.3)
    assert (at(studio, picture, notch), at(studio, picture, leg) != empty) == (empty, True)
    hull = studio.picture("collision")
    assert [at(studio, hull, place) != empty for place in (notch, leg)] == [True, True]
    assert at(studio, hull, (0.0, 0.0, -0.2)) == empty


MIRROR = """<asset><material name='mirror' rgba='.2 .2 .2 1' reflectance='.6'/></asset>"""
FLOOR = "<geom type='plane' size='4 4 .1' pos='0 0 -1' material='mirror'/>"


def test_only_reflections_mirrors_things_in_a_reflective_floor(studio: Any) -> None:
    studio.show(FLOOR + "<geom size='.4' pos='0 0 -.5' rgba='1 0 0 1'/>", extra=MIRROR)
    mirrored = (0.0, 0.0, -1.5)
    lit, reflected = studio.picture("lit"), studio.picture("reflections")
    plain, image = at(studio, lit, mirrored), at(studio, reflected, mirrored)
    assert plain[0] == plain[1] == plain[2]
    assert image[0] > image[1] + 20
    assert (lit[:80] == reflected[:80]).all(), "above the floor both show the same"


def test_only_reflections_casts_shadows(studio: Any) -> None:
    floor = "<geom type='plane' size='4 4 .1' pos='0 0 -1' rgba='.8 .8 .8 1'/>"
    ball = "<geom size='.4' pos='0 0 1.2' rgba='1 0 0 1'/>"
    lamp = "<light pos='0 0 4' dir='0 0 -1' type='directional'/>"
    shadow, beside = (0.0, 0.0, -1.0), (0.0, 1.5, -1.0)
    studio.show(lamp + floor + ball)
    lit, shaded = studio.picture("lit"), studio.picture("reflections")
    assert at(studio, lit, shadow) == pytest.approx(at(studio, lit, beside), abs=12)
    assert sum(at(studio, shaded, shadow)) < sum(at(studio, shaded, beside)) - 100


@pytest.mark.parametrize("mode", list(ViewMode))
def test_no_mode_changes_the_model(mode: str, studio: Any) -> None:
    stage = studio.show(BOX + "<geom size='.2' rgba='0 0 0 0' group='4'/>", mode=mode)
    before = copy.copy(stage.model)
    studio.picture()
    for name in ("geom_rgba", "geom_group", "geom_matid", "geom_contype"):
        assert (getattr(stage.model, name) == getattr(before, name)).all()
    assert stage.model.vis.global_.offwidth == before.vis.global_.offwidth


def test_a_mode_can_be_left_again(studio: Any) -> None:
    studio.show(SUN + BOX)
    first = studio.picture("lit")
    for mode in ViewMode:
        studio.picture(mode)
    assert (studio.picture("lit") == first).all()
