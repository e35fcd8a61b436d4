from typing import Any

import pytest

from urlab_client import URLabAsset, URLabBlueprint, URLabClient, URLabRPCError, URLabSpawnHandle


@pytest.fixture
def authored(client: URLabClient, server: Any) -> URLabClient:
    server.replies["import_xml"] = {"blueprint_class_path": "/Game/X.X_C", "blueprint_short_name": "X"}
    server.replies["spawn_actor"] = lambda request: {"actor_id": request["actor_id"], "location": request["location"]}
    server.received.clear()
    return client


def test_an_import_spawns_as_it_is(authored: URLabClient, server: Any):
    blueprint = authored.scene.import_xml("/models/x.xml")
    assert blueprint == URLabBlueprint("/Game/X.X_C", "X", False)
    handle = authored.scene.spawn_actor(blueprint, "a", location=(1, 2, 3), rotation_euler=(0, 0, 90))
    assert handle == URLabSpawnHandle("a", "", "", "", location=(1.0, 2.0, 3.0))
    sent = server.last("spawn_actor")
    assert (sent["blueprint"], sent["rotation_euler"], sent["scale"]) == ("/Game/X.X_C", [0, 0, 90], [1, 1, 1])
    assert "rotation_quat" not in sent


def test_two_rotations_or_a_short_vector_are_refused(authored: URLabClient, server: Any):
    with pytest.raises(ValueError, match="not both"):
        authored.scene.spawn_actor("/X", "a", rotation_quat=(0, 0, 0, 1), rotation_euler=(0, 0, 0))
    with pytest.raises(ValueError, match="location needs 3 numbers"):
        authored.scene.spawn_actor("/X", "a", location=(0, 0))
    assert server.ops() == []


def test_a_grid_gives_a_handle_per_cell(authored: URLabClient, server: Any):
    cells = [{"actor_id": f"a_{i}_0", "location": [i, 0, 0], "was_existing": False} for i in range(2)]
    server.replies["spawn_grid"] = {"count": 2, "blueprint_class_path": "/Game/X.X_C", "actors": cells}
    handles = authored.scene.spawn_grid("/X", "a", 2, 1)
    assert handles["a_1_0"].location == (1.0, 0.0, 0.0)
    assert handles["a_1_0"].blueprint_class_path == "/Game/X.X_C"
    with pytest.raises(ValueError, match="counts above zero"):
        authored.scene.spawn_grid("/X", "a", 0, 1)


def test_a_light_of_an_unknown_kind_is_refused(authored: URLabClient, server: Any):
    with pytest.raises(ValueError, match="directional, point, spot"):
        authored.scene.spawn_light("disco")
    server.replies["spawn_light"] = {"kind": "point", "actor_id": "l", "intensity": 0.0, "color": [1, 0, 0]}
    light = authored.scene.spawn_light("point", "l")
    assert (light.kind, light.intensity, light.color) == ("point", 0.0, (1.0, 0.0, 0.0))


def test_targets_are_ids_names_or_handles(authored: URLabClient, server: Any):
    authored.scene.destroy_actor(URLabSpawnHandle("a", "n", "", ""))
    assert server.last("destroy_actor")["target"] == "a"
    authored.scene.destroy_actor("n", by_name=True)
    assert (server.last("destroy_actor")["target"], server.last("destroy_actor")["target_by"]) == ("n", "actor_name")


def test_a_handle_without_an_id_is_named_by_its_name(authored: URLabClient, server: Any):
    dog, box = authored.articulations["dog"], authored.entities["box"]
    for handle, name in ((URLabSpawnHandle("", "n", "", ""), "n"), (dog, "dog"), (box, "box")):
        authored.outliner.select_actor(handle)
        sent = server.last("select_actor")
        assert (sent["target"], sent["target_by"]) == (name, "actor_name")
    authored.viewport.frame_actor(authored.articulations["arm"], by_name=True)
    assert server.last("frame_actor")["target"] == "arm"
    with pytest.raises(TypeError, match="an actor_id, a name or a handle"):
        authored.scene.destroy_actor(None)  # type: ignore[arg-type]


def test_apply_scene_opens_imports_once_spawns_and_saves(authored: URLabClient, server: Any):
    assets = [URLabAsset("a", "/x.xml"), URLabAsset("b", "/x.xml", location=(1, 0, 0))]
    handles = authored.scene.apply_scene("lab", assets)
    assert server.ops() == ["load_level", "import_xml", "spawn_actor", "spawn_actor", "save_level"]
    assert handles["b"].location == (1.0, 0.0, 0.0)


def test_apply_scene_creates_a_level_that_is_not_there(authored: URLabClient, server: Any, refuse: Any):
    server.replies["load_level"] = refuse("load_level_failed")
    authored.scene.apply_scene("lab", [], save=False)
    assert server.ops() == ["load_level", "create_level"]


def test_apply_scene_passes_failures_on(authored: URLabClient, server: Any, refuse: Any):
    server.replies["spawn_actor"] = refuse("spawn_failed")
    with pytest.raises(URLabRPCError, match="spawn_failed"):
        authored.scene.apply_scene("lab", [URLabAsset("a", "/x.xml")])
    assert "save_level" not in server.ops()
    with pytest.raises(ValueError, match="own actor_id"):
        authored.scene.apply_scene("lab", [URLabAsset("a", "/x.xml"), URLabAsset("a", "/y.xml")])
