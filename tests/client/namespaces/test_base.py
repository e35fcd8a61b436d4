from typing import Any

import msgspec
import pytest

from urlab_client import URLabClient
from urlab_wire.catalogue import CATALOGUE

META = [
    {"name": "future_scene_op", "category": "editor_only", "namespace": "scene"},
    {"name": "spawn_actor", "category": "editor_only", "namespace": "scene"},
    {"name": "step", "category": "manager_required", "namespace": ""},
]


@pytest.fixture
def informed(make_client: Any, server: Any) -> URLabClient:
    server.replies["meta"] = {"ops": META}
    client: URLabClient = make_client()
    client.discover()
    return client


def test_the_catalogue_is_kept_by_name(informed: URLabClient):
    assert set(informed._ops_meta) == {"future_scene_op", "spawn_actor", "step"}


def test_an_op_that_only_the_server_knows_is_callable_by_keyword(informed: URLabClient, server: Any):
    server.replies["future_scene_op"] = {"result": 42}
    assert informed.scene.future_scene_op(some_arg="hi", n=7) == {"op": "future_scene_op_ok", "result": 42}
    sent = server.last("future_scene_op")
    assert (sent["some_arg"], sent["n"], sent["session_id"]) == ("hi", 7, informed.session_id)
    with pytest.raises(TypeError):
        informed.scene.future_scene_op("hi")


@pytest.mark.parametrize("name", ["step", "nonsense", "_private"])
def test_ops_of_other_namespaces_and_private_names_are_refused(informed: URLabClient, name: str):
    with pytest.raises(AttributeError, match="ops of this namespace: future_scene_op, spawn_actor"):
        getattr(informed.scene, name)


def test_dir_lists_methods_and_ops_of_the_namespace(informed: URLabClient):
    listed = dir(informed.scene)
    assert {"future_scene_op", "spawn_actor", "apply_scene"} <= set(listed)
    assert "step" not in listed


def test_every_op_of_the_catalogue_has_a_method_that_sends_what_its_request_allows(make_client: Any, server: Any):
    server.replies["editor_address"] = {"url": "http://127.0.0.1:8080/?token=t"}
    server.replies["batch_open"] = {
        "batch_id": "batch-1", "num": 1, "nq": 0, "nv": 0, "setpoints": 0, "nsensordata": 0, "timestep": 0.002,
    }  # fmt: skip
    arrays = {"time": bytes(8), "qpos": b"", "qvel": b"", "sensordata": b""}
    server.replies["batch_step"] = server.replies["batch_reset"] = arrays
    client = make_client()
    client.discover()
    for call in CALLS:
        eval(call, {"client": client})
    assert set(server.ops()) == set(CATALOGUE)
    for request in server.received:
        kind = CATALOGUE[request["op"]].request
        msgspec.convert(request, kind)
        assert set(request) <= {"op", *(field.encode_name for field in msgspec.structs.fields(kind))}


CALLS = """
client.step()
client.reset()
client.runtime.forward()
client.runtime.perturb("box", target=(0, 0, 1), stiffness=50)
client.runtime.release()
client.runtime.set_ui_controls("arm", (1, 2))
client.runtime.save_state("here")
client.runtime.restore_state(b"state")
client.runtime.list_states()
client.runtime.delete_state("here")
client.runtime.set_equality("tie", False)
client.runtime.set_model_params(("body", "crate", "mass", 2.0), until="reset")
client.articulations["arm"].controller.refresh()
client.runtime.set_mode("live")
client.runtime.set_paused(True)
client.runtime.set_sim_speed(50)
client.runtime.set_control_source("ui", articulation="arm")
client.runtime.set_twist("arm", linear=(1, 0, 0), actions=3)
client.runtime.set_qpos("robot_0", [0, 0])
client.runtime.set_mocap_pose("target", pos=(0, 0, 1))
client.runtime.read_mocap_pose("target")
client.runtime.get_contacts(body1="a")
client.runtime.list_keyframes()
client.runtime.set_sim_options(timestep=0.001)
client.runtime.set_camera_mode("arm/eye", "depth")
client.runtime.set_camera_streaming({"room": True, "arm/eye": {"zmq": True, "rate_hz": 10.0}})
client.batch(1).step(n_steps=2).close()
client.recording.start()
client.recording.start(path="x.mcap")
client.recording.stop()
client.recording.save()
client.recording.clear()
client.recording.status()
client.recording.list()
client.recording.export("x.json", camera="eye", width=64, height=48, fps=10, start=0.5, end=1.0, wait=False)
client.recording.export_status()
client.recording.cancel_export("export-1")
client.replay.load("x.json")
client.replay.list_sessions()
client.replay.set_active("x")
client.replay.start()
client.replay.seek(3)
client.replay.stop()
client.scene.import_xml("/x.xml")
client.scene.create_level("l")
client.scene.load_level("l")
client.scene.save_level()
client.scene.list_levels()
client.scene.current_level()
client.scene.undo()
client.scene.redo()
client.scene.upload("cup.obj", b"v 0 0 0")
client.scene.ensure_manager()
client.scene.spawn_actor("b", "a")
client.scene.spawn_grid("b", "a", 1, 1)
client.scene.spawn_light()
client.scene.destroy_actor("a")
client.scene.destroy_asset("/Game/x")
client.scene.set_actor_transform("a", location=(0, 0, 0))
client.scene.duplicate_actor("a", "b")
client.scene.actor_hierarchy("a")
client.scene.snapshot()
client.sim.start(raise_on_failure=False)
client.sim.stop()
client.sim.status()
client.sim.recent_log(3)
client.outliner.list_actors()
client.outliner.list_blueprints()
client.outliner.blueprint_picture("panda")
client.outliner.find_actors()
client.outliner.get_actor_bounds("a")
client.outliner.select_actor("a")
client.outliner.add_quick_convert("a")
client.outliner.remove_quick_convert("a")
client.debug.draw_marker((0, 0, 0), (1, 1, 1))
client.debug.draw_line((0, 0, 0), (1, 1, 1), (1, 1, 1))
client.debug.draw_box((0, 0, 0), (1, 1, 1), (1, 1, 1))
client.debug.draw_arrow((0, 0, 0), (1, 1, 1), (1, 1, 1))
client.debug.draw_axes((0, 0, 0))
client.debug.clear_markers()
client.debug.set_overlay_text("hi")
client.debug.set_overlay_choice("worker", ["1", "2"])
client.viewport.set_camera((0, 0, 0))
client.viewport.get_camera()
client.viewport.frame_actor("a")
client.viewport.set_mode("lit")
client.viewport.track_actor("a")
client.viewport.untrack()
client.viewport.look_through("eye")
client.viewport.set_overlays(contacts=True)
client.viewport.read("1")
client.show()
client.viewport.screenshot()
""".strip().splitlines()
