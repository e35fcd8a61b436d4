from typing import Any

import numpy as np
import pytest

from urlab_client import URLabClient, URLabEntity


def test_articulations_are_entities_too(client: URLabClient):
    assert set(client.entities) == {"arm", "dog", "box", "shelf", "target"}
    assert client.entities["arm"] is client.articulations["arm"]


def test_a_free_entity_points_into_the_local_data(client: URLabClient):
    client.step()
    box = client.entities["box"]
    assert (box.has_free_base, box.free_joint, box.qpos_offset, box.qvel_offset) == (True, "box_free", 10, 9)
    assert client.data.qpos[10:17].tolist() == [0.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0]
    assert box.root_pos_w.tolist() == [0.0, 3.0, 2.0]
    assert box.root_lin_vel_w.tolist() == [0.0, 0.0, -1.0]


def test_a_kinematic_entity_stands_where_the_server_says(client: URLabClient):
    client.step()
    shelf = client.entities["shelf"]
    assert shelf.root_pos_w.tolist() == [5.0, 6.0, 7.0]
    assert shelf.root_quat_xyzw.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert shelf.qpos_offset is None
    assert shelf.root_lin_vel_w.tolist() == [0.0, 0.0, 0.0]


def test_velocities_and_gravity_are_turned_into_the_body_frame(client: URLabClient):
    client.step()
    dog = client.articulations["dog"]  # turned by half a turn about z: body x and y point backwards
    assert dog.root_lin_vel_w.tolist() == [1.0, 2.0, 3.0]
    assert np.allclose(dog.root_lin_vel_b, [-1.0, -2.0, 3.0])
    assert dog.root_ang_vel_b.tolist() == [0.1, 0.2, 0.3]
    assert np.allclose(dog.root_ang_vel_w, [-0.1, -0.2, 0.3])
    assert np.allclose(dog.projected_gravity_b, [0.0, 0.0, -1.0])


def test_an_entity_without_a_local_model_shows_what_the_wire_says(make_client: Any):
    client = make_client(local_model=False)
    client.discover()
    box = client.entities["box"]
    assert client.model is None
    assert box.root_quat_w.tolist() == [1.0, 0.0, 0.0, 0.0]
    client.step()
    assert box.root_pos_w.tolist() == [0.0, 3.0, 2.0]
    assert client.articulations["arm"].qpos_array.tolist() == [0.7, -0.3]


def test_handles_without_a_local_model_are_whole_and_follow_the_replies(make_client: Any, server: Any):
    client = make_client(step_mode="direct", local_model=False)
    client.discover()
    arm, dog = client.articulations["arm"], client.articulations["dog"]
    assert (client.model, client.data) == (None, None)
    assert (list(arm.joints), list(arm.actuators), list(dog.bodies)) == (
        ["waist", "elbow_joint"], ["waist", "elbow"], ["trunk", "leg"],
    )  # fmt: skip
    assert arm.joints["waist"].range == (-3.0, 3.0)
    assert dog.get_qpos() == {"root": 2.0, "hip": 0.0}
    assert dog.root_pos_w.tolist() == [2.0, 0.0, 1.0]
    assert client.entities["shelf"].root_pos_w.tolist() == [0.0, -3.0, 1.0]
    client.step()
    assert server.last("step")["per_articulation"]["arm"]["ctrl"] == [0.0, 0.0]
    assert dog.root_quat_w.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert dog.root_lin_vel_w.tolist() == [1.0, 2.0, 3.0]
    assert np.allclose(dog.root_lin_vel_b, [-1.0, -2.0, 3.0])
    assert client.entities["box"].root_lin_vel_w.tolist() == [0.0, 0.0, -1.0]
    assert arm.get_sensors()["tip"].tolist() == [1.0, 2.0, 3.0]
    assert client.entities["shelf"].root_pos_w.tolist() == [5.0, 6.0, 7.0]


def test_a_fixed_root_without_a_local_model_stands_where_the_model_or_a_full_reply_says(
    make_client: Any, server: Any, state_reply: dict[str, Any]
):
    client = make_client(local_model=False)
    client.discover()
    arm = client.articulations["arm"]
    client.step()
    assert arm.root_pos_w.tolist() == arm.bodies["base"].xpos.tolist() == [0.0, 0.0, 0.0]
    assert arm.bodies["hand"].xpos is None
    told = {"xpos": [9.0, 9.0, 9.0], "xquat": [0.0, 1.0, 0.0, 0.0]}
    state_reply["per_articulation"]["arm"]["bodies"] = {"base": told}
    server.replies["step"] = state_reply
    client.step(observations="full")
    assert arm.root_pos_w.tolist() == arm.bodies["base"].xpos.tolist() == [9.0, 9.0, 9.0]


def test_ids_are_known_without_a_local_model(make_client: Any, scene_model: Any):
    client = make_client(local_model=False)
    client.discover()
    arm = client.articulations["arm"]
    assert arm.mj_joint("waist") == arm.mj("joint", "arm_waist") == scene_model.joint("arm_waist").id
    with pytest.raises(KeyError, match="no geom 'g0'"):
        arm.mj("geom", "g0")


def test_set_qpos_shows_without_a_local_model(make_client: Any, server: Any):
    client = make_client(local_model=False)
    client.discover()
    server.replies["set_qpos"] = {"actor_name": "dog", "qpos": [1, 2, 3, 1, 0, 0, 0], "free_base_shortcut": True}
    client.runtime.set_qpos("dog", [1, 2, 3, 1, 0, 0, 0])
    assert client.articulations["dog"].root_pos_w.tolist() == [1.0, 2.0, 3.0]
    assert client.articulations["dog"].dof_qpos.tolist() == [0.0]


def test_a_wrench_in_puppet_mode_warns_and_stays():
    entity = URLabEntity(name="box", body_id=5, has_free_base=False, client=URLabClient(step_mode="puppet"))
    with pytest.warns(UserWarning, match="no effect in puppet mode"):
        entity.apply_xfrc(force=[1, 0, 0])
    assert entity._pending_xfrc
