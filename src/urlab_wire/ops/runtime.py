"""Mutators and readers of a running simulation.

Fields that the protocol checks inside the handler rather than as declared required fields have the default None.
"""

from typing import Any

import msgspec

from urlab_wire.envelope import Reply, Request


class SetModeRequest(Request["SetModeReply"], tag="set_mode"):
    """Switch between live, direct and puppet."""

    mode: str | None = None


class SetModeReply(Reply, tag="set_mode_ok"):
    """Both modes, in the caller's vocabulary."""

    previous_mode: str
    current_mode: str


class SetPausedRequest(Request["SetPausedReply"], tag="set_paused"):
    """Halt or resume live physics."""

    paused: bool


class SetPausedReply(Reply, tag="set_paused_ok"):
    """The state in force."""

    paused: bool


class SetSimSpeedRequest(Request["SetSimSpeedReply"], tag="set_sim_speed"):
    """Pace live physics at this percentage of real time."""

    percent: float


class SetSimSpeedReply(Reply, tag="set_sim_speed_ok"):
    """The percentage in force, within 5 and 100."""

    percent: float


class SetControlSourceRequest(Request["SetControlSourceReply"], tag="set_control_source"):
    """Let actuators follow the wire or the user interface, for one articulation or all."""

    source: str | None = None
    articulation: str | None = None


class SetControlSourceReply(Reply, tag="set_control_source_ok"):
    """``scope`` is global or articulation."""

    source: str
    scope: str
    articulation: str | None = None


class SetTwistRequest(Request["SetTwistReply"], tag="set_twist"):
    """Write a twist command: linear (vx, vy, -) m/s, angular (-, -, yaw rate) rad/s, and action bits."""

    articulation: str | None = None
    linear: list[float] | None = None
    angular: list[float] | None = None
    actions: int | None = None


class SetTwistReply(Reply, tag="set_twist_ok"):
    """The twist in force."""

    articulation: str
    linear: list[float]
    angular: list[float]
    actions: int


class SetQposRequest(Request["SetQposReply"], tag="set_qpos"):
    """Write the qpos of an articulation or of free bodies, or the seven numbers of its free root.

    ``target`` is an actor_id, an actor's name, or the name of one entity.

    ``qvel`` (extension) are the velocities of the same joints; with an empty ``qpos`` they alone are written.
    """

    target: str
    qpos: list[float]
    target_by: str | None = None
    qvel: list[float] | None = None


class SetQposReply(Reply, tag="set_qpos_ok"):
    """The slice that was written."""

    target: str
    actor_name: str
    qpos: list[float]
    free_base_shortcut: bool
    actor_id: str | None = None


class SetMocapPoseRequest(Request["SetMocapPoseReply"], tag="set_mocap_pose"):
    """Move a mocap body, by compiled name; position in metres, quaternion w, x, y, z."""

    body: str
    pos: list[float] | None = None
    quat: list[float] | None = None


class MocapPoseReply(Reply):
    """The pose of a mocap body in the world: metres, and w, x, y, z."""

    body: str
    pos: list[float]
    quat: list[float]


class SetMocapPoseReply(MocapPoseReply, tag="set_mocap_pose_ok"):
    """The pose in force."""


class ReadMocapPoseRequest(Request["ReadMocapPoseReply"], tag="read_mocap_pose"):
    """Read the pose of a mocap body."""

    body: str


class ReadMocapPoseReply(MocapPoseReply, tag="read_mocap_pose_ok"):
    """The pose in force."""


class ContactFilter(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Compiled names, or short ones where they are unique; those that are set must all match.

    A flex counts as a geom and as a body. A key that is none of these is refused.
    """

    body1: str | None = None
    body2: str | None = None
    geom1: str | None = None
    geom2: str | None = None


class GetContactsRequest(Request["GetContactsReply"], tag="get_contacts"):
    """Read the active contacts, 64 unless ``max_contacts`` is another number above 0."""

    max_contacts: int | None = None
    filter: ContactFilter | None = None


class ContactBlock(msgspec.Struct, kw_only=True):
    """One contact; ``force`` is (fx, fy, fz, tx, ty, tz) in the contact frame, ``dist`` < 0 penetrates."""

    geom1: str
    geom2: str
    body1: str
    body2: str
    pos: list[float]
    normal: list[float]
    dist: float
    force: list[float]


class GetContactsReply(Reply, tag="get_contacts_ok"):
    """``n_contacts`` counts those returned; ``truncated`` says that there are more."""

    n_contacts: int
    truncated: bool
    contacts: list[ContactBlock]


class ListKeyframesRequest(Request["ListKeyframesReply"], tag="list_keyframes"):
    """Ask for the keyframes of the compiled model."""


class KeyframeBlock(msgspec.Struct, kw_only=True):
    """One keyframe, arrays in compiled order."""

    name: str
    time: float
    qpos: list[float]
    qvel: list[float]
    ctrl: list[float]
    mocap_pos: list[float]
    mocap_quat: list[float]


class ListKeyframesReply(Reply, tag="list_keyframes_ok"):
    """All keyframes."""

    keyframes: list[KeyframeBlock]


class ConfigureControllerRequest(Request["ConfigureControllerReply"], tag="configure_controller"):
    """Patch the controller of an articulation; empty params only read."""

    articulation: str
    params: dict[str, Any]


class ConfigureControllerReply(Reply, tag="configure_controller_ok"):
    """The full params in force."""

    articulation: str
    params: dict[str, Any]


class SetSimOptionsRequest(Request["SetSimOptionsReply"], tag="set_sim_options"):
    """Patch the physics options; see `urlab_wire.ops.runtime.OPTION_FIELDS`."""

    options: dict[str, Any] | None = None


class SetSimOptionsReply(Reply, tag="set_sim_options_ok"):
    """All options in force."""

    options: dict[str, Any]


OPTION_FIELDS = (
    "timestep", "gravity", "wind", "magnetic", "density", "viscosity", "impratio", "tolerance", "iterations",
    "ls_iterations", "integrator", "cone", "solver", "noslip_iterations", "noslip_tolerance", "ccd_iterations",
    "ccd_tolerance", "enable_multiccd", "enable_sleep", "sleep_tolerance", "disableflags", "enableflags",
    "num_worker_threads",
)  # fmt: skip
"""Every field that set_sim_options accepts."""


class SetCameraModeRequest(Request["SetCameraModeReply"], tag="set_camera_mode"):
    """Choose what a camera sees: real, depth, semantic or instance. An extension."""

    camera: str
    mode: str


class SetCameraModeReply(Reply, tag="set_camera_mode_ok"):
    """The mode in force."""

    camera: str
    mode: str


class CameraStreamOrder(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How a camera shall stream: whether at all, and how often a second."""

    zmq: bool | None = None
    shm: bool | None = None
    rate_hz: float | None = None


class SetCameraStreamingRequest(Request["SetCameraStreamingReply"], tag="set_camera_streaming"):
    """Switch cameras on or off, ``{name: true}`` or ``{name: {"zmq": true, "rate_hz": 10}}``. An extension.

    A camera that is not switched on renders while it has a subscriber. ``true`` or ``false`` instead of names is for
    all cameras, those of scenes to come included: switched off in this way, none streams, not to subscribers either.
    """

    cameras: bool | dict[str, bool | CameraStreamOrder]


class CameraStreamBlock(msgspec.Struct, kw_only=True):
    """One camera's stream."""

    streaming: bool
    zmq: bool
    shm: bool
    rate_hz: float
    zmq_endpoint: str | None
    zmq_topic: str


class SetCameraStreamingReply(Reply, tag="set_camera_streaming_ok"):
    """The cameras that were named, or all; ``all_cameras`` is how all were switched last, absent if they never were."""

    cameras: dict[str, CameraStreamBlock]
    all_cameras: bool | None = None
