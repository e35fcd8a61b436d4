"""hello and meta: the two ops that need no session."""

from typing import Any

import msgspec

from urlab_wire.envelope import Reply, Request
from urlab_wire.ops.stepping import StepReply


class HelloRequest(Request["HelloReply"], tag="hello"):
    """Open a session. ``observer`` and ``operator`` (extensions) open one beside the others, which expires none.

    An observer may only look. An operator may do what the plain session may, and leaves it in charge. ``takeover``
    (extension) takes the driver's seat from another caller that uses it. With ``include_model`` false (extension) this
    session's handshakes carry no model.
    """

    observations: str | None = None
    encoding: str | None = None
    include_assets: bool | None = None
    client_version: str | None = None
    observer: bool | None = None
    operator: bool | None = None
    takeover: bool | None = None
    include_model: bool | None = None


class CameraTopic(msgspec.Struct, kw_only=True):
    """Where a camera's frames are streamed, and what they are."""

    mode: str
    resolution: tuple[int, int]
    fovy: float
    zmq_endpoint: str | None
    zmq_topic: str | None


class GlobalCameraTopic(CameraTopic, kw_only=True):
    """That of a camera which no articulation owns; ``short_name`` (extension) is the one in its own model file."""

    short_name: str | None = None


class OriginalNames(msgspec.Struct, kw_only=True):
    """Live short name -> name in the source XML, where the two differ."""

    actuators: dict[str, str]
    joints: dict[str, str]
    sensors: dict[str, str]
    bodies: dict[str, str]


class ControllerBlock(msgspec.Struct, kw_only=True):
    """The controller of an articulation: kind, current params, and what params may be."""

    kind: str
    params: dict[str, Any]
    schema: dict[str, Any]


class ArticulationBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the compiled model cannot carry about one articulation."""

    prefix: str
    actor_id: str
    default_control_mode: str
    actuator_types: dict[str, str]
    original_names: OriginalNames
    camera_topics: dict[str, CameraTopic]
    controller: ControllerBlock | None = None
    setpoints: list[float] | None = None
    """The setpoints in force, in actuator order (extension)."""
    control_source: str | None = None
    """Whose setpoints count: ``zmq`` or ``ui`` (extension)."""


class EntityBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One body outside the articulations' own. The offsets exist for free bodies only."""

    id: int
    has_free_base: bool
    free_joint: str | None = None
    free_joint_id: int | None = None
    qpos_offset: int | None = None
    qvel_offset: int | None = None


class RenderingBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How cameras are drawn: the profile and what draws. ``problem`` says why nothing can be drawn, if so."""

    profile: str
    renderer: str | None = None
    problem: str | None = None


class SegmentBlock(msgspec.Struct, kw_only=True):
    """One colour of a segmentation picture: (r, g, b) in 0..255, and what it stands for."""

    id: int
    color: list[int]
    name: str


class StreamsBlock(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Where the live streams are, and what they have done so far: counters by socket, those of cameras by name."""

    state: str | None = None
    control: str | None = None
    info: str | None = None
    counters: dict[str, dict[str, Any]] | None = None


class HelloReply(Reply, tag="hello_ok"):
    """The handshake. Without a running simulation only the fields up to ``shm_session_dir`` are there."""

    session_id: str
    urlab_version: str
    mujoco_version_int: int
    mujoco_version: str
    manager_present: bool
    articulations: list[ArticulationBlock]
    shm_session_dir: str | None = None
    mjb: bytes | None = None
    mjcf_compiled: str | None = None
    vfs_assets: dict[str, bytes] | None = None
    entities: dict[str, EntityBlock] | None = None
    global_cameras: dict[str, GlobalCameraTopic] | None = None
    state: StepReply | None = None
    """The state at this moment, as a step would report it (extension)."""
    rendering: RenderingBlock | None = None
    """An extension, as are the two below."""
    segmentation: dict[str, list[SegmentBlock]] | None = None
    streams: StreamsBlock | None = None
    warnings: list[str] | None = None
    step_mode: str | None = None
    """The step mode in force (extension)."""
    camera_modes: dict[str, str] | None = None
    """The camera modes of plugins, and the name of their `PixelFormat` (extension)."""


class MetaRequest(Request["MetaReply"], tag="meta"):
    """Ask for the op catalogue."""


class OpEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One op of the catalogue. Field lists are absent when empty; ``served`` (extension) says if a handler is there."""

    name: str
    category: str
    namespace: str
    required_fields: list[str] | None = None
    reply_fields: list[str] | None = None
    served: bool | None = None


class MetaReply(Reply, tag="meta_ok"):
    """The live op catalogue; hello and meta themselves are not in it."""

    ops: list[OpEntry]
