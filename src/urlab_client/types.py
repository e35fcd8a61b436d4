"""Typed results and arguments of the namespaces.

Lengths are metres. ``rotation_quat`` is x, y, z, w, ``quat`` is w, x, y, z as in MuJoCo, euler angles are degrees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from urlab_client.results import IDENTITY_XYZW, ShortRepr
from urlab_wire.enums import ExportState, PIEState
from urlab_wire.ops.outliner import ConversionBlock

if TYPE_CHECKING:
    from urlab_client.client import URLabClient
    from urlab_client.handles.articulation import URLabArticulation


Vec3 = tuple[float, float, float]
Vec4 = tuple[float, float, float, float]
Vec6 = tuple[float, float, float, float, float, float]


@dataclass(repr=False)
class URLabAsset(ShortRepr):
    """One actor of ``scene.apply_scene``: a model file (absolute path on the server's machine) and its pose."""

    actor_id: str
    xml: str
    location: Sequence[float] = (0, 0, 0)
    rotation_quat: Sequence[float] | None = None
    rotation_euler: Sequence[float] | None = None
    scale: Sequence[float] = (1, 1, 1)


@dataclass(repr=False)
class URLabBlueprint(ShortRepr):
    """An imported model, ready to spawn. ``imported_now`` says that this call imported it."""

    class_path: str
    short_name: str
    imported_now: bool


@dataclass(repr=False)
class URLabSpawnHandle(ShortRepr):
    """An actor of the level."""

    actor_id: str
    actor_name: str
    actor_path: str
    blueprint_class_path: str
    location: Vec3 = (0.0, 0.0, 0.0)
    rotation_quat: Vec4 = IDENTITY_XYZW
    was_existing: bool = False
    requires_pie_restart: bool = False

    def runtime(self, client: "URLabClient") -> "URLabArticulation | None":
        """The running articulation of this actor, or None while it is not simulated."""
        by_id = client.articulations_by_id.get(self.actor_id) if self.actor_id else None
        return by_id or client.articulations.get(self.actor_name)


@dataclass(repr=False)
class URLabLightHandle(ShortRepr):
    """A light of the level."""

    actor_id: str
    actor_name: str
    actor_path: str
    kind: str
    location: Vec3 = (0.0, 0.0, 0.0)
    rotation_euler: Vec3 = (0.0, 0.0, 0.0)
    intensity: float = 5000.0
    color: Vec3 = (1.0, 1.0, 1.0)
    requires_pie_restart: bool = False


@dataclass(repr=False)
class EditStep(ShortRepr):
    """An edit of the level that was taken back, or made again, and the labels of those that come next, if any."""

    label: str
    can_undo: str | None = None
    can_redo: str | None = None
    requires_pie_restart: bool = False


@dataclass(repr=False)
class LevelInfo(ShortRepr):
    """A level that can be opened; ``shipped`` with the server, or of the project. An extension of ours."""

    name: str
    level_path: str
    shipped: bool


@dataclass(repr=False)
class LevelStatus(ShortRepr):
    """The open level. ``can_undo`` and ``can_redo`` are labels of edits, or None.

    ``unsaved_changes`` is None when the server does not tell (it is an extension of ours, as the labels are).
    """

    level_path: str
    unsaved_changes: bool | None = None
    can_undo: str | None = None
    can_redo: str | None = None


@dataclass(repr=False)
class UploadedAsset(ShortRepr):
    """A file that was uploaded: ``path`` is what `scene.import_xml` takes, ``models`` all models of a zip file."""

    path: str
    models: list[str] = field(default_factory=list)


@dataclass(repr=False)
class PIEStartResult(ShortRepr):
    """How ``sim.start`` ended. ``handshake_payload`` is there on READY, and already absorbed."""

    state: PIEState
    compile_error: str = ""
    handshake_payload: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def is_ready(self) -> bool:
        """Whether the simulation runs."""
        return self.state == PIEState.READY


@dataclass(repr=False)
class ReplayStatus(ShortRepr):
    """What is being replayed.

    What follows ``total_frames`` is an extension of ours: the frame that is shown, from 0, its timestamp in simulated
    seconds, whether frames follow one another by themselves (in live mode), and whether they begin again at the end.
    """

    active_session: str
    total_frames: int = 0
    frame: int = 0
    time: float | None = None
    playing: bool = False
    loop: bool = False


@dataclass(repr=False)
class PIEStatus(ShortRepr):
    """Where the play lifecycle stands; ``sim_time`` in seconds while a simulation runs.

    What follows is there when the server tells it (an extension of ours): the pace of live physics in percent of real
    time, the seed of the last reset that named one, by prefix whose setpoints count, ``zmq`` or ``ui``, and why the
    last step failed, if it did (which pauses live physics), and where a replay stands, while one is active.
    """

    state: PIEState
    compile_error: str = ""
    sim_time: float | None = None
    level: str | None = None
    mode: str | None = None
    paused: bool | None = None
    speed_percent: float | None = None
    seed: int | None = None
    control_source: dict[str, str] | None = None
    physics_error: str | None = None
    replay: ReplayStatus | None = None


@dataclass(repr=False)
class RecordingHandle(ShortRepr):
    """A recording that has begun. ``max_duration_s`` is its rolling window of simulated time."""

    name: str
    max_duration_s: float | None = None


@dataclass(repr=False)
class RecordingSummary(ShortRepr):
    """What a recording holds: one frame per physics step. ``warnings`` tell of a file that does not have all of it."""

    frame_count: int
    sim_duration_s: float
    warnings: list[str] = field(default_factory=list)


@dataclass(repr=False)
class RecordingStatus(ShortRepr):
    """How far the running or the last recording is; ``active`` says whether it runs."""

    active: bool
    name: str
    frame_count: int
    sim_duration_s: float


@dataclass(repr=False)
class RecordingInfo(ShortRepr):
    """A recording that is saved on the server; `URLabReplayAPI.load` takes its ``name``. An extension of ours.

    ``written`` is in seconds since 1970. Frames, simulated seconds and level are there where the beginning of the file
    tells them; ``problem`` says why it cannot be read.
    """

    name: str
    size_bytes: int
    written: float
    format: str
    frame_count: int | None = None
    sim_duration_s: float | None = None
    level: str | None = None
    problem: str | None = None


@dataclass(repr=False)
class ExportStatus(ShortRepr):
    """How far an export is: ``done`` of ``total`` pictures; ``path`` is on the server's machine. An extension of ours.

    ``code`` and ``message`` say why it failed, ``warnings`` what is not as it may have been meant.
    """

    export_id: str
    state: ExportState
    path: Path
    done: int = 0
    total: int = 0
    format: str = ""
    recording: str = ""
    code: str | None = None
    message: str | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def is_unfinished(self) -> bool:
        """Whether it waits for others, or runs."""
        return self.state in (ExportState.WAITING, ExportState.RUNNING)


@dataclass(repr=False)
class LogEntry(ShortRepr):
    """One record of the server's log; ``time`` is in seconds since 1970. An extension of ours.

    Of an op that changed the world, or was to, there are also who called it, the kind of the session, the op, and the
    code of the error if it was refused.
    """

    number: int
    time: float
    level: str
    logger: str
    message: str
    caller: str | None = None
    session: str | None = None
    op: str | None = None
    code: str | None = None


@dataclass(repr=False)
class ReplaySession(ShortRepr):
    """A recording that is loaded for replay."""

    name: str
    total_frames: int = 0
    source_path: Path | None = None


@dataclass(repr=False)
class ActorInfo(ShortRepr):
    """One actor. The fields from ``static`` on describe its quick convert, and are None without one.

    ``conversion`` (extension) says how far a mesh is that is being cut into hulls.
    """

    name: str
    actor_class: str
    actor_id: str
    is_articulation: bool
    has_quick_convert: bool
    location: Vec3
    rotation_quat: Vec4
    is_static_mesh_actor: bool = False
    is_light: bool = False
    static: bool | None = None
    complex_mesh: bool | None = None
    coacd_threshold: float | None = None
    driven_by_unreal: bool | None = None
    friction: Vec3 | None = None
    label: str = ""
    selected: bool = False
    conversion: ConversionBlock | None = None


@dataclass(repr=False)
class BlueprintInfo(ShortRepr):
    """One blueprint of the project."""

    class_path: str
    short_name: str


@dataclass(repr=False)
class ActorBounds(ShortRepr):
    """Axis-aligned box around an actor; ``extents`` are half sizes."""

    actor_name: str
    min: Vec3
    max: Vec3
    center: Vec3
    extents: Vec3


@dataclass(repr=False)
class SceneSnapshotActor(ShortRepr):
    """One actor of a snapshot; ``urlab`` lists the element names of an articulation."""

    name: str
    actor_class: str
    actor_id: str
    label: str
    location: Vec3
    rotation_quat: Vec4
    tags: list[str] = field(default_factory=list)
    urlab: dict[str, Any] | None = None
    selected: bool = False


@dataclass(repr=False)
class SceneSnapshot(ShortRepr):
    """Everything in the level."""

    level_path: str
    in_pie: bool
    actors: list[SceneSnapshotActor] = field(default_factory=list)


@dataclass(repr=False)
class ActorHierarchyNode(ShortRepr):
    """A part of an actor and the parts attached to it."""

    name: str
    actor_class: str
    location: Vec3
    children: list["ActorHierarchyNode"] = field(default_factory=list)


@dataclass(repr=False)
class SimOptions(ShortRepr):
    """The physics options in force on the server, SI units; None where the server did not echo a field."""

    timestep: float | None = None
    gravity: Vec3 | None = None
    wind: Vec3 | None = None
    magnetic: Vec3 | None = None
    density: float | None = None
    viscosity: float | None = None
    impratio: float | None = None
    tolerance: float | None = None
    iterations: int | None = None
    ls_iterations: int | None = None
    integrator: str | None = None
    cone: str | None = None
    solver: str | None = None
    noslip_iterations: int | None = None
    noslip_tolerance: float | None = None
    ccd_iterations: int | None = None
    ccd_tolerance: float | None = None
    enable_multiccd: bool | None = None
    enable_sleep: bool | None = None
    sleep_tolerance: float | None = None
    disableflags: int | None = None
    enableflags: int | None = None
    num_worker_threads: int | None = None


class SimOptionValues(TypedDict, total=False):
    """What ``runtime.set_sim_options`` takes: the fields of `SimOptions`, each of which may be left out."""

    timestep: float | None
    gravity: Sequence[float] | None
    wind: Sequence[float] | None
    magnetic: Sequence[float] | None
    density: float | None
    viscosity: float | None
    impratio: float | None
    tolerance: float | None
    iterations: int | None
    ls_iterations: int | None
    integrator: str | None
    cone: str | None
    solver: str | None
    noslip_iterations: int | None
    noslip_tolerance: float | None
    ccd_iterations: int | None
    ccd_tolerance: float | None
    enable_multiccd: bool | None
    enable_sleep: bool | None
    sleep_tolerance: float | None
    disableflags: int | None
    enableflags: int | None
    num_worker_threads: int | None


@dataclass(repr=False)
class MocapPose(ShortRepr):
    """World pose of a mocap body."""

    body: str
    pos: Vec3
    quat: Vec4


@dataclass(repr=False)
class Contact(ShortRepr):
    """One contact. ``force`` is (fx, fy, fz, tx, ty, tz) in the contact frame; ``dist`` < 0 penetrates."""

    geom1: str
    geom2: str
    body1: str
    body2: str
    pos: Vec3
    normal: Vec3
    dist: float
    force: Vec6


@dataclass(repr=False)
class ContactsResult(ShortRepr):
    """The contacts that were asked for; ``truncated`` says that there were more."""

    n_contacts: int
    truncated: bool
    contacts: list[Contact] = field(default_factory=list)


@dataclass(repr=False)
class KeyframeInfo(ShortRepr):
    """One keyframe; arrays are those of the compiled model, flat."""

    name: str
    time: float
    qpos: list[float] = field(default_factory=list)
    qvel: list[float] = field(default_factory=list)
    ctrl: list[float] = field(default_factory=list)
    mocap_pos: list[float] = field(default_factory=list)
    mocap_quat: list[float] = field(default_factory=list)


@dataclass(repr=False)
class StateInfo(ShortRepr):
    """A state that the server keeps: its simulated time in seconds, and its size in bytes."""

    name: str
    time: float
    size: int


@dataclass(repr=False)
class CameraPose(ShortRepr):
    """The viewport camera. ``rotation_quat`` is x, y, z, w; euler in degrees; ``fov`` horizontal degrees.

    ``camera`` (extension) is the camera of the model that the view looks through, if it does.
    """

    location: Vec3
    rotation_quat: Vec4
    rotation_euler: Vec3
    fov: float
    camera: str | None = None


@dataclass(frozen=True, repr=False)
class SegmentInfo(ShortRepr):
    """One colour of segmentation pictures: ``color`` is (r, g, b) within 0 and 255, ``name`` what it stands for."""

    id: int
    color: tuple[int, int, int]
    name: str

    @property
    def bgra(self) -> tuple[int, int, int, int]:
        """The colour as a pixel of a semantic or instance frame has it."""
        red, green, blue = self.color
        return blue, green, red, 255


@dataclass(repr=False)
class CameraStreaming(ShortRepr):
    """How a camera streams: whether at all, over what, how often a second, and where."""

    streaming: bool
    zmq: bool
    shm: bool
    rate_hz: float
    zmq_endpoint: str | None = None
    zmq_topic: str | None = None
