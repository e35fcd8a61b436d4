"""URDF: read back by MuJoCo it is the same robot."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.convert.robots import JointStates
from urlab.ros2.convert.urdf import robot_description, urdf
from urlab.ros2.frames import SceneFrames
from urlab.ros2.geometry import rpy

ODD = """<mujoco model="odd">
  <compiler angle="radian"/>
  <worldbody>
    <body name="arm" pos=".1 .2 .3" euler=".3 .5 .7">
      <joint name="a" axis="1 0 1" pos=".05 0 .02" ref=".4" range="-1 2"/>
      <joint name="b" type="slide" axis="0 1 1" ref=".1"/>
      <joint name="c" axis="0 1 0" pos="0 .1 0"/>
      <geom name="ball" size=".03" pos=".1 0 0" rgba="1 0 0 .5"/>
      <body name="fore" pos="0 0 .3" euler="1 1.5707963267948966 0"><joint name="d"/>
        <geom type="ellipsoid" size=".1 .2 .3" group="3"/></body>
    </body>
    <body name="post" pos="-1 0 0" euler="0 0 1"><geom type="cylinder" size=".02 .3" contype="0"
      conaffinity="0"/></body>
    <body name="loose" pos="0 0 1"><freejoint name="fly"/><geom size=".02"/></body>
    <body name="swing"><joint name="s" type="ball"/><geom size=".02"/></body>
  </worldbody>
  <actuator><motor name="m" joint="a" gear="3" forcerange="-2 5"/></actuator>
</mujoco>"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("odd")
    (folder / "odd.xml").write_text(ODD)
    with urlab.launch(folder / "odd.xml", project=folder / "project") as client:
        yield client


def text_of(client: Any, prefix: str) -> str:
    return urdf(client.model, client.articulations[prefix], SceneFrames(client).robots[prefix])


def compiled(text: str) -> Any:
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.fusestatic = False
    spec.compiler.boundmass = spec.compiler.boundinertia = 1e-9  # links between two joints of a body weigh nothing
    return spec.compile()


def assert_same_kinematics(client: Any, prefix: str, again: Any, root: str, seed: int) -> None:
    """Put the joints of both models at the same random values, and compare all links as seen from the root body."""
    model, robot, rng = client.model, client.articulations[prefix], np.random.default_rng(seed)
    data, data_again = mujoco.MjData(model), mujoco.MjData(again)
    data.qpos[:] = model.qpos0
    for name in JointStates(robot).names:
        data.qpos[robot.joints[name].qpos_offset] = data_again.joint(name).qpos[0] = rng.uniform(-1, 1)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_kinematics(again, data_again)
    links = {again.body(one).name for one in range(1, again.nbody)} & robot.bodies.keys()
    for link in links:
        there, here = _seen(data, f"{prefix}_{link}", f"{prefix}_{root}"), _seen(data_again, link, root)
        np.testing.assert_allclose(here[0], there[0], atol=1e-9, err_msg=link)
        np.testing.assert_allclose(here[1], there[1], atol=1e-9, err_msg=link)
    assert len(links) == len(robot.bodies)


def _seen(data: Any, body: str, root: str) -> tuple[np.ndarray, np.ndarray]:
    turn = data.body(root).xmat.reshape(3, 3).T
    return turn @ (data.body(body).xpos - data.body(root).xpos), turn @ data.body(body).xmat.reshape(3, 3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("prefix", "root"), [("panda", "link0"), ("quadruped", "trunk")])
def test_links_of_shipped_robots_move_as_mujocos_bodies(demo, prefix, root, seed):
    assert_same_kinematics(demo, prefix, compiled(text_of(demo, prefix)), root, seed)


@pytest.mark.parametrize("seed", range(3))
def test_refs_anchors_and_several_joints_of_a_body_come_out_right(tmp_path, seed):
    (tmp_path / "odd.xml").write_text(
        "\n".join(line for line in ODD.splitlines() if "loose" not in line and "swing" not in line)
    )
    with urlab.launch(tmp_path / "odd.xml", project=tmp_path / "project") as client:
        assert_same_kinematics(client, "odd", compiled(text_of(client, "odd")), "post", seed)


def inertia(body: Any) -> np.ndarray:
    """The inertia matrix of a body about its centre of mass, in the body's frame."""
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    return axes.reshape(3, 3) @ np.diag(body.inertia) @ axes.reshape(3, 3).T


@pytest.mark.parametrize("prefix", ["panda", "quadruped"])
def test_masses_and_inertias_survive(demo, prefix):
    again = compiled(text_of(demo, prefix))
    for name in demo.articulations[prefix].bodies:
        mine, there = again.body(name), demo.model.body(f"{prefix}_{name}")
        assert mine.mass[0] == pytest.approx(there.mass[0])
        np.testing.assert_allclose(mine.ipos, there.ipos, atol=1e-9)
        np.testing.assert_allclose(inertia(mine), inertia(there), rtol=1e-6, atol=1e-12)


def test_joints_are_called_as_in_joint_states_and_links_as_in_tf(demo):
    frames = SceneFrames(demo)
    for prefix, robot in demo.articulations.items():
        root = ET.fromstring(text_of(demo, prefix))
        moving = [one.get("name") for one in root.findall("joint") if one.get("type") != "fixed"]
        assert sorted(moving) == sorted(JointStates(robot).names)
        links = {f"{root.get('name')}/{one.get('name')}" for one in root.findall("link")}
        told = {end for link in frames.robots[prefix].links for end in frames.robots[prefix].ends(link)}
        assert links == {one for one in told if one.startswith(f"{prefix}/") and not one.endswith("/odom")}
        children = [one.find("child").get("link") for one in root.findall("joint")]
        assert {one.get("name") for one in root.findall("link")} - set(children) == {"base_link"}
        assert len(children) == len(set(children))


def test_limits_types_and_efforts_of_joints(odd):
    root = ET.fromstring(text_of(odd, "odd"))
    joints = {one.get("name"): one for one in root.findall("joint")}
    assert {name: joints[name].get("type") for name in "abcds"} == {
        "a": "revolute",
        "b": "prismatic",
        "c": "continuous",
        "d": "continuous",
        "s": "floating",
    }
    limit = joints["a"].find("limit").attrib
    assert (limit["lower"], limit["upper"], limit["effort"]) == ("-1.0", "2.0", "15.0")
    assert "lower" not in joints["c"].find("limit").attrib
    assert "fly" not in joints, "what moves freely is not part of the robot"
    assert root.find("link[@name='loose']") is None


def test_shapes_are_visual_where_shown_and_collision_where_they_touch(odd):
    root = ET.fromstring(text_of(odd, "odd"))
    arm, fore, post = (root.find(f"link[@name='{name}']") for name in ("arm", "fore", "post"))
    assert (
        arm.find("visual/geometry/sphere").get("radius")
        == arm.find("collision/geometry/sphere").get("radius")
        == "0.03"
    )
    assert arm.find("visual/origin").get("xyz") == "0.1 0.0 0.0"
    assert arm.find("visual/material/color").get("rgba") == "1.0 0.0 0.0 0.5"
    assert fore.find("visual") is None, "MuJoCo does not show group 3"
    sides = [float(one) for one in fore.find("collision/geometry/box").get("size").split()]
    np.testing.assert_allclose(sides, [0.2, 0.4, 0.6])
    assert post.find("collision") is None
    assert post.find("visual/geometry/cylinder").attrib == {"radius": "0.02", "length": "0.6"}


def test_a_capsule_is_a_cylinder_and_two_balls(demo):
    calf = ET.fromstring(text_of(demo, "quadruped")).find("link[@name='FL_calf_link']")
    for role in ("visual", "collision"):
        shapes = [one for one in calf.findall(role) if one.find("geometry")[0].get("radius") == "0.013"]
        kinds = [one.find("geometry")[0].tag for one in shapes]
        assert kinds == ["cylinder", "sphere", "sphere"]
        assert shapes[0].find("geometry/cylinder").get("length") == "0.16"
        heights = [float(one.find("origin").get("xyz").split()[2]) for one in shapes]
        np.testing.assert_allclose(sorted(heights), [-0.18, -0.1, -0.02])


def test_the_colour_of_a_material_is_that_of_its_geom(demo):
    root = ET.fromstring(text_of(demo, "quadruped"))
    colours = {one.get("rgba") for one in root.findall("link[@name='FL_calf_link']/visual/material/color")}
    rubber, dark = (demo.model.material(f"quadruped_{name}").rgba for name in ("rubber", "dark"))
    assert colours == {" ".join(repr(float(one)) for one in rgba) for rgba in (rubber, dark)}


def test_the_description_is_the_urdf_in_a_string(demo):
    robot, frames = demo.articulations["panda"], SceneFrames(demo).robots["panda"]
    assert robot_description(demo.model, robot, frames).data == text_of(demo, "panda")


@pytest.mark.parametrize("pitch", [0.3, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-8, 3.0])
def test_roll_pitch_and_yaw_give_the_rotation_back(pitch):
    turns = [np.empty(4) for _ in range(3)]
    for turn, axis, angle in zip(turns, np.eye(3), (0.4, pitch, -2.0), strict=True):
        mujoco.mju_axisAngle2Quat(turn, axis, angle)
    quat, again = np.empty(4), np.empty(4)
    mujoco.mju_mulQuat(quat, turns[2], turns[1])
    mujoco.mju_mulQuat(quat, quat.copy(), turns[0])
    mujoco.mju_euler2Quat(again, np.array(rpy(quat)), "XYZ")
    np.testing.assert_allclose(again * np.sign(again @ quat), quat, atol=1e-12)
