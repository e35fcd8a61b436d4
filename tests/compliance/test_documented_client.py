"""Every public name of the client reference, with the line that documents it.

A row is ``<line> <what it says>``. Calls are compared with the signature, attributes are read from a client of a
running scene (the level arena, in direct mode, after a step at level full with a camera), and none is skipped.
"""

import ast
import contextlib
import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
import pytest

import urlab_client
from urlab_client import InProcessTransport, URLabClient

CALLS = """
22 URLabClient(address="tcp://localhost", *, step_mode="auto", step_port=5559, state_port=5555, ctrl_port=5556, info_port=5557, mujoco_version_check=True, local_model=True, rcv_timeout_ms=5000, auto_promote_step_mode=True, transport="zmq", shm_dir=None)
47 client.discover(observations="standard")
59 client.close()
106 client.step(n_steps=1, *, include_cameras=False, observations="standard")
107 client.reset(keyframe_name=None, seed=None, per_articulation_qpos=None)
135 client.scene.create_level(name, *, force_overwrite=False) -> None
136 client.scene.load_level(name_or_path) -> None
137 client.scene.save_level() -> None
138 client.scene.import_xml(xml_path, *, force_reimport=False) -> URLabBlueprint
139 client.scene.spawn_actor(blueprint, actor_id, *, location=..., rotation_quat=..., rotation_euler=..., scale=...) -> URLabSpawnHandle
140 client.scene.spawn_light(kind="directional", actor_id="", *, location=..., rotation_euler=..., intensity=5000.0, color=...) -> URLabLightHandle
141 client.scene.destroy_actor(target, *, by_name=False) -> None
142 client.scene.set_actor_transform(target, *, by_name=False, location=None, rotation_quat=None, rotation_euler=None) -> None
143 client.scene.destroy_asset(asset_path) -> bool
144 client.scene.current_level() -> str
145 client.scene.ensure_manager() -> bool
146 client.scene.snapshot() -> SceneSnapshot
147 client.scene.duplicate_actor(target, new_actor_id, *, by_name=False, location=None) -> URLabSpawnHandle
148 client.scene.actor_hierarchy(target, *, by_name=False) -> ActorHierarchyNode
149 client.scene.spawn_grid(blueprint, base_actor_id, count_x, count_y, *, spacing=(1, 1, 0), origin=(0, 0, 0), rotation_quat=None, rotation_euler=None, scale=(1, 1, 1)) -> dict[str, URLabSpawnHandle]
150 client.scene.apply_scene(level_name, assets, *, save=True) -> dict[str, URLabSpawnHandle]
162 client.sim.start(level_path=None, *, timeout_s=30.0, raise_on_failure=True) -> PIEStartResult
163 client.sim.stop() -> None
164 client.sim.status() -> PIEStatus
170 client.runtime.set_paused(paused) -> bool
171 client.runtime.set_sim_speed(percent) -> float
172 client.runtime.set_control_source(source, *, articulation=None) -> None
173 client.runtime.set_twist(articulation, *, linear=(0, 0, 0), angular=(0, 0, 0)) -> None
174 client.runtime.set_qpos(target, qpos, *, by_name=False) -> None
175 client.runtime.set_mocap_pose(body, *, pos=None, quat=None) -> MocapPose
176 client.runtime.read_mocap_pose(body) -> MocapPose
177 client.runtime.get_contacts(*, body1=None, body2=None, geom1=None, geom2=None, max_contacts=64) -> ContactsResult
178 client.runtime.list_keyframes() -> list[KeyframeInfo]
179 client.runtime.set_sim_options(**opts) -> SimOptions
180 client.runtime.set_mode(mode) -> StepMode
181 client.runtime.forward() -> dict
191 client.outliner.list_actors() -> list[ActorInfo]
192 client.outliner.list_blueprints() -> list[BlueprintInfo]
193 client.outliner.find_actors(*, class_filter=None, tag=None, name_prefix=None, in_pie=False) -> list[ActorInfo]
194 client.outliner.get_actor_bounds(target, *, by_name=False, components_only=False) -> ActorBounds
195 client.outliner.select_actor(target, *, by_name=False) -> None
196 client.outliner.add_quick_convert(target, *, by_name=False, static=False, complex_mesh=False, coacd_threshold=0.05, driven_by_unreal=False, friction=(1, 1, 1)) -> None
197 client.outliner.remove_quick_convert(target, *, by_name=False) -> None
203 client.debug.draw_marker(location, color, *, ttl=0.0, label=None, tag=None) -> None
204 client.debug.draw_line(from_, to, color, *, ttl=0.0, thickness=1.0, tag=None) -> None
205 client.debug.draw_box(center, half_extents, color, *, rotation_quat=None, ttl=0.0, tag=None) -> None
206 client.debug.draw_arrow(from_, to, color, *, ttl=0.0, thickness=1.0, arrow_size=None, tag=None) -> None
207 client.debug.draw_axes(location, *, rotation_quat=None, rotation_euler=None, scale=0.2, ttl=0.0, tag=None) -> None
208 client.debug.clear_markers(*, tag=None) -> None
209 client.debug.set_overlay_text(text, *, anchor="top_left") -> None
215 client.viewport.set_camera(location, *, rotation_quat=None, rotation_euler=None, fov=None) -> CameraPose
216 client.viewport.get_camera() -> CameraPose
217 client.viewport.frame_actor(target, *, by_name=False) -> CameraPose
218 client.viewport.set_mode(mode) -> str
219 client.viewport.track_actor(target, *, by_name=False, offset=None, smoothing=0.0) -> str
220 client.viewport.untrack() -> bool
226 client.recording.start(name=None, max_duration_s=None) -> RecordingHandle
227 client.recording.stop() -> RecordingSummary
228 client.recording.save(path=None) -> Path
229 client.recording.clear() -> None
235 client.replay.load(path) -> ReplaySession
236 client.replay.list_sessions() -> list[str]
237 client.replay.set_active(name) -> None
238 client.replay.start() -> ReplayStatus
239 client.replay.stop() -> None
240 client.replay.play(path_or_name, *, loop=False) -> ReplaySession
287 arm.apply_xfrc(body, force=..., torque=...)
287 crate.apply_xfrc(force=..., torque=...)
327 arm.set_ctrl(values)
328 arm.get_ctrl() -> dict[str, float]
329 arm.get_qpos() -> dict[str, float]
330 arm.get_sensors() -> dict
334 arm.resolve_joint(name)
335 arm.resolve_actuator(name)
351 actuator.set_control(v)
401 controller.configure(**kwargs) -> dict[str, Any]
402 controller.refresh() -> dict[str, Any]
412 controller.set_gains(kp=None, kv=None, torque_limit=None) -> dict
413 controller.set_defaults(kp=None, kv=None, torque_limit=None) -> dict
480 handle.runtime(client)
620 URLabRPCError(code, message, *, op=None)
622 URLabPIEError(*, code, message, state)
"""  # noqa: E501

VALUES = """
84 client.session_id str
85 client.urlab_version str
86 client.mujoco_version str
87 client.manager_present bool
88 client.model MjModel
89 client.data MjData
90 client.articulations dict[URLabArticulation]
91 client.articulations_by_id dict[URLabArticulation]
92 client.entities dict[URLabEntity]
93 client.global_cameras dict[URLabCameraView]
94 client.recording URLabRecordingAPI
94 client.replay URLabReplayAPI
95 client.step_count int
96 client.sim_time float
98 client.sim_time_sec int
98 client.sim_time_nsec int
98 client.wall_time_sec int
98 client.wall_time_nsec int
98 client.recv_wall_time_ns int
102 client._data_lock RLock
231 client.recording.is_active bool
231 client.recording.frame_count int
231 client.recording.sim_duration float
231 client.recording.last_saved_path Path|None
242 client.replay.active_session str|None
248 arm URLabEntity
256 crate URLabEntity
257 crate.root_pos_w float[3]
258 crate.root_quat_w float[4]
259 crate.has_free_base bool
260 crate.free_joint str
261 crate.qpos_offset int
262 crate.qvel_offset int
268 goal.qpos_offset None
268 goal.qvel_offset None
278 walker.root_pos_w float[3]
279 walker.root_quat_w float[4]
280 walker.root_quat_xyzw float[4]
281 walker.root_lin_vel_w float[3]
282 walker.root_ang_vel_w float[3]
283 walker.root_ang_vel_b float[3]
284 walker.root_lin_vel_b float[3]
285 walker.projected_gravity_b float[3]
297 arm.actuators dict[Actuator]
298 arm.joints dict[Joint]
299 arm.sensors dict[Sensor]
300 arm.bodies dict[Body]
301 arm.cameras dict[URLabCameraView]
305 arm.prefix str
306 arm.actor_id str
307 arm.body_id int
308 arm.has_free_base bool
309 walker.free_joint str
309 arm.free_joint None
310 arm.control_mode ControlMode
311 arm.controller None
311 walker.controller URLabController
315 arm.ctrl_array float[2]
316 arm.last_applied_ctrl float[2]
317 arm.act_array float[2]
318 walker.qpos_array float[13]
319 walker.qvel_array float[11]
320 walker.twist_linear float[3]
321 walker.twist_angular float[3]
322 walker.dof_qpos float[6]
323 walker.dof_qvel float[5]
341 actuator.name str
342 actuator.id int
343 actuator.type ActuatorType
344 actuator.joint str
345 actuator.ctrlrange None
346 actuator.forcerange None
347 actuator.kp float
348 actuator.kv float
349 actuator.force float
352 actuator.value float
356 joint.name str
357 joint.id int
358 joint.jnt_type int
359 joint.qpos_offset int
360 joint.qpos_local_offset int
361 joint.qvel_offset int
361 joint.qvel_local_offset int
362 joint.range tuple
366 sensor.name str
367 sensor.id int
368 sensor.dim int
369 sensor.latest float[1]
373 body.name str
374 body.id int
375 body.xpos float[3]
376 body.xquat float[4]
380 controller URLabPDController
396 controller.articulation_prefix str
397 controller.kind ControllerKind
398 controller.params dict
399 controller.schema dict
410 controller.kp Mapping
410 controller.kv Mapping
410 controller.torque_limit Mapping
427 camera.name str
428 camera.mode CameraMode
429 camera.resolution tuple
430 camera.fovy float
431 camera.dtype dtype
432 camera.latest_frame uint8[48, 64, 4]
433 camera.sim_time float
500 result.is_ready bool
"""

DATACLASSES = """
449 URLabAsset(actor_id, xml, location=(0, 0, 0), rotation_quat=None, rotation_euler=None, scale=(1, 1, 1))
462 URLabBlueprint(class_path, short_name, imported_now)
470 URLabSpawnHandle(actor_id, actor_name, actor_path, blueprint_class_path, location=(0, 0, 0), rotation_quat=(0, 0, 0, 1), was_existing=False, requires_pie_restart=False)
494 PIEStartResult(state, compile_error="", handshake_payload=None)
509 SimOptions(timestep=None, gravity=None, wind=None, magnetic=None, density=None, viscosity=None, impratio=None, tolerance=None, iterations=None, ls_iterations=None, integrator=None, cone=None, solver=None, noslip_iterations=None, noslip_tolerance=None, ccd_iterations=None, ccd_tolerance=None, enable_multiccd=None, enable_sleep=None, sleep_tolerance=None)
534 ActorInfo(name, actor_class, actor_id, is_articulation, has_quick_convert, location, rotation_quat, is_static_mesh_actor=False, is_light=False, static=None, complex_mesh=None, coacd_threshold=None, driven_by_unreal=None, friction=None)
556 KeyframeInfo(name, time, qpos, qvel, ctrl, mocap_pos, mocap_quat)
570 Contact(geom1, geom2, body1, body2, pos, normal, dist, force)
578 ContactsResult(n_contacts, truncated, contacts)
588 MocapPose(body, pos, quat)
596 RecordingSummary(frame_count, sim_duration_s)
601 ReplayStatus(active_session, total_frames=0)
"""  # noqa: E501

ENUMS = """
502 PIEState READY COMPILE_FAILED TIMEOUT OFF COMPILING
609 StepMode AUTO DIRECT PUPPET LIVE
610 ControlMode UE_CONTROLLER RAW
611 ActuatorType MOTOR POSITION VELOCITY INT_VELOCITY DAMPER CYLINDER MUSCLE ADHESION DC_MOTOR
612 ControllerKind PD PASSTHROUGH
613 CameraMode REAL DEPTH SEMANTIC INSTANCE
614 CameraTiming SYNC LATEST
615 ObservationLevel MINIMAL STANDARD FULL
"""

NAMES = """
11 URLabClient
34 Transport
139 URLabSpawnHandle
140 URLabLightHandle
146 SceneSnapshot
148 ActorHierarchyNode
164 PIEStatus
192 BlueprintInfo
194 ActorBounds
215 CameraPose
226 RecordingHandle
235 ReplaySession
248 URLabArticulation
248 URLabEntity
297 Actuator
298 Joint
299 Sensor
300 Body
301 URLabCameraView
394 URLabController
406 URLabPDController
444 URLabAsset
444 URLabBlueprint
485 PIEStartResult
485 PIEState
486 SimOptions
486 ActorInfo
619 URLabRPCError
621 URLabVersionMismatch
622 URLabPIEError
"""

NOT_THERE = """
185 client.runtime.set_gains
"""


def rows(table: str) -> list[Any]:
    """(what,) of each line, named after its line number."""
    split = [line.partition(" ") for line in table.strip().splitlines()]
    return [pytest.param(what, id=f"002:{line} {what.partition('(')[0]}") for line, _, what in split]


@pytest.fixture(scope="module")
def scene(server: Any) -> Iterator[dict[str, Any]]:
    """The objects that rows begin with, after a step at level full with a picture."""
    client = URLabClient(transport=InProcessTransport(server.dispatcher.handle), step_mode="direct")
    with contextlib.closing(client):
        client.discover("full")
        client.sim.start("arena")
        client.runtime.set_mode("direct")
        client.step(3, include_cameras=True)
        arm, walker = client.articulations["arm"], client.articulations["walker"]
        yield {
            "client": client, "arm": arm, "walker": walker, "controller": walker.controller,
            "crate": client.entities["crate"], "goal": client.entities["goal"], "actuator": arm.actuators["bend"],
            "joint": arm.joints["shoulder"], "sensor": arm.sensors["angle"], "body": arm.bodies["fore"],
            "camera": arm.cameras["eye"], "handle": urlab_client.URLabSpawnHandle("arm_0", "arm", "", ""),
            "result": urlab_client.PIEStartResult(urlab_client.PIEState.READY),
        }  # fmt: skip


def found(scene: dict[str, Any], path: str) -> Any:
    """What a dotted path leads to, from an object of the scene or a name of the package."""
    first, *rest = path.split(".")
    value = scene[first] if first in scene else getattr(urlab_client, first)
    for name in rest:
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("row", [*rows(CALLS), *rows(DATACLASSES)])
def test_every_call_has_its_signature(scene: dict[str, Any], row: str) -> None:
    path, _, arguments = row.partition("(")
    signature = inspect.signature(found(scene, path))
    assert_accepts(signature, f"({arguments}")
    assert_returns(signature, f"({arguments}")


@pytest.mark.parametrize("row", rows(DATACLASSES))
def test_every_data_class_is_one(row: str) -> None:
    assert dataclasses.is_dataclass(getattr(urlab_client, row.partition("(")[0]))


@pytest.mark.parametrize("row", rows(VALUES))
def test_every_attribute_has_its_type(scene: dict[str, Any], row: str) -> None:
    path, _, wanted = row.partition(" ")
    value = found(scene, path)
    assert any(fits(value, one) for one in wanted.split("|")), repr(value)


@pytest.mark.parametrize("row", rows(ENUMS))
def test_every_enum_has_its_words_as_strings(row: str) -> None:
    name, *members = row.split()
    enum = getattr(urlab_client, name)
    assert issubclass(enum, str)
    assert issubclass(enum, Enum)
    assert set(members) <= set(enum.__members__)


@pytest.mark.parametrize("row", rows(NAMES))
def test_every_name_can_be_imported(row: str) -> None:
    assert row in urlab_client.__all__


@pytest.mark.parametrize("row", rows(NOT_THERE))
def test_what_the_reference_says_is_not_there_is_not(scene: dict[str, Any], row: str) -> None:
    path, _, name = row.rpartition(".")
    assert not hasattr(found(scene, path), name)


def test_what_is_documented_to_be_set_can_be_set(scene: dict[str, Any]) -> None:
    """002:390 the control mode, by word; 002:18 a client closes at the end of a ``with``."""
    walker = scene["walker"]
    walker.control_mode = "raw"
    assert walker.control_mode is urlab_client.ControlMode.RAW
    walker.control_mode = "ue_controller"
    with URLabClient() as client:
        assert repr(client).endswith("no session)")
    assert repr(client).endswith("closed)")


def fits(value: Any, wanted: str) -> bool:
    """``None``, a class by name, ``dict[values]``, or an array as ``dtype[shape]``."""
    kind, _, inside = wanted.partition("[")
    if kind == "None":
        return value is None
    if kind == "dict" and inside:
        return isinstance(value, dict) and all(fits(one, inside.rstrip("]")) for one in value.values())
    if inside:
        shape = tuple(int(one) for one in inside.rstrip("]").split(","))
        return isinstance(value, np.ndarray) and value.shape == shape and value.dtype.name.startswith(kind)
    return kind in {one.__name__ for one in type(value).__mro__}


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
    optional = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    assert all(
        actual.parameters[name].default is not inspect.Parameter.empty or actual.parameters[name].kind in optional
        for name in extras
    )


def assert_returns(actual: inspect.Signature, documented: str) -> None:
    """The annotation is the documented type, or says more about it; modules do not count."""
    expected = ast.parse(f"def call{documented}: ...").body[0].returns  # type: ignore[attr-defined]
    if expected is not None:
        annotated = re.sub(r"[\w.]+\.", "", inspect.formatannotation(actual.return_annotation))
        assert annotated.startswith(ast.unparse(expected))


def assert_default(parameter: inspect.Parameter, documented: ast.expr | None) -> None:
    if documented is None:
        return  # it is passed, and need not be
    if ast.literal_eval(documented) is ...:
        assert parameter.default is not inspect.Parameter.empty
    else:
        assert parameter.default == ast.literal_eval(documented)
