import ast
import inspect
from typing import Any

import pytest

import urlab_client
from urlab_client import CameraMode, URLabArticulation, URLabCameraView, URLabClient

NAMES = """
ActorBounds ActorHierarchyNode ActorInfo Actuator ActuatorType BlueprintInfo Body CameraFrame CameraMode CameraPose
CameraStreaming CameraTiming Contact ContactsResult ControlMode ControlSource ControllerKind InProcessTransport Joint
KeyframeInfo LightKind MocapPose ObservationLevel PIEStartResult PIEState PIEStatus RecordingHandle RecordingStatus
RecordingSummary ReplaySession ReplayStatus SceneSnapshot SceneSnapshotActor SegmentInfo Sensor SimOptions SpaceMode
StateInfo StepMode Transport URLabArticulation URLabAsset URLabBlueprint URLabCameraView URLabClient URLabController
URLabEntity
URLabLightHandle URLabPDController URLabPIEError URLabRPCError URLabRecordingAPI URLabReplayAPI URLabSpawnHandle
URLabTimeoutError URLabVersionMismatch ZmqTransport
"""

SIGNATURES = """
discover(observations="standard")
close()
step(n_steps=1, *, include_cameras=False, observations=...)
reset(keyframe_name=None, seed=None, per_articulation_qpos=None)
scene.create_level(name, *, force_overwrite=False)
scene.load_level(name_or_path)
scene.save_level()
scene.import_xml(xml_path, *, force_reimport=False)
scene.spawn_actor(blueprint, actor_id, *, location=..., rotation_quat=..., rotation_euler=..., scale=...)
scene.spawn_light(kind="directional", actor_id="", *, location=..., rotation_euler=..., intensity=5000.0, color=...)
scene.destroy_actor(target, *, by_name=False)
scene.set_actor_transform(target, *, by_name=False, location=None, rotation_quat=None, rotation_euler=None)
scene.destroy_asset(asset_path)
scene.current_level()
scene.ensure_manager()
scene.snapshot()
scene.duplicate_actor(target, new_actor_id, *, by_name=False, location=None)
scene.actor_hierarchy(target, *, by_name=False)
scene.spawn_grid(blueprint, base_actor_id, count_x, count_y, *, spacing=(1, 1, 0), origin=(0, 0, 0), rotation_quat=None, rotation_euler=None, scale=(1, 1, 1))
scene.apply_scene(level_name, assets, *, save=True)
sim.start(level_path=None, *, timeout_s=30.0, raise_on_failure=True)
sim.stop()
sim.status()
runtime.set_paused(paused)
runtime.set_sim_speed(percent)
runtime.set_control_source(source, *, articulation=None)
runtime.set_twist(articulation, *, linear=(0, 0, 0), angular=(0, 0, 0))
runtime.set_qpos(target, qpos, *, by_name=False)
runtime.set_mocap_pose(body, *, pos=None, quat=None)
runtime.read_mocap_pose(body)
runtime.get_contacts(*, body1=None, body2=None, geom1=None, geom2=None, max_contacts=64)
runtime.list_keyframes()
runtime.set_sim_options(**opts)
runtime.set_mode(mode)
runtime.forward()
runtime.set_camera_mode(camera, mode)
runtime.set_camera_streaming(cameras)
outliner.list_actors()
outliner.list_blueprints()
outliner.find_actors(*, class_filter=None, tag=None, name_prefix=None, in_pie=False)
outliner.get_actor_bounds(target, *, by_name=False, components_only=False)
outliner.select_actor(target, *, by_name=False)
outliner.add_quick_convert(target, *, by_name=False, static=False, complex_mesh=False, coacd_threshold=0.05, driven_by_unreal=False, friction=(1, 1, 1))
outliner.remove_quick_convert(target, *, by_name=False)
debug.draw_marker(location, color, *, ttl=0.0, label=None, tag=None)
debug.draw_line(from_, to, color, *, ttl=0.0, thickness=1.0, tag=None)
debug.draw_box(center, half_extents, color, *, rotation_quat=None, ttl=0.0, tag=None)
debug.draw_arrow(from_, to, color, *, ttl=0.0, thickness=1.0, arrow_size=None, tag=None)
debug.draw_axes(location, *, rotation_quat=None, rotation_euler=None, scale=0.2, ttl=0.0, tag=None)
debug.clear_markers(*, tag=None)
debug.set_overlay_text(text, *, anchor="top_left")
viewport.set_camera(location, *, rotation_quat=None, rotation_euler=None, fov=None)
viewport.get_camera()
viewport.frame_actor(target, *, by_name=False)
viewport.set_mode(mode)
viewport.track_actor(target, *, by_name=False, offset=None, smoothing=0.0)
viewport.untrack()
recording.start(name=None, max_duration_s=None)
recording.stop()
recording.save(path=None)
recording.clear()
replay.load(path)
replay.list_sessions()
replay.set_active(name)
replay.start()
replay.stop()
replay.play(path_or_name, loop=False)
"""  # noqa: E501

CONSTRUCTOR = """(address="tcp://localhost", *, step_mode="auto", step_port=5559, state_port=5555, ctrl_port=5556,
info_port=5557, mujoco_version_check=True, local_model=True, rcv_timeout_ms=5000, auto_promote_step_mode=True,
transport="zmq", shm_dir=None)"""

CLIENT_ATTRIBUTES = """
session_id urlab_version mujoco_version manager_present model data articulations articulations_by_id entities
global_cameras recording replay step_count sim_time sim_time_sec sim_time_nsec wall_time_sec wall_time_nsec
recv_wall_time_ns address step_mode segmentation
"""

CAMERA_ATTRIBUTES = """
name mode resolution fovy dtype latest_frame sim_time frame_count frame_id intrinsics pos_w quat_w received dropped
wait_for_frame
"""

ARTICULATION_ATTRIBUTES = """
actuators joints sensors bodies cameras prefix name actor_id body_id has_free_base free_joint free_joint_id
qpos_offset qvel_offset control_mode controller ctrl_array last_applied_ctrl act_array qpos_array qvel_array
twist_linear twist_angular twist actions dof_qpos dof_qvel set_ctrl get_ctrl get_qpos get_sensors resolve_joint
resolve_actuator root_pos_w root_quat_w root_quat_xyzw root_lin_vel_w root_ang_vel_w root_ang_vel_b root_lin_vel_b
projected_gravity_b apply_xfrc clear_xfrc push_gains mj mj_joint mj_actuator mj_sensor mj_body mj_camera
"""


def test_the_front_door_offers_exactly_the_documented_names():
    assert set(urlab_client.__all__) == set(NAMES.split())
    assert all(hasattr(urlab_client, name) for name in urlab_client.__all__)


@pytest.mark.parametrize("line", SIGNATURES.strip().splitlines())
def test_every_documented_call_has_its_signature(line: str):
    path, _, arguments = line.partition("(")
    found: Any = URLabClient(transport="zmq")
    for name in path.split("."):
        found = getattr(found, name)
    assert_accepts(inspect.signature(found), f"({arguments}")


def test_the_constructor_has_its_signature():
    assert_accepts(inspect.signature(URLabClient), CONSTRUCTOR)


def test_a_client_has_every_documented_attribute_before_it_discovers():
    client = URLabClient()
    assert [name for name in CLIENT_ATTRIBUTES.split() if not hasattr(client, name)] == []


def test_an_articulation_has_every_documented_attribute():
    articulation = URLabArticulation("robot")
    assert [name for name in ARTICULATION_ATTRIBUTES.split() if not hasattr(articulation, name)] == []


def test_a_camera_has_every_documented_attribute():
    camera = URLabCameraView("eye", CameraMode.REAL, (640, 480), 45.0)
    assert [name for name in CAMERA_ATTRIBUTES.split() if not hasattr(camera, name)] == []


def assert_accepts(actual: inspect.Signature, documented: str) -> None:
    """Every documented parameter exists with its default and can be passed the documented way; extras are optional."""
    expected = ast.parse(f"def call{documented}: ...").body[0].args  # type: ignore[attr-defined]
    positional = [arg.arg for arg in expected.args]
    required = len(positional) - len(expected.defaults)
    defaults = dict(zip(positional[required:], expected.defaults, strict=True))
    defaults |= {arg.arg: value for arg, value in zip(expected.kwonlyargs, expected.kw_defaults, strict=True)}
    assert [name for name in actual.parameters if name in positional] == positional
    for name in [*positional, *(arg.arg for arg in expected.kwonlyargs)]:
        assert_default(actual.parameters[name], defaults.get(name))
    if expected.kwarg:
        assert actual.parameters[expected.kwarg.arg].kind is inspect.Parameter.VAR_KEYWORD
    extras = set(actual.parameters) - {*positional, *defaults, expected.kwarg.arg if expected.kwarg else ""}
    assert all(actual.parameters[name].default is not inspect.Parameter.empty for name in extras)


def assert_default(parameter: inspect.Parameter, documented: ast.expr | None) -> None:
    if documented is None:
        assert parameter.default is inspect.Parameter.empty
    elif ast.literal_eval(documented) is ...:
        assert parameter.default is not inspect.Parameter.empty
    else:
        assert parameter.default == ast.literal_eval(documented)
