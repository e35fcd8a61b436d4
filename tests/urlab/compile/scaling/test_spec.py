"""A model scaled by one factor is the model that its author would have written in another size."""

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.compile.blueprint import name_the_unnamed
from urlab.compile.bounds import actor_aabb
from urlab.compile.scaling import scale_spec
from urlab.errors import EditError
from urlab.geometry import Pose, Vec3, wxyz_from_euler_deg
from urlab.robots import model_names, model_path

Differ = Callable[..., list[str]]


def parsed(xml: str) -> Any:
    spec = mujoco.MjSpec.from_string(xml)
    name_the_unnamed(spec)
    return spec


def scaled(spec: Any, factor: float) -> Any:
    """The compiled model."""
    scale_spec(spec, (factor, factor, factor), is_articulation=True)
    return spec.compile()


ARM = """
<mujoco>
  <compiler angle="radian"/>
  <default>
    <geom friction="1 {f1} {f2}" solimp=".9 .95 {w}"/> <joint solimplimit=".9 .95 {w}" solimpfriction=".9 .95 {w}"/>
  </default>
  <asset><mesh name="m" vertex="0 0 0  1 0 0  0 1 0  0 0 1" scale="{m} {m} {m}"/></asset>
  <worldbody>
    <body name="base" pos="{x} 0 {y}">
      <inertial pos="0 0 {x}" mass="3" diaginertia="{i} {i} {i}"/>
      <joint name="lift" type="slide" axis="0 0 1" range="{x} {y}" stiffness="7" damping="2"/>
      <body name="arm" pos="{y} 0 0" euler=".1 .2 .3">
        <joint name="turn" axis="0 1 0" pos="0 {x} 0" range="-1 1"
               solimplimit=".9 .95 .001" solimpfriction=".9 .95 .001"/>
        <geom name="stated" type="box" size="{x} {x} {y}" mass="2"/>
        <geom name="dense" type="capsule" fromto="0 0 0 {x} {y} {x}" size="{x}" density="300"/>
        <geom name="shell" size="{y}" shellinertia="true" density="20"/>
        <geom name="mesh" type="mesh" mesh="m" pos="{x} {x} {x}"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <general name="servo" joint="lift" gainprm="9" biasprm="0 -9 -1" biastype="affine" ctrlrange="{x} {y}"/>
    <general name="speed" joint="lift" gainprm="9" biasprm="0 0 -9" biastype="affine" ctrlrange="{x} {y}"/>
    <motor name="motor" joint="lift" ctrlrange="-3 3" gear="2"/>
    <position name="turner" joint="turn" kp="2" ctrlrange="-1 1"/>
  </actuator>
  <keyframe><key name="home" qpos="{y} .5" ctrl="{x} {y} 1 2"/></keyframe>
</mujoco>
"""
SMALL = {"x": 0.125, "y": 0.25, "i": 0.5, "m": 0.5, "w": 0.001, "f1": 0.005, "f2": 0.0001}
LARGE = {"x": 0.25, "y": 0.5, "i": 2, "m": 1, "w": 0.002, "f1": 0.01, "f2": 0.0002}


def test_an_arm_twice_as_large_is_the_arm_written_twice_as_large_bit_for_bit(differ: Differ) -> None:
    assert differ(scaled(parsed(ARM.format(**SMALL)), 2.0), parsed(ARM.format(**LARGE)).compile()) == []


def test_stated_masses_stay_and_others_follow_volume_or_surface() -> None:
    small, large = parsed(ARM.format(**SMALL)).compile(), scaled(parsed(ARM.format(**SMALL)), 2.0)
    assert large.body("base").mass == small.body("base").mass == 3
    np.testing.assert_allclose(large.body("base").inertia, small.body("base").inertia * 4)
    surface = 20 * 4 * np.pi * 0.25**2
    volume = float(small.body("arm").mass[0]) - 2 - surface
    assert large.body("arm").mass[0] == pytest.approx(2 + 4 * surface + 8 * volume)


def test_setpoints_of_servos_are_lengths_and_controls_of_motors_are_not() -> None:
    large = scaled(parsed(ARM.format(**SMALL)), 2.0)
    found = {large.actuator(index).name: large.actuator(index).ctrlrange.tolist() for index in range(4)}
    assert found == {"servo": [0.25, 0.5], "speed": [0.25, 0.5], "motor": [-3, 3], "turner": [-1, 1]}
    assert large.key("home").ctrl.tolist() == [0.25, 0.5, 1, 2]


def test_an_orthographic_camera_sees_as_much_of_the_model_as_before() -> None:
    spec = parsed('<mujoco><worldbody><camera name="c" projection="orthographic" fovy="2"/></worldbody></mujoco>')
    assert scaled(spec, 3.0).camera("c").fovy == 6


def test_what_is_added_later_takes_the_defaults_as_the_author_wrote_them() -> None:
    spec = parsed('<mujoco><default><geom margin=".01" size=".2"/></default><worldbody><geom/></worldbody></mujoco>')
    scale_spec(spec, (2.0, 2.0, 2.0), is_articulation=False)
    spec.worldbody.add_geom()
    model = spec.compile()
    assert model.geom_margin.tolist() == [0.02, 0.01]
    assert model.geom_size[:, 0].tolist() == [0.4, 0.2]


CHAIN = """
<mujoco>
  <worldbody>
    <site name="hook" pos="0 0 2"/>
    <body name="cart" pos="0 .1 .2" euler="10 20 30"><joint name="rail" type="slide" axis="1 0 0"/>
      <inertial pos=".1 0 0" mass="2" diaginertia=".1 .2 .25"/>
      <body name="arm" pos="0 .3 .1"><joint name="elbow" axis="1 1 0" pos=".1 .1 0"/>
        <geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".04" mass="1"/><site name="tip" pos=".1 .2 .3"/>
        <body pos=".2 .1 .1"><joint type="ball"/><geom type="box" size=".1 .2 .3" pos=".1 .1 .1" mass="3"/></body>
      </body>
    </body>
    <body name="loose" pos="1 2 3"><freejoint align="false"/>
      <geom type="ellipsoid" size=".1 .2 .3" pos=".1 .2 0" mass="2"/></body>
  </worldbody>
  <tendon><spatial><site site="hook"/><site site="tip"/></spatial></tendon>
</mujoco>
"""


@settings(deadline=None, derandomize=True, max_examples=25)
@given(factor=st.floats(0.05, 20), seed=st.integers(0, 1000))
def test_kinematics_scale_and_angles_accelerate_alike_when_gravity_scales_too(factor: float, seed: int) -> None:
    plain, large = parsed(CHAIN).compile(), scaled(parsed(CHAIN), factor)
    large.opt.gravity *= factor
    before, after = mujoco.MjData(plain), mujoco.MjData(large)
    before.qpos = np.random.default_rng(seed).uniform(-1, 1, plain.nq)
    qpos_factors, dof_factors = np.ones(plain.nq), np.ones(plain.nv)
    qpos_factors[[0, 6, 7, 8]] = dof_factors[[0, 5, 6, 7]] = factor
    after.qpos = before.qpos * qpos_factors
    mujoco.mj_forward(plain, before)
    mujoco.mj_forward(large, after)
    for name in ("xpos", "xipos", "geom_xpos", "site_xpos", "subtree_com", "ten_length"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name) * factor, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.xquat, before.xquat, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.qacc_smooth, before.qacc_smooth * dof_factors, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_shipped_model_scales_and_takes_that_much_more_space(name: str, factor: float) -> None:
    pose = Pose((0.0, 0.0, 0.0), wxyz_from_euler_deg((10, 20, 30)))
    boxes = []
    for factor_now in (1.0, factor):
        spec = mujoco.MjSpec.from_file(str(model_path(name)))
        name_the_unnamed(spec)
        model = scaled(spec, factor_now)
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        boxes.append(actor_aabb(model, data, pose))
    before, after = boxes
    if before is None or after is None:
        assert before is after is None
        return
    np.testing.assert_allclose(after.lower, np.array(before.lower) * factor, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(after.upper, np.array(before.upper) * factor, rtol=1e-6, atol=1e-9)


def test_a_urdf_scales_like_the_rest() -> None:
    urdf = """<robot name="r"><link name="base"/><link name="tool">
        <inertial><origin xyz=".1 0 0"/><mass value="2"/>
          <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><origin xyz="0 0 .5" rpy="0 0 1"/><geometry><box size=".2 .4 .6"/></geometry></collision></link>
      <joint name="slider" type="prismatic"><parent link="base"/><child link="tool"/><origin xyz="1 2 3"/>
        <limit lower="-1" upper="2" effort="5" velocity="1"/></joint></robot>"""
    model = scaled(parsed(urdf), 2.0)
    assert model.joint("slider").range.tolist() == [-2, 4]
    assert model.body("tool").mass == 2
    np.testing.assert_allclose(model.body("tool").inertia, (4, 4, 4))
    np.testing.assert_allclose(model.body("tool").ipos, (0.2, 0, 0))
    np.testing.assert_allclose(model.geom_size[0], (0.2, 0.4, 0.6))


@pytest.mark.parametrize("scale", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, float("nan")), (float("inf"),) * 3])
def test_a_scale_that_is_not_positive_is_refused(scale: Vec3) -> None:
    with pytest.raises(EditError, match=r"^a scale has three positive factors, not \["):
        scale_spec(parsed(CHAIN), scale, is_articulation=True)


def test_an_articulation_refuses_different_factors() -> None:
    with pytest.raises(EditError, match=r"^an articulation takes one factor for all axes, not \[1, 2, 1\]$"):
        scale_spec(parsed(CHAIN), (1.0, 2.0, 1.0), is_articulation=True)


TORUS = """<mujoco><extension><plugin plugin="mujoco.sdf.torus"><instance name="t"/></plugin></extension>
  <asset><mesh name="m"><plugin instance="t"/></mesh></asset><worldbody>{}</worldbody></mujoco>"""
MIXED = """<mujoco><worldbody><body><joint name="s" type="slide"/><joint name="h"/><geom size=".1"/></body></worldbody>
  <tendon><fixed name="t"><joint joint="s" coef="1"/><joint joint="h" coef="1"/></fixed></tendon></mujoco>"""
SKIN = """<mujoco><deformable><skin name="s" file="s.skn"/></deformable></mujoco>"""
REFUSED = [
    (TORUS.format('<geom name="g" type="sdf" mesh="m"><plugin instance="t"/></geom>'), "geom 'g' is shaped by a plug"),
    (TORUS.format('<geom type="mesh" mesh="m"/>'), "mesh 'm' is shaped by a plugin"),
    (MIXED, "tendon 't' adds hinges to slide joints, so that it cannot be scaled"),
    (SKIN, "skin 's' cannot be scaled, because its vertices are in a file"),
]


@pytest.mark.parametrize(("xml", "reason"), REFUSED)
def test_what_cannot_be_scaled_is_named(xml: str, reason: str) -> None:
    with pytest.raises(EditError, match=reason):
        scale_spec(parsed(xml), (2.0, 2.0, 2.0), is_articulation=True)


def test_a_body_with_a_plugin_is_named() -> None:
    spec = parsed(CHAIN)
    spec.activate_plugin("mujoco.elasticity.cable")
    arm = spec.body("arm")
    arm.plugin.plugin_name, arm.plugin.active = "mujoco.elasticity.cable", True
    with pytest.raises(EditError, match=r"^body 'arm' has a plugin"):
        scale_spec(spec, (2.0, 2.0, 2.0), is_articulation=True)


@pytest.mark.parametrize(
    ("key", "qpos", "qvel"),
    [
        ('qvel="1 2"', [0, 0, 2, 1, 0, 0, 0, 0], [2, 4, 0, 0, 0, 0, 0]),
        ('qpos="1 1" qvel="1"', [2, 2, 2, 1, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0]),
        ('ctrl=""', [0, 0, 2, 1, 0, 0, 0, 0], [0] * 7),
    ],
)
def test_a_keyframe_with_fewer_numbers_than_coordinates_is_scaled(
    key: str, qpos: list[float], qvel: list[float]
) -> None:
    xml = f"""<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size=".1"/>
      <body><joint name="s" type="slide"/><geom size=".1"/></body></body></worldbody>
      <actuator><motor joint="s"/></actuator><keyframe><key name="k" {key}/></keyframe></mujoco>"""
    model = scaled(parsed(xml), 2.0)
    assert (model.key("k").qpos.tolist(), model.key("k").qvel.tolist()) == (qpos, qvel)
