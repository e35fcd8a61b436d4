"""Mutators and readers of a running simulation.

Fields that the protocol checks inside the handler rather than as declared required fields have the default None.
"""

from typing import Any

import msgspec

from urlab_wire.envelope import Name, Reply, Request, TargetedRequest
from urlab_wire.ops.stepping import ModelChange, ModelWrites, StepReply


class SetModeRequest(Request["SetModeReply"], tag="set_mode"):
    """Switch between live, direct and puppet."""

    mode: str | None = None


class SetModeReply(Reply, tag="set_mode_ok"):
    """Both modes, in the caller's vocabulary. ``state`` (extension) is that after the switch, as a step tells it."""

    previous_mode: str
    current_mode: str
    state: StepReply | None = None


class SetPausedRequest(Request["SetPausedReply"], tag="set_paused"):
    """Halt or resume live physics, or the replay that live mode plays."""

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


class SetModelParamsRequest(Request["SetModelParamsReply"], tag="set_model_params"):
    """Change parameters of the model for this play: all of them, or none when one is wrong (extension).

    ``until`` "stop" (the default) keeps them until play stops, "reset" until the next reset.
    """

    changes: list[ModelChange]
    until: str | None = None


class SetModelParamsReply(Reply, tag="set_model_params_ok"):
    """What is in force: compiled names and whole lists of numbers. ``model`` is for copies of the model."""

    changes: list[ModelChange]
    until: str
    model: ModelWrites


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


class PerturbRequest(Request["PerturbReply"], tag="perturb"):
    """Hold a body: push it with a force and a torque, or drag it by a spring (extension).

    ``body`` is a compiled or an unambiguous short name. ``force`` (N) and ``torque`` (N m) are in the world frame. A
    ``target`` (m, world) draws ``point`` there, a ``target_quat`` (w, x, y, z) turns the body there, both as MuJoCo's
    viewer does. ``point`` is on the body, in its own frame; without it the centre of mass is meant. ``stiffness``
    (1/s^2: newtons per metre and kilogram of the mass that is felt there) is the model's, unless given. Held until
    it is released, replaced by another of the same body, or the session ends.
    """

    body: str
    force: list[float] | None = None
    torque: list[float] | None = None
    point: list[float] | None = None
    target: list[float] | None = None
    target_quat: list[float] | None = None
    stiffness: float | None = None


class PerturbReply(Reply, tag="perturb_ok"):
    """The compiled name of the body, its id, and the ``version`` that puppet replies tell."""

    body: str
    body_id: int
    version: int


class ReleasePerturbationRequest(Request["ReleasePerturbationReply"], tag="release_perturbation"):
    """Let go of a body, whichever session holds it, or of all bodies that this session holds (extension)."""

    body: str | None = None


class ReleasePerturbationReply(Reply, tag="release_perturbation_ok"):
    """The compiled names of the bodies that were held until now."""

    released: list[str]


class SetUiControlsRequest(TargetedRequest["SetUiControlsReply"], tag="set_ui_controls"):
    """Write the setpoints of the user interface, which count while the control source is "ui" (extension).

    ``ctrl`` is in actuator order, ``ctrl_map`` by actuator name; what is not named stays.
    """

    ctrl: list[float] | None = None
    ctrl_map: dict[str, float] | None = None


class SetUiControlsReply(Reply, tag="set_ui_controls_ok"):
    """The user interface's setpoints in actuator order, and the control source in force."""

    articulation: str
    setpoints: list[float]
    source: str


class SaveStateRequest(Request["SaveStateReply"], tag="save_state"):
    """Take the whole state of the simulation; with a ``name`` the server keeps it under that name (extension)."""

    name: Name | None = None


class SaveStateReply(Reply, tag="save_state_ok"):
    """The state, for `restore_state` of the same model; ``name`` when it is kept."""

    state: bytes
    time: float
    name: str | None = None


class ListStatesRequest(Request["ListStatesReply"], tag="list_states"):
    """The states that this play keeps (extension)."""


class StateBlock(msgspec.Struct, kw_only=True):
    """One state that is kept: its simulated time in seconds, and its size in bytes."""

    name: str
    time: float
    size: int


class ListStatesReply(Reply, tag="list_states_ok"):
    """In the order in which they were first saved."""

    states: list[StateBlock]


class DeleteStateRequest(Request["DeleteStateReply"], tag="delete_state"):
    """Forget a state that is kept (extension)."""

    name: str


class DeleteStateReply(Reply, tag="delete_state_ok"):
    """``was_found`` is false when there was none of that name."""

    name: str
    was_found: bool


class SetEqualityRequest(Request["SetEqualityReply"], tag="set_equality"):
    """Switch an equality constraint on or off, until it is switched again or the next reset (extension)."""

    name: str
    active: bool


class SetEqualityReply(Reply, tag="set_equality_ok"):
    """Its compiled name, and what is in force."""

    name: str
    active: bool
