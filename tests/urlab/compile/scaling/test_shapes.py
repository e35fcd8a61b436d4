"""Different factors along the axes: shapes that can be stretched are, and the others say why not."""

import re
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.compile.blueprint import name_the_unnamed
from urlab.compile.bounds import Aabb, actor_aabb
from urlab.compile.scaling import scale_spec
from urlab.errors import EditError
from urlab.geometry import Pose, Vec3

ASSETS = """<asset>
  <mesh name="tet" vertex="-.2 0 0  1 0 .1  0 2 0  .3 0 3" scale=".5 1 .7"/>
  <hfield name="h" nrow="2" ncol="3" size="1 2 .3 .1" elevation="0 1 2 1 0 1"/>
</asset>"""
SHAPES = {
    "box": 'type="box" size=".1 .2 .3"',
    "box from a to b": 'type="box" size=".1" fromto="0 .1 .2 0 .5 .2"',
    "ellipsoid": 'type="ellipsoid" size=".1 .2 .3"',
    "ellipsoid from a to b": 'type="ellipsoid" size=".1" fromto="0 .1 .2 0 .5 .2"',
    "mesh": 'type="mesh" mesh="tet"',
    "heightfield": 'type="hfield" hfield="h"',
    "plane": 'type="plane" size="1 2 .1"',
}
quarters = st.tuples(*[st.sampled_from([0, 90, 180, 270])] * 3)
factors = st.tuples(*[st.floats(0.1, 10)] * 3)
points = st.tuples(*[st.floats(-2, 2)] * 3)


def words(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


def parsed(world: str, rest: str = "") -> Any:
    spec = mujoco.MjSpec.from_string(f"<mujoco>{ASSETS}<worldbody>{world}</worldbody>{rest}</mujoco>")
    name_the_unnamed(spec)
    return spec


def stretched(spec: Any, scale: Vec3) -> Any:
    """The compiled model."""
    scale_spec(spec, scale, is_articulation=False)
    return spec.compile()


def box(model: Any) -> Aabb:
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    found = actor_aabb(model, data, Pose())
    assert found is not None
    return found


def assert_stretched(world: str, scale: Vec3) -> None:
    """The box around everything is stretched exactly."""
    before, after = box(parsed(world).compile()), box(stretched(parsed(world), scale))
    np.testing.assert_allclose(after.lower, np.array(before.lower) * scale, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(after.upper, np.array(before.upper) * scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None, derandomize=True, max_examples=12)
@given(scale=factors, pos=points, turns=st.tuples(quarters, quarters, quarters), is_free=st.booleans())
def test_a_shape_turned_by_quarters_is_stretched_exactly(
    shape: str, scale: Vec3, pos: Vec3, turns: Any, is_free: bool
) -> None:
    geom_turn = "" if "fromto" in SHAPES[shape] else f'pos="{words(pos)}" euler="{words(turns[2])}"'
    joint = "<freejoint/>" if is_free and shape not in ("heightfield", "plane") else ""
    body = f'<body pos="{words(pos)}" euler="{words(turns[0])}">{joint}'
    frame = f'<frame pos="{words(pos)}" euler="{words(turns[1])}">'
    assert_stretched(f"{body}{frame}<geom {SHAPES[shape]} {geom_turn}/></frame></body>", scale)


@pytest.mark.parametrize("geom", ['type="cylinder" size=".1 .3"', 'type="box" size=".1 .2 .3" euler="0 0 30"'])
def test_a_stretch_along_the_axis_of_a_shape_leaves_its_turn_about_it_free(geom: str) -> None:
    assert_stretched(f"<geom {geom}/>", (2.0, 2.0, 0.5))


@pytest.mark.parametrize(
    "notation", ['quat="1 0 0 1"', 'axisangle="0 0 1 90"', 'xyaxes="0 1 0 -1 0 0"', 'euler="0 0 90"']
)
def test_a_turn_is_understood_in_every_notation(notation: str) -> None:
    model = stretched(parsed(f'<geom type="box" size=".1 .2 .3" {notation}/>'), (2.0, 3.0, 5.0))
    np.testing.assert_allclose(model.geom_size[0], (0.3, 0.4, 1.5))


@pytest.mark.parametrize("quarter", ["1.5708", "1.57"])
@pytest.mark.parametrize(
    "geom", ['type="cylinder" size=".1 .3"', 'type="box" size=".3 .3 .3"', 'type="mesh" mesh="tet"']
)
def test_a_quarter_turn_may_be_rounded(geom: str, quarter: str) -> None:
    spec = parsed(f'<geom {geom} euler="0 {quarter} 0"/>')
    spec.compiler.degree = False
    before = box(spec.copy().compile())
    after = box(stretched(spec, (8.0, 1.0, 1.0)))
    np.testing.assert_allclose(after.half_size, np.array(before.half_size) * (8, 1, 1), rtol=0.02)


def test_users_of_one_mesh_that_are_turned_differently_get_a_mesh_each() -> None:
    geoms = "".join(
        f'<geom type="mesh" mesh="tet" euler="0 0 {turn}"/><geom type="hfield" hfield="h" euler="0 0 {turn}"/>'
        for turn in (0, 90, 0, 180)
    )
    model = stretched(parsed(geoms), (2.0, 3.0, 1.0))
    assert (model.nmesh, model.nhfield) == (2, 2)
    assert model.geom_dataid.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    np.testing.assert_allclose(model.mesh_scale, [(1, 3, 0.7), (1.5, 2, 0.7)])
    np.testing.assert_allclose(model.hfield_size, [(2, 6, 0.3, 0.1), (3, 4, 0.3, 0.1)])


def test_masses_follow_the_volume_unless_they_are_stated() -> None:
    geom = '<body><freejoint/><geom type="box" size=".1 .2 .3" {}/></body>'
    model = stretched(parsed(geom.format("") + geom.format('mass="2"')), (2.0, 3.0, 0.5))
    np.testing.assert_allclose(model.body_mass[1:], (0.2 * 0.4 * 0.6 * 1000 * 3, 2))


def test_a_stated_inertia_is_that_of_the_same_mass_spread_wider() -> None:
    size = np.array((0.1, 0.2, 0.3))

    def solid(half: Any) -> Any:
        return 3 / 3 * (np.sum(half**2) - half**2)

    inertial = f'<inertial pos="1 2 3" mass="3" diaginertia="{words(solid(size))}"/>'
    scale = (2.0, 3.0, 0.5)
    model = stretched(parsed(f"<body><freejoint/>{inertial}</body>"), scale)
    assert model.body_mass[1] == 3
    np.testing.assert_allclose(model.body_ipos[1], (2, 6, 1.5))
    np.testing.assert_allclose(sorted(model.body_inertia[1]), sorted(solid(size * scale)))


def test_a_keyframe_with_fewer_numbers_than_coordinates_is_stretched_as_far_as_it_goes() -> None:
    world = 2 * '<body><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    keys = '<keyframe><key name="k" qpos="1 1 1"/></keyframe>'
    plain, model = parsed(world, keys).compile(), stretched(parsed(world, keys), (2.0, 3.0, 5.0))
    assert model.key("k").qpos.tolist() == [2, 3, 5, *plain.key("k").qpos[3:]]


def test_keyframes_of_free_and_mocap_bodies_are_stretched_along_the_axes_of_the_world() -> None:
    world = '<body euler="0 0 90"><freejoint/><geom type="box" size=".1 .1 .1"/></body><body mocap="true"/>'
    keys = '<keyframe><key name="k" qpos="1 1 1 0 1 0 0" mpos="1 2 3"/></keyframe>'
    model = stretched(parsed(world, keys), (2.0, 3.0, 5.0))
    assert model.key("k").qpos.tolist() == [2, 3, 5, 0, 1, 0, 0]
    assert model.key("k").mpos.ravel().tolist() == [2, 6, 15]


def test_an_equality_with_the_world_is_stretched_on_both_sides() -> None:
    world = '<body name="b" pos="1 1 1" euler="0 0 90"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    fastened = '<equality><connect body1="b" anchor="1 2 3"/></equality>'
    before = parsed(world, fastened).compile()
    after = stretched(parsed(world, fastened), (2.0, 3.0, 5.0))
    np.testing.assert_allclose(after.eq_data[0, :3], before.eq_data[0, :3] * (3, 2, 5))
    np.testing.assert_allclose(after.eq_data[0, 3:6], before.eq_data[0, 3:6] * (2, 3, 5))


TILTED = (
    "is turned against the axes of the scale; under different factors it may only be turned by multiples of 90 degrees"
)
REFUSED = {
    '<geom name="g" size=".1"/>': (
        "geom 'g' (sphere) takes one factor for all axes, not [2, 1, 1]; an ellipsoid can be stretched"
    ),
    '<geom name="g" type="capsule" size=".1 .2" euler="0 90 0"/>': (
        "geom 'g' (capsule) takes one factor for all axes, not [1, 1, 2]"
    ),
    '<geom name="g" type="cylinder" size=".1 .2"/>': (
        "geom 'g' (cylinder) takes one factor across its axis, not [2, 1]"
    ),
    '<geom name="g" type="cylinder" size=".1 .2" euler="0 30 0"/>': f"geom 'g' (cylinder) {TILTED}",
    '<geom name="g" type="box" size=".1 .1 .1" euler="0 0 30"/>': f"geom 'g' (box) {TILTED}",
    '<body euler="0 0 30"><geom name="g" type="ellipsoid" size=".1 .2 .3"/></body>': f"geom 'g' (ellipsoid) {TILTED}",
    '<frame euler="0 0 1"><geom name="g" type="mesh" mesh="tet"/></frame>': f"geom 'g' (mesh) {TILTED}",
    '<geom name="g" type="hfield" hfield="h" euler="0 45 0"/>': f"geom 'g' (hfield) {TILTED}",
    '<geom name="g" type="plane" size="0 0 1" euler="0 45 0"/>': f"geom 'g' (plane) {TILTED}",
    '<geom name="g" type="box" mesh="tet"/>': (
        "geom 'g' (box), which is fitted to mesh 'tet', takes one factor for all axes, not [2, 1, 1]"
    ),
    '<frame name="f" scale="1 2 1" scaling="geometry" euler="0 0 30"/>': (
        "frame 'f' has a scale of its own, [1, 2, 1], and is turned against the axes of the scale [2, 1, 1]; "
        "one factor for all axes would do"
    ),
}


@pytest.mark.parametrize("world", REFUSED)
def test_what_cannot_be_stretched_says_why(world: str) -> None:
    with pytest.raises(EditError, match=f"^{re.escape(REFUSED[world])}$"):
        scale_spec(parsed(world), (2.0, 1.0, 1.0), is_articulation=False)


@pytest.mark.parametrize("world", [world for world in REFUSED if "frame name" not in world])
def test_what_cannot_be_stretched_can_be_scaled(world: str) -> None:
    before, after = parsed(world).compile(), stretched(parsed(world), (2.0, 2.0, 2.0))
    np.testing.assert_allclose(after.geom_rbound, before.geom_rbound * 2)


SITES = '<site name="a"/><site name="b" pos="0 0 1"/>'
SKIN = """<deformable><skin name="x" vertex="0 0 0  1 0 0  0 1 0" face="0 1 2">
  <bone body="world" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>"""
WITHOUT_DIRECTION = {
    "tendon": (SITES, '<tendon><spatial name="x"><site site="a"/><site site="b"/></spatial></tendon>'),
    "flex": (
        '<body name="b"><flexcomp name="x" type="grid" count="3 3 1" spacing="1 1 1" dim="2" rigid="true"/></body>',
        "",
    ),
    "skin": ("", SKIN),
}


@pytest.mark.parametrize("kind", WITHOUT_DIRECTION)
def test_lengths_without_a_direction_cannot_be_stretched(kind: str) -> None:
    reason = f"{kind} 'x' takes one factor for all axes, not [2, 1, 1]: its lengths have no direction"
    with pytest.raises(EditError, match=f"^{re.escape(reason)}$"):
        scale_spec(parsed(*WITHOUT_DIRECTION[kind]), (2.0, 1.0, 1.0), is_articulation=False)
