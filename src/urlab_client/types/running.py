"""A scene that plays: its lifecycle and log, options, contacts, keyframes, states and cameras.

Lengths are metres. ``rotation_quat`` is x, y, z, w, ``quat`` is w, x, y, z as in MuJoCo, euler angles are degrees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from urlab_client.results import ShortRepr, Vec3, Vec4, Vec6
from urlab_client.types.recording import ReplayStatus
from urlab_wire.enums import PIEState


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
