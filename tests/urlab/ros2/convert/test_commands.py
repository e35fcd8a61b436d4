"""Commands: what ROS asks, as setpoints, or refused whole."""

import math
from typing import Any

import numpy as np
import pytest

import urlab
from urlab.ros2.convert.commands import BadCommand, ControlCommand, JointCommand, twist_command
from urlab.ros2.messages import deserialise, make, serialise

MIXED = """<mujoco model="mixed"><worldbody><body name="b"><joint name="j" axis="1 0 0"/><joint name="k" axis="0 1 0"/>
  <joint name="idle" axis="0 0 1"/><geom size=".1"/></body></worldbody>
  <actuator>
    <position name="servo" joint="j" kp="5"/><velocity name="rate" joint="j" kv="2"/>
    <motor name="push" joint="k"/>
    <intvelocity name="creep" joint="idle" kp="3" actrange="-1 1"/>
    <general name="raw_servo" body="b" biastype="affine" biasprm="0 -4 -1" gainprm="4"/>
    <general name="raw_rate" body="b" biastype="affine" biasprm="0 0 -1"/>
    <general name="plain" body="b"/>
  </actuator></mujoco>"""


def joints(**fields: Any) -> Any:
    """A JointState as it comes off the wire."""
    message = make("sensor_msgs/msg/JointState", **fields)
    return deserialise(serialise(message, "sensor_msgs/msg/JointState"), "sensor_msgs/msg/JointState")


def array(*values: float) -> Any:
    return make("std_msgs/msg/Float64MultiArray", data=np.array(values, dtype=np.float64))


def twist(linear: tuple[float, float, float], angular: tuple[float, float, float]) -> Any:
    parts = [make("geometry_msgs/msg/Vector3", x=x, y=y, z=z) for x, y, z in (linear, angular)]
    return make("geometry_msgs/msg/Twist", linear=parts[0], angular=parts[1])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "mixed.xml").write_text(MIXED)
    with urlab.launch(folder / "mixed.xml", project=folder / "project") as client:
        yield JointCommand(client.model, client.articulations["mixed"])


@pytest.fixture(scope="module")
def panda(demo):
    return JointCommand(demo.model, demo.articulations["panda"])


def test_joints_are_set_by_name_and_a_tendon_by_its_actuator(panda):
    assert panda.convert(joints(name=["joint2", "gripper"], position=[0.5, 0.02])) == {"joint2": 0.5, "gripper": 0.02}


def test_a_robot_follows_what_it_was_told(demo, panda):
    robot = demo.articulations["panda"]
    robot.set_ctrl(panda.convert(joints(name=["joint1"], position=[0.3])))
    for _ in range(15):  # a request has a time limit
        demo.step(100)
    assert robot.get_qpos()["joint1"] == pytest.approx(0.3, abs=0.02)


def test_motors_under_a_pd_controller_take_positions(demo):
    robot = demo.articulations["quadruped"]
    command = JointCommand(demo.model, robot)
    assert command.convert(joints(name=["FL_hip"], position=[0.1])) == {"FL_hip": 0.1}
    assert set(map(tuple, command.understood.values())) == {("position",)}


def test_each_actuator_takes_the_quantity_that_it_understands(mixed):
    assert mixed.understood == {
        "j": ["position", "velocity"],
        "k": ["effort"],
        "idle": ["velocity"],
        "raw_servo": ["position"],
        "raw_rate": ["velocity"],
        "plain": ["effort"],
    }
    told = mixed.convert(joints(name=["j", "k"], position=[1.0, 2.0], velocity=[3.0, 4.0], effort=[5.0, 6.0]))
    assert told == {"servo": 1.0, "rate": 3.0, "push": 6.0}
    assert mixed.convert(joints(name=["j"], velocity=[3.0])) == {"rate": 3.0}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"name": ["joint1", "elbow"], "position": [1.0, 2.0]},
            r"nothing drives 'elbow'; it can be told: joint1 \(posit",
        ),
        ({"name": ["joint1"], "position": [1.0, 2.0]}, "1 names and 2 numbers of position"),
        ({"name": ["joint1"], "position": [1.0], "effort": [1.0, 2.0]}, "1 names and 2 numbers of effort"),
        ({"name": [], "position": [1.0]}, "0 names and 1 numbers of position"),
        ({"name": []}, "it names no joint"),
        ({"name": ["joint1"]}, "nothing says what 'joint1' is to do: it wants position"),
        ({"name": ["joint1"], "effort": [3.0]}, "it wants position"),
        ({"name": ["joint1", "joint1"], "position": [1.0, 2.0]}, "'joint1' is there more than once"),
        ({"name": ["joint1", "joint2"], "position": [1.0, math.nan]}, "position must be finite"),
        ({"name": ["joint1"], "position": [1.0], "velocity": [math.inf]}, "velocity must be finite"),
    ],
)
def test_a_bad_joint_command_is_refused_whole(panda, fields, why):
    with pytest.raises(BadCommand, match=why):
        panda.convert(joints(**fields))


def test_a_joint_that_nothing_drives_cannot_be_commanded(panda):
    with pytest.raises(BadCommand, match=r"nothing drives 'finger_joint1'.*gripper \(position\)"):
        panda.convert(joints(name=["finger_joint1"], position=[0.01]))


def test_control_has_one_number_per_actuator_of_the_robot(demo):
    told = ControlCommand(demo.articulations["quadruped"]).convert(array(*range(12)))
    assert list(told) == list(demo.articulations["quadruped"].actuators)
    assert list(told.values()) == list(range(12))
    assert all(type(value) is float for value in told.values())


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1.0] * 7, "has 7 numbers; it has 8 actuators: joint1, joint2,"),
        ([], "has 0 numbers"),
        ([0.0] * 7 + [math.nan], "must be finite"),
        ([-math.inf] * 8, "must be finite"),
    ],
)
def test_a_bad_control_is_refused(demo, values, why):
    with pytest.raises(BadCommand, match=why):
        ControlCommand(demo.articulations["panda"]).convert(array(*values))


def test_a_twist_is_forward_left_and_turn():
    assert twist_command(twist((0.5, -0.25, 9.0), (9.0, 9.0, 1.5))) == (0.5, -0.25, 1.5)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_twist_that_is_not_finite_is_refused(bad):
    with pytest.raises(BadCommand, match=r"twist\.angular must be finite"):
        twist_command(twist((0.0, 0.0, 0.0), (0.0, bad, 0.0)))
