import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from urlab_client import (
    EditStep,
    LevelStatus,
    UploadedAsset,
    URLabAsset,
    URLabBlueprint,
    URLabClient,
    URLabRPCError,
    URLabSpawnHandle,
)
from urlab_wire.ops.scene import MAX_UPLOAD_BYTES


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


# -- edits ----------------------------------------------------------------------------------------------------------


def test_undo_and_redo_tell_what_they_did_and_what_comes_next(client: URLabClient, server: Any):
    server.replies["undo"] = {"label": "move arm", "can_redo": "move arm", "requires_pie_restart": True}
    server.replies["redo"] = {"label": "move arm", "can_undo": "move arm", "requires_pie_restart": False}
    assert client.scene.undo() == EditStep("move arm", None, "move arm", True)
    assert client.scene.redo() == EditStep("move arm", "move arm", None, False)


def test_the_status_of_a_level_is_told_as_far_as_the_server_knows_it(client: URLabClient, server: Any):
    server.replies["current_level"] = {"level_path": "/Game/Levels/a", "unsaved_changes": True, "can_undo": "spawn b"}
    assert client.scene.level_status() == LevelStatus("/Game/Levels/a", True, "spawn b", None)
    assert client.scene.current_level() == "/Game/Levels/a"
    server.replies["current_level"] = {"level_path": "/Game/Levels/a"}
    assert client.scene.level_status() == LevelStatus("/Game/Levels/a")


# -- uploads --------------------------------------------------------------------------------------------------------


@pytest.fixture
def taken(client: URLabClient, server: Any) -> Any:
    """What an upload sends: its name and its bytes."""
    server.replies["upload_asset"] = {"path": "/p/Uploads/x", "models": ["/p/Uploads/x", "/p/Uploads/y"]}

    def take(*arguments: Any) -> tuple[str, bytes]:
        assert client.scene.upload(*arguments) == UploadedAsset("/p/Uploads/x", ["/p/Uploads/x", "/p/Uploads/y"])
        sent = server.last("upload_asset")
        return sent["name"], sent["data"]

    return take


def test_a_file_of_this_machine_is_sent_as_it_is(taken: Any, tmp_path: Path):
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    assert taken(tmp_path / "arm.xml") == ("arm.xml", b"<mujoco/>")
    assert taken(str(tmp_path / "arm.xml")) == ("arm.xml", b"<mujoco/>")


@pytest.mark.parametrize("data", [b"<mujoco/>", bytearray(b"<mujoco/>"), memoryview(b"<mujoco/>")])
def test_with_data_the_name_is_a_name_and_no_file_is_read(taken: Any, data: Any):
    assert taken("nowhere.xml", data) == ("nowhere.xml", b"<mujoco/>")


def test_a_folder_is_sent_as_a_zip_file_without_what_is_hidden(
    taken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "robot"
    for name in ("arm.xml", "assets/arm.stl", ".git/config", "assets/.cache"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    os.utime(folder / "arm.xml", (0, 0))  # older than zip files know
    monkeypatch.chdir(folder)
    for path in (folder, "."):
        name, data = taken(path)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {one: archive.read(one).decode() for one in archive.namelist()}
        assert (name, files) == ("robot.zip", {"arm.xml": "arm.xml", "assets/arm.stl": "assets/arm.stl"})


def test_what_is_not_there_or_too_large_is_not_sent(client: URLabClient, server: Any, tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        client.scene.upload(tmp_path / "arm.xml")
    with pytest.raises(ValueError, match=f"arm.xml has {MAX_UPLOAD_BYTES + 1} bytes; an upload has at most"):
        client.scene.upload("arm.xml", bytes(MAX_UPLOAD_BYTES + 1))
    assert "upload_asset" not in server.ops()
