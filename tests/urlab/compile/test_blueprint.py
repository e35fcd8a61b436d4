from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.compile.blueprint import load_blueprint, model_name_of, name_the_unnamed
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import file_record

Write = Callable[..., Path]
Compose = Callable[..., Any]

URDF = """
<robot name="lift">{extension}
  <link name="base"><visual><geometry><mesh filename="shapes/part.stl"/></geometry></visual></link>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius=".1"/></geometry></collision>
  </link>
  <link name="tip">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="3" velocity="3"/>
  </joint>
  <joint name="weld" type="fixed"><parent link="arm"/><child link="tip"/></joint>
</robot>
"""
SIDECAR = """
[[actuators]]
name = "torque"
joint = "hinge"
gear = 5.0
ctrlrange = [-2.0, 3.0]
forcerange = [-7.0, 8.0]

[[actuators]]
name = "servo"
joint = "hinge"
kind = "position"
kp = 40.0
kv = 4.0

[[actuators]]
name = "speed"
joint = "hinge"
kind = "velocity"
kv = 6.0

[[actuators]]
name = "brake"
joint = "hinge"
kind = "damper"
kv = 2.0
ctrlrange = [0.0, 1.0]
"""


def world(content: str, name: str = "") -> str:
    return f"<mujoco {name}><worldbody>{content}</worldbody></mujoco>"


@pytest.fixture
def lift(write: Write, tetrahedron: Any, tmp_path: Path) -> Path:
    tetrahedron(tmp_path / "shapes" / "part.stl", 0.1)
    return write("lift.urdf", URDF.format(extension=""))


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ('model="arm"', "arm"),
        ("", "file"),
        ('model="My Arm (v2)"', "My_Arm_v2"),
        ('model="--"', "--"),
        ('model="_"', "actor"),
    ],
)
def test_a_model_is_called_what_it_says_or_as_its_file(attribute: str, name: str, write: Write) -> None:
    assert model_name_of(write("file", world("", attribute))) == name


@pytest.mark.parametrize(
    ("content", "is_robot"),
    [
        ('<body><joint/><geom size=".1"/></body>', True),
        ('<body><joint type="slide"/><geom size=".1"/></body>', True),
        ('<body><joint type="ball"/><geom size=".1"/></body>', True),
        ('<body><freejoint/><geom size=".1"/></body>', False),
        ('<body mocap="true"><geom size=".1"/></body>', False),
        ('<body><geom size=".1"/></body>', False),
        ('<geom size=".1"/>', False),
    ],
)
def test_what_moves_in_itself_is_a_robot(content: str, is_robot: bool, write: Write) -> None:
    assert load_blueprint(file_record(str(write("it", world(content))))).is_articulation is is_robot


def test_what_has_an_actuator_is_a_robot(write: Write) -> None:
    thruster = world('<body name="b"><freejoint/><geom size=".1"/></body>').replace(
        "</mujoco>", '<actuator><adhesion body="b" ctrlrange="0 1"/></actuator></mujoco>'
    )
    assert load_blueprint(file_record(str(write("it", thruster)))).is_articulation


def test_a_sidecar_makes_a_free_body_a_robot(write: Write) -> None:
    write("it.urlab.toml", '[[actuators]]\nname = "push"\njoint = "root"\n')
    path = write("it", world('<body><freejoint name="root"/><geom size=".1"/></body>'))
    assert load_blueprint(file_record(str(path))).is_articulation


def test_a_urdf_keeps_its_visuals_and_fixed_links(lift: Path, compose: Compose) -> None:
    model = compose({"lift": lift}).model
    assert [model.body(i).name for i in range(1, model.nbody)] == ["lift_base", "lift_arm", "lift_tip"]
    assert model.ngeom == 2
    assert model.nmesh == 1


def test_a_urdf_loses_them_when_its_author_says_so(lift: Path, write: Write, compose: Compose) -> None:
    flags = '<mujoco><compiler discardvisual="true" fusestatic="true"/></mujoco>'
    model = compose({"lift": write("lift.urdf", URDF.format(extension=flags))}).model
    assert [model.body(i).name for i in range(1, model.nbody)] == ["lift_arm"]
    assert model.ngeom == 1


def test_a_sidecar_gives_a_urdf_its_actuators(lift: Path, write: Write, compose: Compose) -> None:
    write("lift.urlab.toml", SIDECAR)
    scene = compose({"lift": lift})
    model, robot = scene.model, scene.articulation("lift")
    assert {one.short: one.kind for one in robot.actuators} == {
        "torque": "motor", "servo": "position", "speed": "velocity", "brake": "damper",
    }  # fmt: skip
    assert {one.joint.short for one in robot.actuators} == {"hinge"}
    torque, servo = model.actuator("lift_torque"), model.actuator("lift_servo")
    assert (torque.gear[0], torque.ctrlrange.tolist(), torque.forcerange.tolist()) == (5, [-2, 3], [-7, 8])
    assert (torque.ctrllimited[0], torque.forcelimited[0], servo.ctrllimited[0]) == (1, 1, 0)
    assert (servo.gainprm[0], servo.biasprm[:3].tolist()) == (40, [0, -40, -4])
    assert model.actuator("lift_speed").gainprm[0] == 6
    assert model.actuator("lift_brake").gainprm[2] == -2


def test_a_sidecars_ranges_hold_whatever_the_model_says_of_limits(write: Write, compose: Compose) -> None:
    write(
        "it.urlab.toml", '[[actuators]]\nname = "m"\njoint = "j"\nctrlrange = [-1.0, 1.0]\nforcerange = [-2.0, 2.0]\n'
    )
    body = world('<body><joint name="j"/><geom size=".1"/></body>')
    path = write("it", body.replace("<worldbody>", '<compiler autolimits="false"/><worldbody>'))
    motor = compose({"it": path}).model.actuator("it_m")
    assert (motor.ctrllimited[0], motor.forcelimited[0]) == (1, 1)


def test_a_sidecar_actuator_on_a_joint_that_is_not_there_is_refused(lift: Path, write: Write) -> None:
    write("lift.urlab.toml", '[[actuators]]\nname = "m"\njoint = "elbow"\n')
    with pytest.raises(ImportFailed, match=r"lift\.urdf: actuator 'm' drives joint 'elbow', which does not exist"):
        load_blueprint(file_record(str(lift)))


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("<mujoco><worldbody>", "XML"),
        ("", "XML"),
        ("<mujoco><nonsense/></mujoco>", "unrecognized element"),
        ("<zoo/>", "zoo"),
        ("<robot><link/></robot>", "name"),
    ],
)
def test_a_file_that_is_no_model_fails_with_mujocos_words(xml: str, words: str, write: Write) -> None:
    path = write("bad", xml)
    with pytest.raises(ImportFailed, match=rf"bad\.xml: (?s:.*){words}"):
        load_blueprint(file_record(str(path)))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match=r"nowhere\.xml"):
        load_blueprint(file_record(str(tmp_path / "nowhere.xml")))


@pytest.mark.parametrize(
    ("sidecar", "words"),
    [('[cameras.nose]\nmode = "depth"\n', "camera 'nose'"), ('[semantic.bodies]\ntail = "x"\n', "body 'tail'")],
)
def test_a_sidecar_that_names_what_the_model_lacks_is_refused(write: Any, sidecar: str, words: str) -> None:
    write("thing.urlab.toml", sidecar)
    path = write("thing", "<mujoco><worldbody><body name='b'><geom size='.1'/></body></worldbody></mujoco>")
    with pytest.raises(ImportFailed, match=words):
        load_blueprint(file_record(str(path)))


RICH = """
<mujoco>
  <worldbody>
    <body><freejoint/><geom size=".1"/><site/><camera/><light/></body>
    <body name="body_1"><freejoint/><geom size=".1" name="g"/></body>
    <body><joint name="j"/><joint axis="0 1 0"/><geom size=".1"/></body>
  </worldbody>
  <contact><pair geom1="g" geom2="geom_0"/><exclude body1="body_1" body2="world"/></contact>
  <tendon><fixed><joint joint="j" coef="1"/></fixed></tendon>
  <equality><joint joint1="j"/></equality>
  <actuator><motor joint="j"/></actuator>
  <sensor><clock/></sensor>
  <keyframe><key/></keyframe>
</mujoco>
"""
NAMES = {
    "bodies": ["world", "body_1_2", "body_1", "body_3"],
    "joints": ["free", "free_2", "j", "joint_3"],
    "geoms": ["geom_0", "g", "geom_2"],
    "sites": ["site_0"],
    "cameras": ["camera_0"],
    "lights": ["light_0"],
    "pairs": ["pair_0"],
    "excludes": ["exclude_0"],
    "tendons": ["tendon_0"],
    "equalities": ["equality_0"],
    "actuators": ["actuator_0"],
    "sensors": ["sensor_0"],
    "keys": ["key_0"],
}


@pytest.fixture
def spec() -> Any:
    return mujoco.MjSpec.from_string(RICH)


@pytest.mark.parametrize("kind", NAMES)
def test_every_unnamed_element_gets_a_name_that_nobody_has(kind: str, spec: Any) -> None:
    name_the_unnamed(spec)
    assert [element.name for element in getattr(spec, kind)] == NAMES[kind]


def test_naming_twice_changes_nothing(spec: Any) -> None:
    name_the_unnamed(spec)
    once = spec.to_xml()
    name_the_unnamed(spec)
    assert spec.to_xml() == once
