from typing import Any

import pytest

from urlab_client import ActorBounds, BlueprintInfo, CameraPose, URLabBlueprint, URLabClient


def test_lines_and_arrows_send_their_ends(client: URLabClient, server: Any):
    client.debug.draw_line((0, 0, 0), (1, 0, 0), (1, 0, 0), tag="t")
    sent = server.last("draw_line")
    assert (sent["from"], sent["to"], sent["tag"], sent["ttl"]) == ([0, 0, 0], [1, 0, 0], "t", 0.0)
    client.debug.draw_arrow((0, 0, 0), (1, 0, 0), (1, 0, 0))
    assert "arrow_size" not in server.last("draw_arrow")


def test_the_viewport_mode_is_checked_and_sent_under_its_own_op(client: URLabClient, server: Any):
    server.replies["set_viewport_mode"] = {"mode": "lit"}
    assert client.viewport.set_mode("lit") == "lit"
    with pytest.raises(ValueError, match="lit, unlit, wireframe"):
        client.viewport.set_mode("x-ray")


def test_camera_poses_are_typed(client: URLabClient, server: Any):
    server.replies["get_camera"] = {"location": [1, 2, 3], "fov": 90.0}
    pose = CameraPose((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 90.0)
    assert client.viewport.get_camera() == pose


def test_tracking_needs_a_smoothing_below_one(client: URLabClient, server: Any):
    server.replies |= {"track_actor": {"tracked_actor_path": "/p"}, "untrack": {"was_tracking": True}}
    assert client.viewport.track_actor("a", smoothing=0.9) == "/p"
    assert client.viewport.untrack() is True
    with pytest.raises(ValueError, match=r"smoothing is in \[0, 1\)"):
        client.viewport.track_actor("a", smoothing=1.0)


def test_the_outliner_is_typed(client: URLabClient, server: Any):
    server.replies |= {
        "list_blueprints": {"blueprints": [{"blueprint_class_path": "/p", "blueprint_short_name": "s"}]},
        "get_actor_bounds": {"actor_name": "a", "min": [0, 0, 0], "max": [2, 2, 2], "center": [1, 1, 1]},
        "find_actors": {"actors": [{"name": "a"}]},
    }
    assert client.outliner.list_blueprints() == [BlueprintInfo("/p", "s")]
    bounds = client.outliner.get_actor_bounds("a")
    assert bounds == ActorBounds("a", (0.0, 0.0, 0.0), (2.0, 2.0, 2.0), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    assert [actor.name for actor in client.outliner.find_actors(tag="t")] == ["a"]
    assert (server.last("find_actors")["tag"], server.last("find_actors")["in_pie"]) == ("t", False)


def test_a_picture_of_a_blueprint_is_the_bytes_of_a_file(client: URLabClient, server: Any):
    server.replies["blueprint_picture"] = {"png": b"\x89PNG", "width": 256, "height": 192}
    for blueprint in ("/X.X_C", BlueprintInfo("/X.X_C", "X"), URLabBlueprint("/X.X_C", "X", True)):
        assert client.outliner.blueprint_picture(blueprint) == b"\x89PNG"
        sent = server.last("blueprint_picture")
        assert (sent["blueprint_path"], sent["width"], sent["height"]) == ("/X.X_C", 256, 192)
    client.outliner.blueprint_picture("panda", 64, 48)
    assert server.last("blueprint_picture")["height"] == 48
