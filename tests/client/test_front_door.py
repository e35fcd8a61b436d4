import urlab_client
from urlab_client import CameraMode, URLabArticulation, URLabCameraView, URLabClient

NAMES = """
ActorBounds ActorHierarchyNode ActorInfo Actuator ActuatorType BlueprintInfo Body CameraFrame CameraMode CameraPose
CameraStreaming CameraTiming Contact ContactsResult ControlMode ControlSource ControllerKind ExportState ExportStatus
InProcessTransport Joint KeyframeInfo LightKind LogEntry MocapPose ObservationLevel PIEStartResult PIEState
PIEStatus RecordingHandle RecordingInfo RecordingStatus
RecordingSummary ReplaySession ReplayStatus SceneSnapshot SceneSnapshotActor SegmentInfo Sensor SimOptions SpaceMode
StateInfo StepMode Transport URLabArticulation URLabAsset URLabBlueprint URLabCameraView URLabClient URLabController
URLabEntity
URLabLightHandle URLabPDController URLabPIEError URLabRPCError URLabRecordingAPI URLabReplayAPI URLabSpawnHandle
URLabTimeoutError URLabVersionMismatch ZmqTransport
AsyncURLabClient EditStep LevelInfo LevelStatus NamedTable UploadedAsset
StateFull URLabControllerError URLabGoneError URLabLookupError URLabLocalEditWarning URLabModeWarning
URLabValueError
"""

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


def test_a_client_has_every_documented_attribute_before_it_discovers():
    client = URLabClient()
    assert [name for name in CLIENT_ATTRIBUTES.split() if not hasattr(client, name)] == []


def test_an_articulation_has_every_documented_attribute():
    articulation = URLabArticulation("robot")
    assert [name for name in ARTICULATION_ATTRIBUTES.split() if not hasattr(articulation, name)] == []


def test_a_camera_has_every_documented_attribute():
    camera = URLabCameraView("eye", CameraMode.REAL, (640, 480), 45.0)
    assert [name for name in CAMERA_ATTRIBUTES.split() if not hasattr(camera, name)] == []
