"""What a client knows of the scene: the local model, the handles and the clocks."""

import logging
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import mujoco

from urlab_client.enums import StepMode
from urlab_client.errors import URLabVersionMismatch
from urlab_client.handles import build
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.build import HandleTable
from urlab_client.handles.camera import URLabCameraView
from urlab_client.handles.entity import URLabEntity
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


class SceneState(LocalData):
    """The read-only attributes of a client, built by handshakes and kept current by step replies.

    ``model`` and ``data`` are the local MuJoCo mirror (None without one, and always with ``local_model=False``).
    ``articulations`` is keyed by prefix; ``entities`` holds them too, beside every other dynamic body. ``step_count``
    counts since ``discover()``; ``sim_time`` is in seconds, the ``_sec`` / ``_nsec`` pairs are split as ROS does.

    Extensions: ``segmentation`` has the colours of segmentation pictures by camera mode; ``rendering`` (profile,
    renderer, problem) and ``streams`` (endpoints, counters) are as the last handshake has them, empty where it did
    not.
    """

    def __init__(self, step_mode: StepMode, *, local_model: bool, mujoco_version_check: bool) -> None:
        super().__init__()
        self.step_mode = step_mode
        self.local_model = local_model
        self.mujoco_version_check = mujoco_version_check
        self.urlab_version = ""
        self.mujoco_version = ""
        self.manager_present = False
        self.shm_session_dir: str | None = None
        self.articulations: dict[str, URLabArticulation] = HandleTable("articulation")
        self.articulations_by_id: dict[str, URLabArticulation] = HandleTable("articulation of the actor_id")
        self.entities: dict[str, URLabEntity] = HandleTable("entity")
        self.global_cameras: dict[str, URLabCameraView] = HandleTable("camera")
        self.segmentation: dict[str, list[SegmentInfo]] = {}
        self.rendering: Tree = {}
        self.streams: Tree = {}
        self._plain_entities: list[URLabEntity] = []
        self._camera_keys: dict[str, URLabCameraView] = {}
        self._init_clocks()

    def _init_clocks(self) -> None:
        self.step_count = 0
        self.sim_time = 0.0
        self.sim_time_sec = self.sim_time_nsec = 0
        self.wall_time_sec = self.wall_time_nsec = 0
        self.recv_wall_time_ns = 0

    def _apply_handshake(self, reply: Tree) -> None:
        """Rebuild everything from a handshake. Raises `URLabVersionMismatch`, `UnreadableModelError`."""
        hello = read_hello(reply)
        self._check_version(hello)
        for word, pixels in (hello.camera_modes or {}).items():
            declare_camera_mode(word, PixelFormat[pixels])
        with self._data_lock:
            self.urlab_version, self.mujoco_version = hello.urlab_version, hello.mujoco_version
            self.manager_present = hello.manager_present
            self.shm_session_dir = hello.shm_session_dir
            self.step_count = 0
            self.segmentation = _segmentation(hello.segmentation or {})
            self.rendering, self.streams = dict(reply.get("rendering") or {}), dict(reply.get("streams") or {})
            self._build_handles(hello, self._load_model(hello))
            if reply.get("state"):
                self._absorb_step_reply(reply["state"], authoritative=True)
            self._seed_setpoints(build.setpoints_of(hello))

    def _check_version(self, hello: HelloReply) -> None:
        if not build.is_foreign(hello):
            return
        mismatch = URLabVersionMismatch(hello.mujoco_version, mujoco.__version__)
        if self.mujoco_version_check:
            raise mismatch
        warnings.warn(str(mismatch), stacklevel=4)

    def _load_model(self, hello: HelloReply) -> mujoco.MjModel | None:
        """Renew the local mirror; returns the model to build the handles from, which may be all that it is for."""
        if not self.local_model:
            self._renew_data(None)
            return self._load_for_handles(hello)
        model = build.load_model(hello)
        if model is not None or not self.manager_present:
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
        self.articulations = HandleTable("articulation", build.build_articulations(hello, model, client))
        by_id = {one.actor_id: one for one in self.articulations.values() if one.actor_id}
        self.articulations_by_id = HandleTable("articulation of the actor_id", by_id)
        plain = build.build_entities(hello, client)
        self._plain_entities = list(plain.values())
        self.entities = HandleTable("entity", {**plain, **self.articulations})
        if model is not None and not self.local_model:
            build.remember_initial_state(model, self.articulations.values(), self._plain_entities)
        self.global_cameras = build.build_cameras(hello.global_cameras or {}, self._data_lock)
        self._camera_keys = build.camera_keys(self._camera_views())
        self._mirror_into_data(list(self.articulations.values()), self._plain_entities)

    def _camera_views(self) -> list[URLabCameraView]:
        """Every camera there is."""
        owned = [view for one in self.articulations.values() for view in one.cameras.values()]
        return [*self.global_cameras.values(), *owned]

    def _absorb_step_reply(self, reply: Tree, *, authoritative: bool = False) -> None:
        """Take over a reply of step, reset or forward.

        In puppet mode the local data leads and only a drag is taken over, unless the reply is ``authoritative``.
        """
        with self._data_lock:
            self._absorb_clocks(reply)
            self._absorb_observations(reply)
            if authoritative or self.step_mode is not _PUPPET:
                self._take_state(reply, at_once=authoritative)
            elif self._mirror is not None:
                held = reply.get("perturbation")
                self._mirror.absorb_drags(reply.get("perturbations") or ([held] if held else []))
            cameras = reply.get("cameras")
            if cameras:
                self._absorb_frames(cameras)
        for text in reply.get("warnings") or ():
            _log.warning("the server warns: %s", text)

    def _absorb_frames(self, frames: Mapping[str, Tree]) -> None:
        for key, payload in frames.items():
            if key in self._camera_keys:
                self._camera_keys[key].absorb(payload, self.sim_time)

    def _seed_setpoints(self, setpoints: Mapping[str, Sequence[float]]) -> None:
        """Let the buffers begin with what is in force on the server; a puppet's own ``data.ctrl`` as well."""
        for prefix, values in setpoints.items():
            articulation = self.articulations.get(prefix)
            if articulation is not None:
                articulation.seed_ctrl(values)
                if self._data is not None and self.step_mode is _PUPPET:
                    articulation.write_ctrl(self._written_data())

    def _absorb_clocks(self, reply: Tree) -> None:
        self.recv_wall_time_ns = time.time_ns()
        self.sim_time = reply.get("time", self.sim_time)
        self.step_count = reply.get("step", self.step_count)
        sim, wall = reply.get("sim_time"), reply.get("wall_time")
        if sim:
            self.sim_time_sec, self.sim_time_nsec = sim["sec"], sim["nsec"]
        if wall:
            self.wall_time_sec, self.wall_time_nsec = wall["sec"], wall["nsec"]

    def _absorb_observations(self, reply: Tree) -> None:
        for prefix, block in (reply.get("per_articulation") or {}).items():
            articulation = self.articulations.get(prefix)
            if articulation is not None:
                articulation.observed.absorb(block)
        if self._mirror is None:
            blocks = reply.get("entities") or {}
            for entity in self._plain_entities:
                entity._wire_state = blocks.get(entity.name, entity._wire_state)


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
