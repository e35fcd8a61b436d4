"""MuJoCo can scale the contents of a frame by itself; scaling a spec in place gives the same model."""

from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile.blueprint import name_the_unnamed
from urlab.compile.scaling import scale_spec
from urlab.geometry import Vec3

Differ = Callable[..., list[str]]

ROBOT = """
<mujoco>
  <compiler angle="radian"/>
  <statistic extent="1.5" center="1 2 3" meansize=".3"/>
  <asset>
    <mesh name="tet" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale=".1 .2 .3" refpos=".1 .2 .3" refquat="1 .2 .3 .4"/>
    <hfield name="h" nrow="2" ncol="3" size="1 2 .3 .1" elevation="0 1 2 1 0 1"/>
  </asset>
  <worldbody>
    <light pos="1 2 3" range="5" bulbradius=".1" attenuation="1 .2 .3" cutoff="30"/>
    <camera name="cam" pos="1 2 3" ipd=".07" sensorsize=".01 .02" focal=".03 .04" principal=".001 .002"
            resolution="10 20"/>
    <geom name="floor" type="plane" size="0 0 .1"/>
    <geom name="sheet" type="plane" size="1 2 .1" pos="0 0 -1"/>
    <geom name="ground" type="hfield" hfield="h" pos="5 5 0"/>
    <site name="anchor" pos="0 0 2" size=".02 .03 .04" type="box"/>
    <site name="rod" type="capsule" fromto="0 0 1 0 1 1" size=".03"/>
    <frame pos=".1 .2 .3" euler=".1 .2 .3">
      <body name="a" pos=".5 0 0">
        <inertial pos=".01 .02 .03" mass="2" diaginertia=".1 .2 .25"/>
        <joint name="slide" type="slide" axis="0 0 1" range="-.3 .4" ref=".05" springref=".1" springyield=".2"
               margin=".01" stiffness="10 20 30" damping="3 2 1" frictionloss=".1" armature=".2"
               solimplimit=".9 .95 .01 .5 2" solimpfriction=".9 .95 .01 .5 2" actuatorfrcrange="-5 5"/>
        <joint name="hinge" axis="1 0 0" pos=".1 .1 0" range="-1 1" ref=".2" springref=".3" margin=".01"
               stiffness="5" damping=".3" armature=".02" solimplimit=".9 .95 .01 .5 2"/>
        <geom name="sphere" size=".1" pos=".1 0 0" margin=".003" gap=".004" friction="1 .01 .002" adhesion="3"
              surfacevel="1 2 3 4 5 6" solimp=".9 .95 .01 .5 2"/>
        <geom name="capsule" type="capsule" fromto="0 0 0 .1 .2 .3" size=".04"/>
        <body name="b" pos="0 .3 0">
          <joint name="ball" type="ball" range="0 1" margin=".01" stiffness="2"/>
          <geom name="box" type="box" size=".1 .2 .3" mass="1.5"/>
          <geom name="mesh" type="mesh" mesh="tet" pos=".1 .2 .3" euler=".3 .2 .1" density="500"/>
          <geom name="fitted" type="box" mesh="tet" fitscale="1.1"/>
          <site name="sb" pos=".1 0 0" size=".02"/>
          <camera name="eye" pos="0 0 .2" fovy="30"/>
          <body name="c" pos="0 0 .4">
            <joint name="slide2" type="slide" axis="0 1 0" springdamper=".1 1"/>
            <joint name="hinge2" axis="0 1 0" springdamper=".1 1"/>
            <geom name="cylinder" type="cylinder" size=".05 .1"/>
            <site name="sc" pos="0 0 .1"/>
          </body>
        </body>
      </body>
    </frame>
    <body name="free" pos="2 0 1"><freejoint name="free"/><geom name="egg" type="ellipsoid" size=".1 .2 .3"/></body>
    <body name="full" pos="3 0 1"><freejoint name="full"/>
      <inertial pos=".1 .2 .3" mass="1" fullinertia="1 2 2.5 .1 .2 .3"/></body>
    <body name="mocap" mocap="true" pos="3 0 1"/>
  </worldbody>
  <contact>
    <pair name="p" geom1="sphere" geom2="egg" margin=".01" gap=".02" friction="1 1 .01 .02 .03" adhesion="2"/>
    <pair name="bare" geom1="box" geom2="egg"/>
  </contact>
  <tendon>
    <spatial name="rope" range=".1 3" springlength=".5" width=".01" margin=".02" stiffness="3 2 1" damping="2 1 3"
             frictionloss=".1" springyield=".3" solimplimit=".9 .95 .01 .5 2" actuatorfrcrange="-5 5">
      <site site="anchor"/><geom geom="sphere"/><site site="sb"/>
      <pulley divisor="2"/><site site="anchor"/><site site="sc"/>
    </spatial>
    <spatial name="slack" springlength=".1 .2" armature=".1"><site site="anchor"/><site site="sc"/></spatial>
    <fixed name="lengths" range="-1 1" springlength=".1" margin=".1" springyield=".3">
      <joint joint="slide" coef="2"/><joint joint="slide2" coef="3"/>
    </fixed>
    <fixed name="angles" range="-1 1" springlength=".1" margin=".1"><joint joint="hinge" coef="2"/></fixed>
  </tendon>
  <equality>
    <connect body1="b" body2="free" anchor=".1 .2 .3" solimp=".9 .95 .01 .5 2"/>
    <connect site1="sb" site2="anchor"/>
    <weld body1="a" body2="free" relpose=".1 .2 .3 1 0 0 0" anchor=".3 .2 .1" torquescale=".5"/>
    <weld body1="a" body2="free"/>
    <weld site1="sb" site2="sc" torquescale=".5"/>
    <joint joint1="slide" joint2="hinge" polycoef=".1 .2 .3 .4 .5" solimp=".9 .95 .01 .5 2"/>
    <joint joint1="hinge" joint2="slide" polycoef=".1 .2 .3 .4 .5"/>
    <joint joint1="slide" joint2="slide2" polycoef=".1 .2 .3 .4 .5"/>
    <joint joint1="slide" polycoef=".1 .2 .3 .4 .5"/>
    <joint joint1="hinge" joint2="hinge2" polycoef=".1 .2 .3 .4 .5"/>
    <tendon tendon1="rope" tendon2="angles" polycoef=".1 .2 .3 .4 .5"/>
    <tendon tendon1="angles" tendon2="rope" polycoef=".1 .2 .3 .4 .5"/>
  </equality>
  <actuator>
    <position joint="slide" kp="10" kv="1" ctrlrange="-.2 .3" forcerange="-5 5"/>
    <position joint="slide" kp="10" dampratio="1" inheritrange=".9"/>
    <position joint="slide" kp="10" timeconst=".1" ctrlrange="-.2 .3"/>
    <position joint="hinge" kp="10" ctrlrange="-.2 .3"/>
    <position tendon="rope" kp="10" ctrlrange=".2 .9" lengthrange=".1 2"/>
    <position tendon="lengths" kp="10" ctrlrange=".2 .9"/>
    <position tendon="angles" kp="10" ctrlrange=".2 .9"/>
    <velocity joint="slide" kv="10" ctrlrange="-.2 .3"/>
    <velocity joint="hinge" kv="10" ctrlrange="-.2 .3"/>
    <intvelocity joint="slide" kp="10" ctrlrange="-.2 .3" actrange="-.1 .2"/>
    <motor joint="slide" ctrlrange="-1 1" gear="3" damping="1 2 3" armature=".1" lengthrange=".1 .2"/>
    <general joint="slide" gainprm="3" biasprm="1 2 3" biastype="affine" ctrlrange="-.1 .2"/>
    <general site="sb" refsite="anchor" gear="1 2 3 4 5 6" gainprm="3" ctrlrange="-.1 .2"/>
    <position site="sb" refsite="anchor" gear="1 0 0 0 0 0" kp="3" ctrlrange="-.1 .2"/>
    <position site="sb" refsite="anchor" gear="0 0 0 1 0 0" kp="3" ctrlrange="-.1 .2"/>
    <general joint="free" gear="1 2 3 4 5 6"/>
    <damper joint="slide" kv="3" ctrlrange="0 2"/>
    <cylinder joint="slide" area=".1" timeconst=".1" bias="1 2 3" ctrlrange="0 1"/>
    <muscle tendon="rope" lengthrange=".1 2"/>
    <adhesion body="b" gain="3" ctrlrange="0 1"/>
    <pid joint="slide" kp="3" ki="1" kv="1" imax="2" slewmax="1" posrange="-.1 .2" velrange="-1 1" ffrange="-3 3"/>
    <general cranksite="sb" slidersite="anchor" cranklength="4" gainprm="3"/>
    <dcmotor joint="hinge" motorconst=".1" resistance="2"/>
  </actuator>
  <sensor>
    <framepos objtype="body" objname="b" cutoff="1" noise=".01"/> <jointpos joint="slide" cutoff="1" noise=".01"/>
    <jointpos joint="hinge" cutoff="1"/> <distance geom1="box" geom2="egg" cutoff="1"/>
    <rangefinder site="sb" cutoff="2"/> <accelerometer site="sb" cutoff="2"/> <velocimeter site="sb" cutoff="2"/>
    <gyro site="sb" cutoff="2"/> <force site="sb" cutoff="2"/> <torque site="sb" cutoff="2"/>
    <touch site="sb" cutoff="2"/> <subtreecom body="a" cutoff="2"/> <tendonpos tendon="rope" cutoff="2"/>
    <tendonvel tendon="angles" cutoff="2"/> <tendonlimitpos tendon="lengths" cutoff="2"/>
    <jointlimitpos joint="slide" cutoff="2"/> <subtreeangmom body="a" cutoff="2"/> <e_potential cutoff="2"/>
    <contact geom1="box" geom2="egg" cutoff="2" data="dist pos"/> <user dim="2" cutoff="2"/>
  </sensor>
  <keyframe>
    <key name="k" qpos=".1 .2 1 0 0 0 .3 .4 1 2 3 0 1 0 0 3 2 1 1 0 0 0" mpos="1 2 3" act="1 2 3 4 5 6"
         qvel=".1 .2 .3 .4 .5 .6 .7 1 2 3 4 5 6 1 2 3 4 5 6" plastic="1 2 3 4 5"
         ctrl="1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24"/>
    <key name="nothing stated"/>
  </keyframe>
</mujoco>
"""
SKIN = """
<mujoco>
  <deformable><skin name="s" inflate=".02" vertex="0 0 0  1 0 0  0 1 0  2 0 .5" face="0 1 2  1 3 2">
    <bone body="a" bindpos=".1 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 .5 1"/>
    <bone body="b" bindpos="1 0 0" bindquat="1 0 0 0" vertid="1 3" vertweight=".5 1"/>
  </skin></deformable>
  <worldbody><body name="a"><joint/><geom size=".1"/><body name="b" pos="1 0 0"/></body></worldbody>
</mujoco>
"""
UNUSED = ("tendon_width", "mesh_scale", "names_map")
"""MuJoCo scales the width of fixed tendons, which are not drawn, and has its own way to stretch copies of meshes."""


def parsed(xml: str) -> Any:
    spec = mujoco.MjSpec.from_string(xml)
    name_the_unnamed(spec)
    return spec


def scaled(spec: Any, scale: Vec3) -> Any:
    """The compiled model."""
    scale_spec(spec, scale, is_articulation=len(set(scale)) == 1)
    return spec.compile()


def in_scaled_frame(spec: Any, scale: Vec3) -> Any:
    """The model as MuJoCo itself scales it, with stated masses kept as they are; compiled."""
    volume = float(np.prod(scale))
    for body in spec.bodies:
        if body.explicitinertial:
            body.mass /= volume
            body.inertia /= volume
            body.fullinertia /= volume
    for geom in spec.geoms:
        geom.mass /= volume
    world = spec.worldbody
    inside = [*world.bodies, *world.geoms, *world.sites, *world.cameras, *world.lights, *world.frames]
    outermost = [element for element in inside if element.frame is None]
    frame = world.add_frame(scale=scale, scaling=mujoco.mjtScaling.mjSCALING_GEOMETRY)
    for element in outermost:
        element.set_frame(frame)
    return spec.compile()


def arrays(model: Any) -> Iterator[tuple[str, Any]]:
    for name in dir(model):
        if not name.startswith("_") and isinstance(getattr(model, name), np.ndarray):
            yield name, getattr(model, name)


def assert_alike(model: Any, other: Any) -> None:
    """Every array is the same but for rounding."""
    for name, values in arrays(model):
        if name not in UNUSED:
            rtol = 1e-5 if values.dtype == np.float32 else 1e-9
            np.testing.assert_allclose(values, getattr(other, name), rtol=rtol, atol=1e-12, err_msg=name)


def assert_scales_alike(xml: str, scale: Vec3) -> None:
    assert_alike(scaled(parsed(xml), scale), in_scaled_frame(parsed(xml), scale))


@pytest.mark.parametrize("factor", [0.3, 2.0])
def test_a_robot_with_one_of_everything_scales_as_mujoco_would_scale_it(factor: float) -> None:
    assert_scales_alike(ROBOT, (factor, factor, factor))


@pytest.mark.parametrize("xml", [ROBOT, SKIN])
def test_the_scaled_spec_is_written_to_xml_with_every_digit(xml: str, differ: Differ) -> None:
    spec = parsed(xml)
    model = scaled(spec, (0.3, 0.3, 0.3))
    spec.compiler.savecompiled = False
    assert differ(model, mujoco.MjModel.from_xml_string(spec.to_xml())) == []


FLEXES = {
    "solid": 'count="4 3 3" dim="3"><elasticity young="1e4" poisson=".2" damping=".1"/>',
    "interpolated": 'count="4 3 3" dim="3" dof="trilinear"><edge equality="strain"/>',
    "shell": 'count="4 3 1" dim="2"><elasticity young="1e4" thickness=".03" elastic2d="both"/>',
    "rope": 'count="4 1 1" dim="1"><edge stiffness="3" damping="2"/>',
    "cloth": 'count="4 3 1" dim="2"><edge equality="true"/>',
}


@pytest.mark.parametrize("kind", FLEXES)
def test_a_flex_scales_as_mujoco_would_scale_it(kind: str) -> None:
    flex = f'<flexcomp name="f" type="grid" spacing=".1 .1 .1" radius=".02" {FLEXES[kind]}'
    contact = '<contact margin=".01" gap=".02" selfcollide="none"/></flexcomp>'
    xml = f'<mujoco><worldbody><body name="b" pos="1 2 3" euler="10 20 30">{flex}{contact}</body></worldbody></mujoco>'
    assert_scales_alike(xml, (2.0, 2.0, 2.0))


def test_a_skin_scales_as_mujoco_would_scale_it() -> None:
    assert_scales_alike(SKIN, (2.0, 2.0, 2.0))


def test_a_frame_that_scales_its_contents_still_does() -> None:
    xml = """<mujoco><worldbody><frame scale="2" pos="1 2 3" euler="10 20 30">
      <body pos="1 2 3"><joint type="slide" range="-1 1" damping="1"/><geom size=".1"/></body>
    </frame></worldbody></mujoco>"""
    assert_scales_alike(xml, (3.0, 3.0, 3.0))


THING = """
<mujoco>
  <compiler eulerseq="zyx"/>
  <asset>
    <mesh name="tet" vertex="0 0 0 1 0 0 0 1 0 0 0 1" scale=".1 .2 .3" refpos=".1 .2 .3" refquat="1 .2 .3 .4"/>
    <hfield name="h" nrow="2" ncol="3" size="1 2 .3 .1" elevation="0 1 2 1 0 1"/>
  </asset>
  <worldbody>
    <light pos="1 2 3" range="5" bulbradius=".1" attenuation="1 .2 .3" cutoff="30"/>
    <camera pos="1 2 3" ipd=".07" sensorsize=".01 .02" focal=".03 .04" resolution="10 20" euler="10 20 30"/>
    <geom type="plane" size="1 2 .1" pos="0 0 -1"/>
    <geom type="hfield" hfield="h" pos="5 5 0"/> <geom type="hfield" hfield="h" pos="5 5 0" euler="90 0 0"/>
    <geom type="mesh" mesh="tet" pos="1 2 3"/> <geom type="mesh" mesh="tet" pos="1 2 3" euler="90 0 0"/>
    <geom type="mesh" mesh="tet" pos="1 2 3" euler="0 90 0"/> <geom type="mesh" mesh="tet" euler="0 180 90"/>
    <site pos="1 2 3"/> <site pos="1 2 3" type="box" size=".1 .2 .3" euler="0 0 90"/>
    <site pos="1 2 3" type="cylinder" size=".1 .2" euler="0 0 90"/>
    <site type="capsule" fromto="0 0 0 0 1 0" size=".1"/>
    <frame pos=".1 .2 .3" euler="0 90 90">
      <geom type="box" size=".1 .2 .3" pos="1 2 3" margin=".1" gap=".2" surfacevel="1 2 3 4 5 6"/>
      <body name="a" pos=".5 1 2" euler="90 0 0">
        <freejoint/>
        <geom type="box" size=".1 .2 .3" pos="3 2 1" mass="2"/> <geom type="ellipsoid" size=".1 .2 .3" euler="0 -90 0"/>
        <site name="sa" pos=".1 .2 .3"/>
      </body>
    </frame>
    <body name="b" pos="1 2 3" euler="30 20 10">
      <inertial pos=".1 .2 .3" mass="3" diaginertia="1 2 2.5" euler="15 25 35"/>
      <site name="sb" pos=".3 .2 .1"/>
      <body pos="2 1 3" euler="3 2 1"><inertial pos=".1 .2 .3" mass="3" fullinertia="1 2 2.5 .1 .2 .3"/></body>
    </body>
    <body mocap="true" pos="3 2 1"><geom type="box" size=".1 .2 .3"/></body>
  </worldbody>
  <equality>
    <connect body1="a" body2="b" anchor=".1 .2 .3"/> <weld site1="sa" site2="sb"/>
    <weld body1="b" body2="a" relpose=".1 .2 .3 1 0 0 0" anchor=".3 .2 .1" torquescale=".5"/>
  </equality>
  <sensor><framepos objtype="body" objname="a" cutoff="2"/></sensor>
  <keyframe><key qpos="1 2 3 0 1 0 0" qvel="1 2 3 4 5 6" mpos="1 2 3"/></keyframe>
</mujoco>
"""


@pytest.mark.parametrize("scale", [(2.0, 3.0, 0.5), (1.0, 1.0, 4.0)])
def test_a_thing_is_stretched_as_mujoco_would_stretch_it(scale: Vec3) -> None:
    assert_scales_alike(THING, scale)


def test_a_frame_with_a_stretch_of_its_own_that_lines_up_is_stretched_further() -> None:
    xml = """<mujoco><worldbody><frame scale="2 1 1" scaling="geometry" pos="1 2 3" euler="0 90 0">
      <body pos="1 2 3"><geom type="box" size=".1 .2 .3"/></body></frame></worldbody></mujoco>"""
    assert_scales_alike(xml, (3.0, 2.0, 1.0))
