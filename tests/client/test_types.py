from urlab_client import (
    ActorHierarchyNode,
    ActorInfo,
    Contact,
    ContactsResult,
    PIEStartResult,
    PIEState,
    PIEStatus,
    SimOptions,
    URLabClient,
    URLabSpawnHandle,
)


def test_sim_options_hold_what_was_echoed_and_nothing_else():
    options = SimOptions.from_wire({"timestep": 0.002, "gravity": [0.0, 0.0, -9.81], "iterations": 5, "new": 1})
    assert options == SimOptions(timestep=0.002, gravity=(0.0, 0.0, -9.81), iterations=5)


def test_an_unknown_pie_state_counts_as_off():
    assert PIEStatus.from_wire({"state": "dreaming"}).state is PIEState.OFF
    assert PIEStartResult.from_wire({"state": "ready"}).is_ready


def test_an_actor_without_quick_convert_has_none_of_its_settings():
    actor = ActorInfo.from_wire({"name": "a", "class": "C", "location": [1, 2, 3]})
    assert (actor.name, actor.actor_class, actor.location) == ("a", "C", (1.0, 2.0, 3.0))
    assert actor.rotation_quat == (0.0, 0.0, 0.0, 1.0)
    assert actor.static is None
    assert actor.friction is None


def test_an_actor_with_quick_convert_shows_its_settings():
    block = {"static": True, "complex_mesh": False, "coacd_threshold": 0.1, "friction": [1, 2, 3]}
    actor = ActorInfo.from_wire({"name": "a", "has_quick_convert": True, "quick_convert": block})
    assert (actor.static, actor.coacd_threshold, actor.friction) == (True, 0.1, (1.0, 2.0, 3.0))


def test_contacts_are_read_with_their_force():
    block = {"geom1": "a", "body1": "b", "pos": [1, 2, 3], "dist": -0.1, "force": [1, 2, 3, 4, 5, 6]}
    result = ContactsResult.from_wire({"n_contacts": 1, "truncated": True, "contacts": [block]})
    expected = Contact("a", "", "b", "", (1.0, 2.0, 3.0), (0.0, 0.0, 0.0), -0.1, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    assert result == ContactsResult(1, True, [expected])


def test_a_hierarchy_is_read_to_its_leaves():
    root = ActorHierarchyNode.from_wire({"name": "r", "class": "A", "children": [{"name": "c"}]})
    assert [child.name for child in root.children] == ["c"]


def test_a_spawn_handle_finds_its_running_articulation(client: URLabClient):
    by_id = URLabSpawnHandle("robot_0", "whatever", "", "")
    by_name = URLabSpawnHandle("", "dog", "", "")
    assert by_id.runtime(client) is client.articulations["arm"]
    assert by_name.runtime(client) is client.articulations["dog"]
    assert URLabSpawnHandle("x", "y", "", "").runtime(client) is None
