"""Replies of other servers, and of other versions of ours, are read as far as they go."""

from typing import Any

import pytest

from urlab_client import (
    ActorHierarchyNode,
    ActorInfo,
    CameraStreaming,
    Contact,
    ContactsResult,
    PIEState,
    SimOptions,
    URLabClient,
    URLabRPCError,
    URLabSpawnHandle,
)
from urlab_client.rpc import read_reply
from urlab_wire import CATALOGUE, OpSpec


@pytest.mark.parametrize("spec", CATALOGUE.values(), ids=list(CATALOGUE))
def test_a_reply_with_nothing_in_it_is_read_as_an_empty_one(spec: OpSpec):
    assert isinstance(read_reply(spec.reply, {"op": spec.reply_op}), spec.reply)


def test_fields_that_this_client_does_not_know_are_passed_over(client: URLabClient, server: Any):
    server.replies["set_paused"] = {"paused": True, "since": 3, "by": {"name": "x"}}
    assert client.runtime.set_paused(True) is True


def test_null_counts_as_absent(client: URLabClient, server: Any):
    server.replies["spawn_actor"] = {"actor_id": "a", "actor_name": None, "rotation_quat": None, "was_existing": None}
    assert client.scene.spawn_actor("/X", "a") == URLabSpawnHandle("a", "", "", "")


def test_a_switch_whose_reply_does_not_say_is_as_it_was_asked_for(client: URLabClient):
    assert client.runtime.set_paused(True) is True
    assert client.runtime.set_sim_speed(40) == 40.0
    assert client.viewport.set_mode("lit") == "lit"
    assert client.runtime.set_camera_mode("wrist", "depth") == "depth"
    assert client.scene.spawn_light().intensity == 5000.0


def test_whole_numbers_may_be_floats_and_floats_whole_numbers(client: URLabClient, server: Any):
    server.replies["recording_stop"] = {"name": "r", "frame_count": 12.0, "sim_duration_s": 1}
    summary = client.recording.stop()
    assert (summary.frame_count, summary.sim_duration_s) == (12, 1.0)


def test_a_value_that_cannot_be_what_its_field_holds_is_an_error(client: URLabClient, server: Any):
    server.replies["recording_stop"] = {"name": "r", "frame_count": "many", "sim_duration_s": 1}
    with pytest.raises(URLabRPCError, match="the reply cannot be read") as raised:
        client.recording.stop()
    assert raised.value.code == "transport_error"


def test_sim_options_hold_what_was_echoed_and_nothing_else(client: URLabClient, server: Any):
    server.replies["set_sim_options"] = {
        "options": {"timestep": 0.002, "gravity": [0.0, 0.0, -9.81], "iterations": 5, "new": 1}
    }
    options = client.runtime.set_sim_options(timestep=0.002)
    assert options == SimOptions(timestep=0.002, gravity=(0.0, 0.0, -9.81), iterations=5)


def test_an_unknown_pie_state_counts_as_off(client: URLabClient, server: Any):
    server.replies["pie_status"] = {"state": "dreaming"}
    assert client.sim.status().state is PIEState.OFF


def test_an_actor_without_quick_convert_has_none_of_its_settings(client: URLabClient, server: Any):
    server.replies["list_actors"] = {"actors": [{"name": "a", "class": "C", "location": [1, 2, 3]}]}
    (actor,) = client.outliner.list_actors()
    assert actor == ActorInfo("a", "C", "", False, False, (1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0))


def test_an_actor_with_quick_convert_shows_its_settings(client: URLabClient, server: Any):
    block = {"static": True, "complex_mesh": False, "coacd_threshold": 0.1, "friction": [1, 2, 3]}
    actor = {"name": "a", "has_quick_convert": True, "quick_convert": block}
    server.replies["list_actors"] = {"actors": [actor, {**actor, "has_quick_convert": False}]}
    converted, other = client.outliner.list_actors()
    assert (converted.static, converted.coacd_threshold, converted.friction) == (True, 0.1, (1.0, 2.0, 3.0))
    assert other.static is None


def test_contacts_are_read_with_their_force(client: URLabClient, server: Any):
    block = {"geom1": "a", "body1": "b", "pos": [1, 2, 3], "dist": -0.1, "force": [1, 2, 3, 4, 5, 6]}
    server.replies["get_contacts"] = {"truncated": True, "contacts": [block]}
    expected = Contact("a", "", "b", "", (1.0, 2.0, 3.0), (0.0, 0.0, 0.0), -0.1, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert client.runtime.get_contacts() == ContactsResult(1, True, [expected])


def test_a_hierarchy_is_read_to_its_leaves(client: URLabClient, server: Any):
    server.replies["actor_hierarchy"] = {"root": {"name": "r", "class": "A", "children": [{"name": "c"}]}}
    leaf = ActorHierarchyNode("c", "", (0.0, 0.0, 0.0))
    assert client.scene.actor_hierarchy("r") == ActorHierarchyNode("r", "A", (0.0, 0.0, 0.0), [leaf])


def test_a_camera_stream_without_a_rate_is_read(client: URLabClient, server: Any):
    server.replies["set_camera_streaming"] = {"cameras": {"wrist": {"streaming": True, "zmq": True}}}
    told = client.runtime.set_camera_streaming({"wrist": True})
    assert told == {"wrist": CameraStreaming(True, True, False, 0.0)}


def test_a_spawn_handle_finds_its_running_articulation(client: URLabClient):
    by_id = URLabSpawnHandle("robot_0", "whatever", "", "")
    by_name = URLabSpawnHandle("", "dog", "", "")
    assert by_id.runtime(client) is client.articulations["arm"]
    assert by_name.runtime(client) is client.articulations["dog"]
    assert URLabSpawnHandle("x", "y", "", "").runtime(client) is None
