from pathlib import Path
from typing import Any

import mujoco
import pytest

import urlab
from urlab_client import ActuatorType, URLabClient
from urlab_client.handles.build import owner_of


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("arm", "arm"), ("arm_waist", "arm"), ("arm_waist_left", "arm"), ("arm-2_waist", "arm-2"),
        ("my_dog_hip", "my_dog"), ("armchair", None), ("_arm", None), ("waist", None), ("my_cat", None),
    ],
)  # fmt: skip
def test_an_element_belongs_to_the_prefix_that_its_name_begins_with(name: str, owner: str | None):
    assert owner_of(name, {"arm", "arm-2", "my_dog"}) == owner


def test_the_longest_prefix_wins():
    assert owner_of("robot_2_hip", {"robot", "robot_2"}) == "robot_2"


def test_parts_are_keyed_by_short_name_in_model_order(client: URLabClient):
    arm, dog = client.articulations["arm"], client.articulations["dog"]
    assert list(arm.joints) == ["waist", "elbow_joint"]
    assert list(arm.actuators) == ["waist", "elbow"]
    assert list(arm.sensors) == ["waist_pos", "tip"]
    assert list(arm.bodies) == ["base", "hand"]
    assert list(dog.joints) == ["root", "hip"]


def test_joints_know_their_places(client: URLabClient):
    hip = client.articulations["dog"].joints["hip"]
    assert (hip.jnt_type, hip.qpos_dim, hip.qvel_dim) == (3, 1, 1)
    assert (hip.qpos_offset, hip.qpos_local_offset) == (9, 7)
    assert (hip.qvel_offset, hip.qvel_local_offset) == (8, 6)
    assert hip.range is None
    assert client.articulations["arm"].joints["waist"].range == (-3.0, 3.0)


def test_actuators_know_kind_joint_ranges_and_gains(client: URLabClient):
    waist, elbow = client.articulations["arm"].actuators.values()
    assert waist.type is ActuatorType.POSITION
    assert (waist.joint, elbow.joint) == ("waist", "elbow_joint")
    assert waist.ctrlrange == (-1.0, 1.0)
    assert elbow.ctrlrange is None
    assert (waist.kp, waist.kv) == (100.0, 0.0)
    assert waist.gear.shape == (6,)
    assert client.articulations["dog"].actuators["hip"].type is ActuatorType.GENERAL


SERVOS = """
<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody><actuator>
  <position name="position" joint="j" kp="30" kv="4"/><velocity name="velocity" joint="j" kv="5"/>
  <motor name="motor" joint="j"/><damper name="damper" joint="j" kv="2" ctrlrange="0 1"/>
  <general name="general" joint="j" gainprm="7" biastype="affine" biasprm="0 -7 -.5"/></actuator></mujoco>"""


def test_the_damping_of_a_servo_is_its_authors(tmp_path: Path):
    (tmp_path / "servos.xml").write_text(SERVOS)
    with urlab.launch(tmp_path / "servos.xml", project=tmp_path / "project") as client:
        gains = {name: (one.type, one.kp, one.kv) for name, one in client.articulations["servos"].actuators.items()}
    assert gains == {
        "position": ("position", 30, 4), "velocity": ("velocity", 5, 5), "motor": ("motor", 1, 0),
        "damper": ("damper", 0, 0), "general": ("position", 7, 0.5),
    }  # fmt: skip


def test_a_free_root_is_found_and_a_fixed_one_is_the_first_body(client: URLabClient, scene_model: Any):
    arm, dog = client.articulations["arm"], client.articulations["dog"]
    assert (dog.has_free_base, dog.free_joint, dog.qpos_offset, dog.qvel_offset) == (True, "dog_root", 2, 2)
    assert dog.body_id == scene_model.body("dog_trunk").id
    assert (arm.has_free_base, arm.free_joint, arm.qpos_offset) == (False, None, None)
    assert arm.body_id == scene_model.body("arm_base").id


def test_model_ids_resolve_by_short_and_full_name(client: URLabClient):
    arm = client.articulations["arm"]
    expected = mujoco.mj_name2id(client.model, mujoco.mjtObj.mjOBJ_JOINT, "arm_waist")
    assert arm.mj_joint("waist") == arm.mj("joint", "arm_waist") == expected
    assert arm.mj_body("hand") == client.model.body("arm_hand").id
    assert arm.mj("geom", "g0") == client.model.geom("arm_g0").id


@pytest.mark.parametrize(("kind", "name"), [("wheel", "waist"), ("joint", "nose")])
def test_an_unknown_kind_or_name_is_a_key_error(client: URLabClient, kind: str, name: str):
    with pytest.raises(KeyError):
        client.articulations["arm"].mj(kind, name)
