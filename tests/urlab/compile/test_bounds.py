"""The box around an actor: tight, whatever the shape and however it is turned."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from urlab.compile.bounds import Aabb, actor_aabb
from urlab.geometry import IDENTITY_WXYZ, Pose, Quat, Vec3, normalised, wxyz_from_euler_deg
from urlab.robots import model_path

Array = NDArray[np.float64]
RNG = np.random.default_rng(7)
BALL = RNG.normal(size=(30000, 3))
BALL /= np.linalg.norm(BALL, axis=1)[:, None]
CUBE = np.clip(RNG.uniform(-1.5, 1.5, size=(3000, 3)), -1, 1)
ANGLE = RNG.uniform(0, 2 * np.pi, size=30000)
CIRCLE = np.stack([np.cos(ANGLE), np.sin(ANGLE), np.zeros_like(ANGLE)], axis=1)
RIM = np.concatenate([CIRCLE + np.array([0, 0, z]) for z in (1, -1)])

SAMPLES: dict[str, Callable[[Array], Array]] = {
    "sphere": lambda size: BALL * size[0],
    "ellipsoid": lambda size: BALL * size,
    "capsule": lambda size: np.concatenate([BALL * size[0] + np.array([0, 0, z]) for z in (size[1], -size[1])]),
    "cylinder": lambda size: RIM * (size[0], size[0], size[1]),
    "box": lambda size: CUBE * size,
    "plane": lambda size: CUBE * (size[0], size[1], 0),
}

HERE = Pose()
quats = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 0.1).map(normalised)
points = st.tuples(*[st.floats(-2, 2)] * 3)
sizes = st.tuples(*[st.floats(0.1, 2)] * 3)


def compiled(xml: str) -> tuple[Any, Any]:
    """The model and its data after kinematics."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return model, data


def one_geom(attributes: str, assets: str = "") -> tuple[Any, Any]:
    return compiled(f"<mujoco><asset>{assets}</asset><worldbody><geom {attributes}/></worldbody></mujoco>")


def words(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


def matrix(quat: Quat) -> Array:
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, np.array(quat))
    return flat.reshape(3, 3)


def placed(local: Array, pos: Vec3, quat: Quat, pose: Pose) -> Array:
    """Points of a geom's frame, in the world."""
    return (local @ matrix(quat).T + pos) @ matrix(pose.quat_wxyz).T + pose.pos


def box(model: Any, data: Any, pose: Pose = HERE, **options: bool) -> Aabb:
    found = actor_aabb(model, data, pose, **options)
    assert found is not None
    return found


def assert_around(found: Aabb, samples: Array, slack: float) -> None:
    """Samples stick out by the rounding of float32 at most, and the box by ``slack`` metres at most."""
    lower, upper = samples.min(axis=0), samples.max(axis=0)
    assert np.all(np.array(found.lower) <= lower + 1e-6)
    assert np.all(np.array(found.upper) >= upper - 1e-6)
    np.testing.assert_allclose(found.lower, lower, rtol=0, atol=slack)
    np.testing.assert_allclose(found.upper, upper, rtol=0, atol=slack)


@pytest.mark.parametrize("shape", SAMPLES)
@settings(deadline=None, derandomize=True, max_examples=15)
@given(size=sizes, pos=points, quat=quats, where=points, turn=quats)
def test_a_box_is_tight_around_points_of_the_surface(
    shape: str, size: Vec3, pos: Vec3, quat: Quat, where: Vec3, turn: Quat
) -> None:
    pose = Pose(where, turn)
    model, data = one_geom(f'type="{shape}" size="{words(size)}" pos="{words(pos)}" quat="{words(quat)}"')
    assert_around(box(model, data, pose), placed(SAMPLES[shape](np.array(size)), pos, quat, pose), 4e-3)


def surface(model: Any, data: Any) -> Array:
    """Where rays from above meet a heightfield that is not turned, at the points of its grid."""
    hits = []
    for x, y in 0.9999 * np.array([(x, y) for x in np.linspace(-2, 2, 4) for y in np.linspace(-1, 1, 3)]):
        drop = mujoco.mj_ray(model, data, np.array([x, y, 9.0]), np.array([0, 0, -1.0]), None, 1, -1, np.zeros(1, "i4"))
        hits.append((x, y, 9 - drop))
    return np.array(hits)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(heights=st.lists(st.floats(0, 3), min_size=12, max_size=12), turn=quats)
def test_a_heightfield_counts_with_its_real_heights(heights: list[float], turn: Quat) -> None:
    field = f'<hfield name="h" nrow="3" ncol="4" size="2 1 .7 .3" elevation="{words(heights)}"/>'
    model, data = one_geom('type="hfield" hfield="h"', field)
    base = np.array([[x, y, -0.3] for x in (-2, 2) for y in (-1, 1)])
    pose = Pose((1.0, 2.0, 3.0), turn)
    samples = placed(np.concatenate([surface(model, data), base]), (0.0, 0.0, 0.0), IDENTITY_WXYZ, pose)
    assert_around(box(model, data, pose), samples, 1e-3)


def test_a_flat_heightfield_is_as_high_as_its_heights_not_as_its_size() -> None:
    field = '<hfield name="h" nrow="2" ncol="2" size="1 1 5 .1" elevation="0 0 0 0"/>'
    found = box(*one_geom('type="hfield" hfield="h"', field))
    assert found == Aabb((-1.0, -1.0, -0.1), (1.0, 1.0, 0.0))


CUBE_MESH = '<mesh name="m" vertex="-1 -1 -1 1 -1 -1 -1 1 -1 1 1 -1 -1 -1 1 1 -1 1 -1 1 1 1 1 1"/>'


@pytest.mark.parametrize("turned", ["geom", "actor"])
def test_a_cube_mesh_turned_by_45_degrees_is_not_boxed_twice(turned: str) -> None:
    attributes = 'type="mesh" mesh="m"' + (' euler="0 0 45"' if turned == "geom" else "")
    pose = Pose(quat_wxyz=wxyz_from_euler_deg((0, 0, 45))) if turned == "actor" else Pose()
    found = box(*one_geom(attributes, CUBE_MESH), pose)
    np.testing.assert_allclose(found.half_size, (math.sqrt(2), math.sqrt(2), 1), atol=1e-6)


def test_turns_of_geom_and_actor_that_cancel_give_the_plain_box() -> None:
    model, data = one_geom('type="mesh" mesh="m" euler="0 0 45"', CUBE_MESH)
    found = box(model, data, Pose((1.0, 0.0, 0.0), wxyz_from_euler_deg((0, 0, -45))))
    np.testing.assert_allclose(found.half_size, (1, 1, 1), atol=1e-6)
    np.testing.assert_allclose(found.center, (1, 0, 0), atol=1e-6)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(quat=quats, pos=points, turn=quats)
def test_a_mesh_counts_with_its_vertices_where_the_author_put_them(quat: Quat, pos: Vec3, turn: Quat) -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3], [-0.5, 0.2, 0.1]])
    mesh = f'<mesh name="m" vertex="{words(corners.ravel())}" scale=".5 1 2"/>'
    model, data = one_geom(f'type="mesh" mesh="m" pos="{words(pos)}" quat="{words(quat)}"', mesh)
    pose = Pose((0.5, 0.0, -1.0), turn)
    assert_around(box(model, data, pose), placed(corners * (0.5, 1, 2), pos, quat, pose), 1e-5)


def test_the_box_of_a_mesh_of_200000_vertices_is_that_of_its_vertices() -> None:
    spec = mujoco.MjSpec()
    count = 200_000
    angle, height = np.linspace(0, 300 * np.pi, count), np.linspace(-1, 1, count)
    vertices = np.stack([np.cos(angle), np.sin(angle), height], axis=1)
    faces = np.array([[0, count // 3, 2 * count // 3], [0, count // 3, count - 1]])
    spec.add_mesh(
        name="m", uservert=vertices.ravel(), userface=faces.ravel(), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    )
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="m", contype=0, conaffinity=0)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    pose = Pose(quat_wxyz=wxyz_from_euler_deg((10, 20, 30)))
    found = box(model, data, pose)
    np.testing.assert_allclose(found.upper, (vertices @ matrix(pose.quat_wxyz).T).max(axis=0), atol=1e-4)


def test_what_cannot_touch_counts_unless_only_colliders_are_asked_for() -> None:
    model, data = compiled(
        """<mujoco><worldbody>
          <geom size=".1" rgba="0 0 0 0"/>
          <geom type="box" size="1 1 1" contype="0" conaffinity="0"/>
          <geom size=".1" pos=".5 0 0" contype="0" conaffinity="2"/>
        </worldbody></mujoco>"""
    )
    assert box(model, data) == Aabb((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    assert box(model, data, colliding_only=True) == Aabb((-0.1, -0.1, -0.1), (0.6, 0.1, 0.1))


@pytest.mark.parametrize("size", ["0 0 .1", "0 1 .1", "1 0 .1"])
def test_a_plane_that_is_infinite_along_any_axis_is_left_out(size: str) -> None:
    assert actor_aabb(*one_geom(f'type="plane" size="{size}"'), Pose()) is None


def test_a_model_without_geometry_has_no_box() -> None:
    assert actor_aabb(*compiled("<mujoco><worldbody><site/></worldbody></mujoco>"), Pose()) is None


def test_nothing_is_left_when_nothing_collides() -> None:
    model, data = one_geom('size=".1" contype="0" conaffinity="0"')
    assert actor_aabb(model, data, Pose(), colliding_only=True) is None


def test_center_and_half_size_say_the_same_as_the_corners() -> None:
    found = Aabb((-1.0, 0.0, 2.0), (3.0, 1.0, 2.5))
    assert (found.center, found.half_size) == ((1.0, 0.5, 2.25), (2.0, 0.5, 0.25))


def test_bodies_count_where_the_joints_have_brought_them() -> None:
    model, data = compiled(
        """<mujoco><worldbody><body><joint axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 1 0 0" size=".1"/>
        </body></worldbody></mujoco>"""
    )
    data.qpos[0] = -np.pi / 2
    mujoco.mj_kinematics(model, data)
    found = box(model, data, Pose((0.0, 0.0, 1.0)))
    np.testing.assert_allclose(found.lower, (-0.1, -0.1, 0.9), atol=1e-9)
    np.testing.assert_allclose(found.upper, (0.1, 0.1, 2.1), atol=1e-9)


def test_a_signed_distance_geom_counts_with_its_mesh() -> None:
    model, data = one_geom('type="sdf" mesh="m"', CUBE_MESH)
    pose = Pose(quat_wxyz=wxyz_from_euler_deg((45, 0, 0)))
    np.testing.assert_allclose(box(model, data, pose).half_size, (1, math.sqrt(2), math.sqrt(2)), atol=1e-6)


FLEX = """
<mujoco><worldbody><body name="b" pos="0 0 1" euler="20 30 40">
  <flexcomp name="f" type="grid" count="4 3 3" spacing=".1 .1 .1" radius=".02" dim="3" mass="1" {settings}>
    <contact contype="{contype}" conaffinity="{contype}" selfcollide="none"/>
  </flexcomp>
</body></worldbody></mujoco>
"""


@pytest.mark.parametrize("settings", ['dof="full"', 'dof="trilinear"', 'rigid="true"'])
def test_a_flex_counts_with_its_vertices_and_its_radius(settings: str) -> None:
    model, data = compiled(FLEX.format(settings=settings, contype=1))
    data.qpos[:] += np.random.default_rng(3).uniform(-0.02, 0.02, model.nq)
    mujoco.mj_kinematics(model, data)
    stepped = mujoco.MjData(model)
    stepped.qpos = data.qpos
    mujoco.mj_forward(model, stepped)
    pose = Pose((1.0, 2.0, 3.0), wxyz_from_euler_deg((10, 20, 30)))
    vertices = placed(stepped.flexvert_xpos, (0.0, 0.0, 0.0), IDENTITY_WXYZ, pose)
    found = box(model, data, pose)
    np.testing.assert_allclose(found.lower, vertices.min(axis=0) - 0.02, atol=1e-9)
    np.testing.assert_allclose(found.upper, vertices.max(axis=0) + 0.02, atol=1e-9)


def test_a_flex_that_cannot_touch_is_no_collider() -> None:
    model, data = compiled(FLEX.format(settings="", contype=0))
    assert actor_aabb(model, data, Pose(), colliding_only=True) is None


SKIN = """
<mujoco>
  <deformable><skin name="s" vertex="0 0 0  1 0 0  0 1 0  2 0 .5" face="0 1 2  1 3 2">
    <bone body="a" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 .5 1"/>
    <bone body="b" bindpos="1 0 0" bindquat="1 0 0 0" vertid="1 3" vertweight=".5 1"/>
  </skin></deformable>
  <worldbody>
    <body name="a"><joint axis="0 0 1"/><geom size=".01" mass="1"/>
      <body name="b" pos="1 0 0"><joint axis="0 1 0"/><geom size=".01" mass="1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


def test_a_skin_counts_where_it_is_drawn_but_is_no_collider() -> None:
    model, data = compiled(SKIN)
    data.qpos[:] = 0.4, -0.7
    mujoco.mj_forward(model, data)
    scene, camera, option = mujoco.MjvScene(model, 100), mujoco.MjvCamera(), mujoco.MjvOption()
    mujoco.mjv_updateScene(model, data, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
    drawn = np.array(scene.skinvert).reshape(-1, 3)
    found = box(model, data)
    np.testing.assert_allclose(found.upper, np.maximum(drawn.max(axis=0), data.geom_xpos.max(axis=0) + 0.01), atol=1e-5)
    assert found.upper[0] > box(model, data, colliding_only=True).upper[0] + 0.3


def test_the_shipped_terrain_is_as_large_as_its_file_says() -> None:
    path: Path = model_path("terrain")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    found = box(model, data)
    np.testing.assert_allclose(found.lower, (-1.5, -1.5, -0.05), atol=1e-6)
    np.testing.assert_allclose(found.upper, (1.5, 1.5, 0.12), atol=1e-6)
