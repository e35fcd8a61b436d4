"""What a client knows of the scene: the local model, the handles and the clocks."""

import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import mujoco

from urlab_client.enums import StepMode
from urlab_client.errors import URLabVersionMismatch, listed
from urlab_client.handles import build
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.entity import URLabEntity
from urlab_client.lookup import FixedTable, NamedTable
from urlab_client.mirror import LocalData
from urlab_client.rpc import read_reply
from urlab_client.types import SegmentInfo
from urlab_wire.codec import Tree
from urlab_wire.enums import declare_camera_mode
from urlab_wire.ops.session import HelloReply, SegmentBlock
from urlab_wire.pixels import PixelFormat

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

_PUPPET = StepMode.PUPPET

_log = logging.getLogger(__name__)


class Clocks:
    """The counters and clocks of the last reply. They stand apart because every step writes all of them."""

    __slots__ = (
        "recv_wall_time_ns", "sim_time", "sim_time_nsec", "sim_time_sec", "step_count", "wall_time_nsec",
        "wall_time_sec",
    )  # fmt: skip

    def __init__(self) -> None:
        self.step_count = 0
        self.sim_time = 0.0
        self.sim_time_sec = self.sim_time_nsec = 0
        self.wall_time_sec = self.wall_time_nsec = 0
        self.recv_wall_time_ns = 0

    def absorb(self, reply: Tree) -> None:
        """Take those of a reply; what it leaves out stays."""
        self.recv_wall_time_ns = time.time_ns()
        self.sim_time = reply.get("time", self.sim_time)
        self.step_count = reply.get("step", self.step_count)
        sim, wall = reply.get("sim_time"), reply.get("wall_time")
        if sim:
            self.sim_time_sec, self.sim_time_nsec = sim["sec"], sim["nsec"]
        if wall:
            self.wall_time_sec, self.wall_time_nsec = wall["sec"], wall["nsec"]


class SceneState(LocalData):
    """The read-only attributes of a client, built by handshakes and kept current by step replies."""

    def __init__(self, step_mode: StepMode, *, local_model: bool, mujoco_version_check: bool) -> None:
        super().__init__()
        self._step_mode = step_mode
        self._local_model = local_model
        self._mujoco_version_check = mujoco_version_check
        self._urlab_version = ""
        self._mujoco_version = ""
        self._manager_present = False
        self._shm_session_dir: str | None = None
        self._known = build.KnownHandles()
        self._segmentation: dict[str, list[SegmentInfo]] = {}
        self._rendering: Tree = {}
        self._streams: Tree = {}
        self._clocks = Clocks()
        none = "none yet: call discover() first"
        self._use_handles({}, {}, build.CameraTable("camera", empty=none), none)

    # -- what a handshake tells -----------------------------------------------------------------------------------

    @property
    def step_mode(self) -> StepMode:
        """The step mode in force for this client: before ``discover()`` and beside the driving session the one asked
        for, then the server's. ``runtime.set_mode`` changes it."""
        return self._step_mode

    @property
    def local_model(self) -> bool:
        """Whether handshakes load the compiled model into ``model`` and ``data``."""
        return self._local_model

    @property
    def mujoco_version_check(self) -> bool:
        """Whether a server with another MuJoCo version is refused."""
        return self._mujoco_version_check

    @property
    def urlab_version(self) -> str:
        """The server's version; empty before ``discover()``."""
        return self._urlab_version

    @property
    def mujoco_version(self) -> str:
        """The server's MuJoCo version; empty before ``discover()``."""
        return self._mujoco_version

    @property
    def manager_present(self) -> bool:
        """Whether a simulation runs, as far as this client's own calls show it."""
        return self._manager_present

    @property
    def shm_session_dir(self) -> str | None:
        """The folder of the server's shared memory; None without any."""
        return self._shm_session_dir

    @property
    def articulations(self) -> NamedTable[URLabArticulation]:
        """The robots by prefix."""
        return self._articulations

    @property
    def articulations_by_id(self) -> NamedTable[URLabArticulation]:
        """The robots that have an actor_id, by that."""
        return self._articulations_by_id

    @property
    def entities(self) -> NamedTable[URLabEntity]:
        """Every dynamic body by compiled name, the articulations included."""
        return self._entities

    @property
    def global_cameras(self) -> NamedTable[URLabCameraView]:
        """The cameras that no articulation owns, by name, or by their short name where only one has it."""
        return self._global_cameras

    @property
    def segmentation(self) -> dict[str, list[SegmentInfo]]:
        """The colours of segmentation pictures by camera mode (extension)."""
        return self._segmentation

    @property
    def rendering(self) -> Tree:
        """How the server draws: profile, renderer, problem (extension); empty where the handshake does not tell."""
        return self._rendering

    @property
    def streams(self) -> Tree:
        """Where the server streams, and its counters, as of the last handshake (extension)."""
        return self._streams

    # -- what every reply tells -----------------------------------------------------------------------------------

    @property
    def step_count(self) -> int:
        """Steps since ``discover()`` or the last reset, 0 until the first step; pushes in puppet mode."""
        return self._clocks.step_count

    @property
    def sim_time(self) -> float:
        """The server's simulated time, seconds."""
        return self._clocks.sim_time

    @property
    def sim_time_sec(self) -> int:
        """The whole seconds of the simulated time, split as ROS does."""
        return self._clocks.sim_time_sec

    @property
    def sim_time_nsec(self) -> int:
        """The nanoseconds beyond ``sim_time_sec``."""
        return self._clocks.sim_time_nsec

    @property
    def wall_time_sec(self) -> int:
        """The server's wall clock at the last reply, whole seconds since the epoch."""
        return self._clocks.wall_time_sec

    @property
    def wall_time_nsec(self) -> int:
        """The nanoseconds beyond ``wall_time_sec``."""
        return self._clocks.wall_time_nsec

    @property
    def recv_wall_time_ns(self) -> int:
        """This machine's wall clock when the last reply came, nanoseconds since the epoch; 0 before."""
        return self._clocks.recv_wall_time_ns

    # -- handshakes -----------------------------------------------------------------------------------------------

    def _apply_handshake(self, reply: Tree) -> None:
        """Renew everything from a handshake. Raises `URLabVersionMismatch`, `UnreadableModelError`."""
        hello = read_hello(reply)
        self._check_version(hello)
        for word, pixels in (hello.camera_modes or {}).items():
            declare_camera_mode(word, PixelFormat[pixels])
        with self._data_lock:
            self._urlab_version, self._mujoco_version = hello.urlab_version, hello.mujoco_version
            self._manager_present = hello.manager_present
            self._shm_session_dir = hello.shm_session_dir
            self._segmentation = _segmentation(hello.segmentation or {})
            self._rendering, self._streams = dict(reply.get("rendering") or {}), dict(reply.get("streams") or {})
            self._build_handles(hello, self._load_model(hello))
            self._absorb_first_state(reply.get("state"))
            self._seed_setpoints(build.setpoints_of(hello))

    def _absorb_first_state(self, state: Tree | None) -> None:
        """Show the state that the server is in, of which this session has made no step yet."""
        if state:
            self._absorb_step_reply(state, authoritative=True)
        self._clocks.step_count = 0

    def _check_version(self, hello: HelloReply) -> None:
        if not build.is_foreign(hello):
            return
        mismatch = URLabVersionMismatch(hello.mujoco_version, mujoco.__version__)
        if self._mujoco_version_check:
            raise mismatch
        warnings.warn(str(mismatch), stacklevel=4)

    def _load_model(self, hello: HelloReply) -> mujoco.MjModel | None:
        """Renew the local mirror; returns the model to build the handles from, which may be all that it is for."""
        if not self._local_model:
            self._renew_data(None)
            return self._load_for_handles(hello)
        model = build.load_model(hello)
        if model is not None or not self._manager_present:
            self._renew_data(model)
        return self._model

    def _load_for_handles(self, hello: HelloReply) -> mujoco.MjModel | None:
        try:
            return build.load_model(hello)
        except build.UnreadableModelError as unreadable:
            warnings.warn(f"{unreadable}; articulations have no parts (joints, actuators, ...)", stacklevel=5)
            return None

    def _build_handles(self, hello: HelloReply, model: mujoco.MjModel | None) -> None:
        client = cast("URLabClient", self)
        articulations = build.build_articulations(hello, model, client, self._known)
        plain = build.build_entities(hello, client, self._known)
        here = "none in this scene" if self._manager_present else "none: nothing plays, call sim.start()"
        cameras = build.build_cameras(hello.global_cameras or {}, self._data_lock, self._known, empty=here)
        self._use_handles(articulations, plain, cameras, here)
        reason = f"it is not in the scene that plays now; there are {listed(list(self._entities)) or 'no robots'}"
        away = reason if self._manager_present else "nothing plays now: call sim.start(), then use it again"
        self._known.keep(articulations, plain, self._camera_views(), away)
        if model is not None and not self._local_model:
            build.remember_initial_state(model, articulations.values(), self._plain_entities)
        self._mirror_into_data(list(articulations.values()), self._plain_entities)

    def _use_handles(
        self,
        articulations: Mapping[str, URLabArticulation],
        plain: Mapping[str, URLabEntity],
        cameras: build.CameraTable,
        empty: str,
    ) -> None:
        self._articulations = FixedTable("articulation", articulations, empty=empty)
        by_id = {one.actor_id: one for one in articulations.values() if one.actor_id}
        self._articulations_by_id = FixedTable("articulation of the actor_id", by_id, empty=empty)
        self._plain_entities = list(plain.values())
        both: dict[str, URLabEntity] = {**plain, **articulations}
        self._entities = FixedTable("entity", both, empty=empty)
        self._global_cameras: NamedTable[URLabCameraView] = cameras
        self._camera_keys = build.camera_keys(self._camera_views())

    def _camera_views(self) -> list[URLabCameraView]:
        """Every camera there is."""
        owned = [view for one in self._articulations.values() for view in one.cameras.values()]
        return [*self._global_cameras.values(), *owned]

    def _absorb_step_reply(self, reply: Tree, *, authoritative: bool = False) -> None:
        """Take over a reply of step, reset or forward.

        In puppet mode the local data leads and only a drag is taken over, unless the reply is ``authoritative``.
        """
        with self._data_lock:
            self._clocks.absorb(reply)
            self._absorb_observations(reply)
            if authoritative or self._step_mode is not _PUPPET:
                self._take_state(reply, at_once=authoritative)
            else:
                held = reply.get("perturbation")
                self._take_local_step(reply.get("perturbations") or ([held] if held else []))
            cameras = reply.get("cameras")
            if cameras:
                self._absorb_frames(cameras)
        for text in reply.get("warnings") or ():
            _log.warning("the server warns: %s", text)

    def _absorb_frames(self, frames: Mapping[str, Tree]) -> None:
        for key, payload in frames.items():
            if key in self._camera_keys:
                self._camera_keys[key].absorb(payload, self._clocks.sim_time)

    def _seed_setpoints(self, setpoints: Mapping[str, Sequence[float]]) -> None:
        """Let the buffers begin with what is in force on the server; a puppet's own ``data.ctrl`` as well."""
        for prefix, values in setpoints.items():
            articulation = self._articulations.get(prefix)
            if articulation is not None:
                articulation.seed_ctrl(values)
                if self._data is not None and self._step_mode is _PUPPET:
                    articulation.write_ctrl(self._written_data())

    def _absorb_observations(self, reply: Tree) -> None:
        for prefix, block in (reply.get("per_articulation") or {}).items():
            articulation = self._articulations.get(prefix)
            if articulation is not None:
                articulation._observed.absorb(block)
        if self._mirror is None:
            blocks = reply.get("entities") or {}
            for entity in self._plain_entities:
                entity._wire_state = blocks.get(entity._name, entity._wire_state)


def read_hello(reply: Tree) -> HelloReply:
    """The typed part of a handshake. Its state is absorbed as a step reply is, and two blocks are shown as they came.

    A server that does not say whether a simulation runs has one.
    """
    typed = {name: value for name, value in reply.items() if name not in _UNTYPED}
    return read_reply(HelloReply, typed, absent={"manager_present": True})


_UNTYPED = ("state", "rendering", "streams")


def _segmentation(table: Mapping[str, Sequence[SegmentBlock]]) -> dict[str, list[SegmentInfo]]:
    return {mode: [_segment(block) for block in blocks] for mode, blocks in table.items()}


def _segment(block: SegmentBlock) -> SegmentInfo:
    red, green, blue = block.color or (0, 0, 0)
    return SegmentInfo(block.id, (red, green, blue), block.name)
