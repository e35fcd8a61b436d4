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


def test_a_wrench_in_puppet_mode_warns_and_stays():
    entity = URLabEntity(name="box", body_id=5, has_free_base=False, client=URLabClient(step_mode="puppet"))
    with pytest.warns(UserWarning, match="no effect in puppet mode"):
        entity.apply_xfrc(force=[1, 0, 0])
    assert entity._pending_xfrc
