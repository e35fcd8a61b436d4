import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile.export import export_mjcf
from urlab.errors import CompileError
from urlab.geometry import Pose
from urlab.robots import model_path

OPTIONS = """
<mujoco model="options">
  <compiler angle="degree" eulerseq="zyx" autolimits="false" boundmass=".01" boundinertia=".001"
            balanceinertia="true"/>
  <option timestep=".003" gravity="0 1 -3" wind="1 2 3" magnetic="1 2 4" density="1.2" viscosity=".001"
          integrator="RK4" cone="elliptic" jacobian="sparse" solver="CG" iterations="11" tolerance="1e-7"
          ls_iterations="7" ls_tolerance=".02" noslip_iterations="3" noslip_tolerance="1e-5" ccd_iterations="33"
          ccd_tolerance="1e-5" impratio="3" o_margin=".01" o_solref=".03 1.1" o_solimp=".8 .9 .01 .4 1.8"
          o_friction="1 .9 .01 .001 .002" actuatorgroupdisable="3 5" sdf_iterations="9" sdf_initpoints="31">
    <flag warmstart="disable" refsafe="disable" energy="enable" fwdinv="enable" multiccd="disable"/>
  </option>
  <worldbody>
    <light pos="0 0 3" dir="0 .1 -1"/>
    <body name="a" euler="10 20 30" pos="0 0 1">
      <inertial pos="0 0 0" mass=".001" diaginertia="1 .1 .1"/>
      <joint name="j" axis="0 1 0" range="-10 20" limited="true" ref="5" springref="3" stiffness="2"/>
      <geom size=".1"/>
      <body euler="40 50 60" pos=".1 0 .3">
        <joint type="ball" range="0 40" limited="true"/><geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".02"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

RADIANS = """
<mujoco>
  <compiler angle="radian" inertiafromgeom="true" inertiagrouprange="1 2" alignfree="true"/>
  <worldbody>
    <body name="a" euler=".1 .2 .3" pos="0 0 1">
      <inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/><freejoint/>
      <geom size=".1" group="1"/>
      <geom size=".2 .1 .1" type="box" group="3"/>
      <geom size=".2 .1 .1" type="box" group="2" pos=".1 .2 .3"/>
      <body pos=".1 0 .3"><joint type="slide" range="-1 1" axis="1 1 0"/>
        <geom type="box" size=".1 .2 .3" group="1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

MESHES = """
<mujoco model="meshes">
  <compiler meshdir="assets" fitaabb="true"/>
  <asset><mesh name="tet" file="tet.stl" scale="1 2 3"/><mesh file="tet.stl" name="shell" inertia="shell"/></asset>
  <worldbody>
    <geom type="box" mesh="tet"/>
    <body name="a" pos="0 0 1">
      <joint/><geom type="mesh" mesh="tet"/><geom type="mesh" mesh="shell"/><geom type="ellipsoid" mesh="shell"/>
    </body>
  </worldbody>
</mujoco>
"""

SIZES = """
<mujoco model="sizes">
  <size memory="3M" nuserdata="4" nuser_body="1" nuser_jnt="2" nuser_geom="3" nuser_site="4" nuser_cam="5"
        nuser_tendon="6" nuser_actuator="7" nuser_sensor="8" nkey="3"/>
  <visual>
    <global fovy="33" azimuth="12" elevation="-11" offwidth="800" offheight="600" ipd=".05" linewidth="2" glow=".4"
            realtime=".9" orthographic="true" bvactive="false"/>
    <quality shadowsize="1024" offsamples="2" numslices="11" numstacks="12" numquads="3"/>
    <headlight ambient=".2 .3 .4" diffuse=".5 .5 .5" active="0"/>
    <map znear=".02" zfar="30" stiffness="99" force=".01" shadowclip="2" haze=".5"/>
    <scale forcewidth=".2" com=".5"/>
    <rgba haze=".1 .2 .3 1" fog="0 1 0 1"/>
  </visual>
  <statistic center="1 2 3" extent="4" meansize=".3" meanmass="2"/>
  <worldbody>
    <camera name="c" pos="0 -1 1" user="1 2"/>
    <body name="a" user="7">
      <joint name="j" user="1 2"/><geom name="g" size=".1" user="3 4 5"/><site name="s" user="6"/>
    </body>
  </worldbody>
  <tendon><fixed name="t" user="9"><joint joint="j" coef="1"/></fixed></tendon>
  <actuator><motor joint="j" user="1"/></actuator>
  <sensor><jointpos joint="j" user="1 2 3"/></sensor>
  <keyframe><key name="first" qpos="1"/></keyframe>
</mujoco>
"""

OLD_SIZES = """
<mujoco model="old">
  <size njmax="500" nconmax="100" nstack="300000"/>
  <worldbody><body name="a"><joint/><geom size=".1" user="1 2"/></body></worldbody>
</mujoco>
"""

RICH = """
<mujoco model="rich">
  <default>
    <joint damping="1" armature=".1"/><geom rgba="1 0 0 1" friction=".5 .1 .1"/><motor gear="3"/><site size=".03"/>
    <camera fovy="77"/><light castshadow="false"/><material rgba="0 1 0 1"/><equality solref=".03 1"/>
    <pair condim="4"/>
    <default class="arm">
      <joint damping="2" range="-30 30"/><geom type="capsule" size=".05 .1"/>
      <default class="hand"><geom type="box" size=".1 .1 .1"/></default>
    </default>
  </default>
  <asset>
    <texture name="t" type="2d" builtin="checker" width="16" height="16" rgb1="1 0 0" rgb2="0 1 0" mark="random"
             random=".2" markrgb="1 1 1"/>
    <texture type="skybox" builtin="gradient" width="8" height="48" rgb1=".1 .2 .3" rgb2="1 1 1"/>
    <material name="m" texture="t" texrepeat="2 3"/>
    <hfield name="h" nrow="3" ncol="4" size="1 1 .2 .1" elevation="0 1 2 3 1 2 3 4 2 1 3 1"/>
  </asset>
  <worldbody>
    <light name="l" pos="0 0 2" mode="targetbody" target="a"/>
    <geom type="hfield" hfield="h" name="ground"/>
    <body name="a" childclass="arm" pos="0 0 1">
      <joint name="j"/><geom name="g" material="m"/><site name="s"/><site name="s2" pos="0 0 .5"/>
      <camera name="c" resolution="64 48"/>
      <body name="b" childclass="hand" pos=".3 0 0">
        <joint name="k" axis="0 1 0"/><geom name="gh"/><geom class="arm" name="g2" pos="0 .3 0"/>
      </body>
    </body>
    <body name="loose" pos="1 0 1"><freejoint/><geom name="fg" size=".1"/></body>
    <body name="mo" mocap="true" pos="0 1 1"><geom size=".05" contype="0" conaffinity="0"/></body>
  </worldbody>
  <contact><pair geom1="g" geom2="fg" friction="1 1 .1 .1 .1"/><exclude body1="a" body2="b"/></contact>
  <equality>
    <weld body1="mo" body2="loose" active="false"/><joint joint1="j" joint2="k" polycoef="0 2 0 0 0"/>
    <connect body1="b" body2="loose" anchor="0 0 .1" active="false"/>
  </equality>
  <tendon>
    <spatial name="sp" range="0 5" stiffness="3" width=".02">
      <site site="s"/><geom geom="fg"/><site site="s2"/>
    </spatial>
    <fixed name="fx"><joint joint="j" coef="1"/><joint joint="k" coef="-2"/></fixed>
  </tendon>
  <actuator>
    <motor joint="j"/><position joint="k" kp="10" dampratio="1" inheritrange="1"/>
    <general tendon="sp" dyntype="integrator" gainprm="3" biastype="affine" biasprm="1 2 3"/>
    <adhesion body="b" ctrlrange="0 1"/><intvelocity joint="j" kp="3" actrange="-1 1"/>
    <muscle tendon="sp" lengthrange=".1 3"/><damper joint="j" kv="2" ctrlrange="0 1"/>
    <cylinder joint="k" timeconst=".3" area=".1"/><velocity name="vel" joint="k" kv="3"/>
  </actuator>
  <sensor>
    <jointpos joint="j"/><framepos objtype="body" objname="loose" reftype="site" refname="s"/><gyro site="s"/>
    <accelerometer site="s" noise=".1" cutoff="3"/><touch site="s"/><force site="s"/><tendonpos tendon="sp"/>
    <actuatorfrc actuator="vel"/><subtreecom body="a"/><distance geom1="g" geom2="fg" cutoff="3"/>
    <rangefinder site="s"/><clock/><user dim="3" needstage="vel" datatype="real"/>
    <contact geom1="g" num="3" data="found force"/><camprojection site="s" camera="c"/><e_kinetic/>
  </sensor>
  <keyframe>
    <key name="home" time="1" qpos=".1 .2 1 2 3 1 0 0 0" qvel="1 2 3 4 5 6 7 8" act=".1 .2 .3 .4"
         ctrl="1 2 3 .1 .5 .6 .7 .8 .9" mpos="1 1 1" mquat="0 1 0 0"/>
    <key name="empty"/>
  </keyframe>
</mujoco>
"""

CUSTOM = """
<mujoco model="custom">
  <compiler><lengthrange mode="all" inttotal="4" interval="1" timeconst=".5" maxforce="3" accel="11"/></compiler>
  <option><flag gravity="disable" sleep="enable"/></option>
  <custom>
    <numeric name="n" size="4" data="1 2"/><text name="t" data="hi"/>
    <tuple name="u"><element objtype="body" objname="a" prm="2"/></tuple>
  </custom>
  <worldbody><body name="a"><joint name="j" range="-30 40"/><geom size=".1"/></body></worldbody>
  <actuator><muscle joint="j"/></actuator>
</mujoco>
"""

FUSED = """
<mujoco model="fused">
  <compiler inertiafromgeom="false" discardvisual="true" fusestatic="true"/>
  <asset><material name="unused" rgba="1 0 0 1"/></asset>
  <worldbody>
    <geom name="visual" size=".1" contype="0" conaffinity="0"/>
    <body name="a"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><joint/><geom size=".1"/>
      <body name="fixed" pos="0 0 1"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
        <geom size=".2"/><site name="x"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

SOFT = """
<mujoco model="soft">
  <worldbody>
    <body name="h"><joint/><geom size=".1"/></body>
    <body name="p" pos="0 0 1">
      <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" dim="2">
        <edge equality="true"/>
      </flexcomp>
    </body>
  </worldbody>
</mujoco>
"""

MODELS = {
    "options": OPTIONS, "radians": RADIANS, "meshes": MESHES, "sizes": SIZES, "old": OLD_SIZES, "rich": RICH,
    "custom": CUSTOM, "fused": FUSED, "soft": SOFT,
}  # fmt: skip

TOTAL_MASS = """
<mujoco model="total">
  <compiler settotalmass="7"/>
  <worldbody>
    <body name="a"><joint/><geom size=".1"/>
      <body pos="0 0 1"><joint axis="0 1 0"/><geom size=".1"/></body>
    </body>
  </worldbody>
</mujoco>
"""

Write = Callable[..., Path]
Compose = Callable[..., Any]
Differ = Callable[..., list[str]]


def arm(name: str, size: str = "", user: str = "") -> str:
    """A robot of one joint."""
    return (
        f'<mujoco model="{name}"><size {size}/><worldbody><body name="link" {user}><joint name="j"/>'
        f'<geom size=".1"/></body></worldbody></mujoco>'
    )


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, write: Write, tetrahedron: Any, tmp_path: Path) -> Path:
    tetrahedron(tmp_path / "assets" / "tet.stl", 0.1)
    return write(request.param, MODELS[request.param])


def test_one_articulation_compiles_to_what_its_file_says(model: Path, compose: Compose, differ: Differ) -> None:
    stock = mujoco.MjModel.from_xml_path(str(model))
    assert differ(stock, compose({model.stem: model}).model) == []


@pytest.mark.parametrize("name", ["aloha", "franka_robotiq", "panda", "quadruped"])
def test_shipped_robots_compile_to_what_their_files_say(name: str, compose: Compose, differ: Differ) -> None:
    assert differ(mujoco.MjModel.from_xml_path(str(model_path(name))), compose({name: name}).model) == []


def test_no_scene_of_two_copies_makes_mujoco_complain(
    model: Path, compose: Compose, capfd: pytest.CaptureFixture[str]
) -> None:
    scene = compose({"one": model, "two": (model, Pose((0.0, 30.0, 0.0)))})
    assert scene.notes == ()
    assert capfd.readouterr().err == ""


def test_two_copies_have_twice_of_everything(model: Path, compose: Compose) -> None:
    one, two = compose({"one": model}).model, compose({"one": model, "two": model}).model
    counts = ("nq", "nv", "nu", "na", "njnt", "ngeom", "nsite", "ncam", "nlight", "ntendon", "neq", "nsensordata")
    assert {name: getattr(two, name) for name in counts} == {name: 2 * getattr(one, name) for name in counts}
    assert two.nbody - 1 == 2 * (one.nbody - 1)


def test_a_total_mass_is_kept_with_mujocos_warning(write: Write, compose: Compose, differ: Differ) -> None:
    path = write("total", TOTAL_MASS)
    scene = compose({"total": path})
    assert differ(mujoco.MjModel.from_xml_path(str(path)), scene.model) == []
    assert scene.model.body_mass.sum() == pytest.approx(7)
    assert any("settotalmass" in note for note in scene.notes)


def test_a_total_mass_never_rescales_other_actors(write: Write, compose: Compose) -> None:
    scene = compose({"total": write("total", TOTAL_MASS), "box": ("box", Pose((5.0, 0.0, 0.0)))})
    alone = compose({"box": "box"})
    assert scene.model.body("box").mass == alone.model.body("box").mass
    assert scene.notes == (
        "'total' asks for a total mass of 7 kg (settotalmass), which only a scene of one actor can follow",
    )


def test_a_model_that_wants_its_meshes_fitted_otherwise_is_named(write: Write, compose: Compose) -> None:
    fitted = write("fitted", arm("fitted").replace("<size", '<compiler fitaabb="true"/><size'))
    plain = write("plain", arm("plain"))
    far = Pose((0.0, 30.0, 0.0))
    assert compose({"fitted": fitted}).notes == ()
    assert compose({"fitted": fitted, "plain": (plain, far)}).notes == (
        "'plain' asks for geoms fitted to inertia boxes, but the scene uses bounding boxes (fitaabb)",
    )
    assert compose({"plain": plain, "fitted": (fitted, far)}).notes == (
        "'fitted' asks for geoms fitted to bounding boxes (fitaabb), but the scene uses inertia boxes",
    )


def test_memory_of_several_robots_adds_up(write: Write, compose: Compose) -> None:
    path = write("arm", arm("arm", 'memory="3M"'))
    assert compose({"one": path, "two": path}).model.narena == 2 * compose({"one": path}).model.narena


def test_user_data_is_as_wide_as_the_widest_robot_needs(write: Write, compose: Compose) -> None:
    narrow = write("narrow", arm("narrow", 'nuser_body="1"', 'user="1"'))
    wide = write("wide", arm("wide", 'nuser_body="3"', 'user="1 2 3"'))
    unstated = write("unstated", arm("unstated", "", 'user="1 2 3 4"'))
    model = compose({"narrow": narrow, "wide": wide, "unstated": unstated}).model
    assert model.body_user[1:].tolist() == [[1, 0, 0, 0], [1, 2, 3, 0], [1, 2, 3, 4]]


def test_only_the_model_that_asks_for_it_loses_its_visuals_and_fixed_bodies(write: Write, compose: Compose) -> None:
    scene = compose({"fused": write("fused", FUSED), "table": "table"})
    table = compose({"table": "table"})
    assert scene.model.ngeom == 2 + table.model.ngeom
    assert [body.short for body in scene.articulation("fused").bodies] == ["a"]


def test_every_number_of_a_model_is_compared(differ: Differ) -> None:
    model = mujoco.MjModel.from_xml_string(RICH)
    other = mujoco.MjModel.from_xml_string(RICH)
    other.opt.gravity[2] += 1e-12
    other.vis.map.znear *= 2
    other.key_ctrl[0, 3] = 9
    found = [re.match(r"[\w.]+", difference)[0] for difference in differ(model, other)]  # type: ignore[index]
    assert found == ["key_ctrl", "opt.gravity", "vis.map.znear"]


ARM = """
<mujoco>
  <compiler {settings}/>
  <worldbody>
    <body name="a" pos="0 0 1" euler="10 20 30">
      <inertial pos=".01 0 0" mass=".01" fullinertia=".001 .002 .0025 .0001 0 .0002"/>
      <joint range="-1 1" axis="1 1 0"/>
      <geom size=".1 .2 .3123456789" type="box" euler="1 2 3"/>
    </body>
    <body name="b" pos="1 0 0"><freejoint/>
      <geom size=".1 .2 .3" type="box" pos=".1 .1 0" euler="3 4 5" group="2"/><geom size=".1"/>
    </body>
  </worldbody>
</mujoco>
"""
SETTINGS = [
    'boundmass=".1"', 'boundinertia=".01"', 'balanceinertia="true"', 'inertiafromgeom="true"',
    'inertiagrouprange="2 3"', 'alignfree="true"', 'alignfree="true" inertiafromgeom="true" boundmass="1"',
]  # fmt: skip
OF_A_BODY = ("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat")


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("first", [True, False])
def test_each_robot_weighs_what_it_weighs_alone(settings: str, first: bool, write: Write, compose: Compose) -> None:
    plain, odd = write("plain", ARM.format(settings="")), write("odd", ARM.format(settings=settings))
    scene = compose({"odd": odd, "plain": plain} if first else {"plain": plain, "odd": odd})
    for name, path in (("plain", plain), ("odd", odd)):
        alone = mujoco.MjModel.from_xml_path(str(path))
        ids = [scene.model.body(f"{name}_{body}").id for body in "ab"]
        for field in OF_A_BODY:
            found, wanted = getattr(scene.model, field)[ids], getattr(alone, field)[1:]
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15, err_msg=field)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_scene_of_both_can_be_exported(settings: str, write: Write, compose: Compose, differ: Differ) -> None:
    plain, odd = write("plain", ARM.format(settings="")), write("odd", ARM.format(settings=settings))
    scene = compose({"plain": plain, "odd": odd})
    xml, assets = export_mjcf(scene)
    assert differ(scene.model, mujoco.MjModel.from_xml_string(xml, assets)) == []


def test_a_model_without_an_inertia_is_still_named(write: Write, compose: Compose) -> None:
    hollow = "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"
    actors = {"plain": write("plain", ARM.format(settings='boundmass="1"')), "hollow": write("hollow", hollow)}
    with pytest.raises(CompileError, match=r"actor 'hollow': .*mass and inertia"):
        compose(actors)
