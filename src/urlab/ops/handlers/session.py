"""hello, meta, and the handshake that hello shares with begin_pie."""

import contextlib
import logging
from functools import lru_cache

from msgspec import structs

from urlab.access import Role
from urlab.cameras import segmentation_table
from urlab.compile import CompiledEntity
from urlab.compile.export import export_mjcf
from urlab.config import VERSION
from urlab.errors import BadValue, NotAllowed, OpTimeout
from urlab.manager import Manager, View
from urlab.manager.articulation import RunningArticulation
from urlab.ops.context import HANDLERS, Context, handler
from urlab.ops.handlers.stepping import plain_reply
from urlab.ops.parsing import one_of
from urlab.ops.session import Session
from urlab.physics import MUJOCO_VERSION, MUJOCO_VERSION_INT
from urlab_wire.catalogue import CATALOGUE, meta_ops
from urlab_wire.enums import CameraMode, Encoding, ObservationLevel
from urlab_wire.ops import session as wire
from urlab_wire.ops.stepping import StepReply

log = logging.getLogger("urlab.ops")

_STATE_WAIT_S = 0.05
_OWN_MODES = frozenset(CameraMode)
"""Those that every client knows; a plugin may have declared others since."""

_SAME_NAMES = wire.OriginalNames(actuators={}, joints={}, sensors={}, bodies={})
"""Short names are the model file's own."""


@handler("hello")
def hello(context: Context, request: wire.HelloRequest) -> wire.HelloReply:
    """Open a session; everything is checked before the old one is replaced."""
    session = context.session
    encoding = one_of("encoding", Encoding, request.encoding) if request.encoding else Encoding.MSGPACK
    if request.observer and request.operator:
        raise BadValue("a session is an observer's or an operator's, not both: one may not change the world")
    session.observer, session.operator = bool(request.observer), bool(request.operator)
    session.observations = one_of("observations", ObservationLevel, request.observations or ObservationLevel.STANDARD)
    session.encoding, session.gets_model = encoding, request.include_model is not False
    before = _check_seat(context, takeover=bool(request.takeover))
    reply = handshake(context, include_assets=bool(request.include_assets), opening=True)
    context.sessions.open(session, takeover=bool(request.takeover))
    if before is not None:
        log.warning("%r takes the driver's seat from %r", context.caller.name, before.caller.name)
        context.record("takeover", taken_from=before.caller.name)
    context.record("hello", session=session.kind)
    return reply


def _check_seat(context: Context, *, takeover: bool) -> Session | None:
    """The driver of another caller that this hello replaces; NotAllowed or DriverBusy if it may not."""
    session, caller = context.session, context.caller
    needed = Role(session.kind)
    if not caller.role.covers(needed):
        raise NotAllowed(
            f"this hello needs the role {needed}, and the key of {caller.name!r} has {caller.role}: "
            f"say hello as {'an observer' if caller.role is Role.OBSERVER else 'an operator'}"
        )
    if needed is not Role.DRIVER:
        return None
    return context.sessions.driver_before(caller, takeover=takeover)


@handler("meta")
def meta(context: Context, request: wire.MetaRequest) -> wire.MetaReply:  # noqa: ARG001 - the catalogue is the same for all
    """The op catalogue."""
    return wire.MetaReply(ops=catalogue_entries())


def catalogue_entries() -> list[wire.OpEntry]:
    """The op catalogue, with which ops this server serves."""
    return _entries(tuple(CATALOGUE), frozenset(HANDLERS))


@lru_cache(maxsize=2)
def _entries(ops: tuple[str, ...], served: frozenset[str]) -> list[wire.OpEntry]:  # noqa: ARG001 - they grow by plugins
    entries = meta_ops()
    for entry in entries:
        entry.served = entry.name in served
    return entries


def handshake(context: Context, *, include_assets: bool = False, opening: bool = False) -> wire.HelloReply:
    """What a client needs to know about the running scene, if there is one. An ``opening`` session counts from here."""
    if opening:
        context.count_from(context.play.counter.total)
    memory = context.parts.shared_memory
    reply = wire.HelloReply(
        session_id=context.session.id,
        urlab_version=f"urlab/{VERSION}",
        mujoco_version_int=MUJOCO_VERSION_INT,
        mujoco_version=MUJOCO_VERSION,
        manager_present=context.play.is_playing,
        articulations=[],
        shm_session_dir=None if memory is None else str(memory.folder),
    )
    if context.play.is_playing:
        _add_scene(reply, context, include_assets, opening)
    return reply


def _add_scene(reply: wire.HelloReply, context: Context, include_assets: bool, opening: bool) -> None:
    manager = context.manager
    scene = manager.scene
    context.session.model_version = manager.randomising.model_version
    if context.session.gets_model:
        reply.mjb = manager.engine.model_binary()
    reply.articulations = [_articulation(context, one) for one in manager.articulations.values()]
    if include_assets:
        with manager.engine.model_lock:
            reply.mjcf_compiled, reply.vfs_assets = export_mjcf(scene)
    reply.step_mode = str(manager.mode)
    reply.state = state_now(context, opening=opening)
    reply.entities = {one.name: _entity(one) for one in scene.entities}
    reply.global_cameras = {
        one.name: wire.GlobalCameraTopic(**structs.asdict(_camera(context, one.name)), short_name=one.short)
        for one in scene.global_cameras
    }
    if manager.capture.cameras:
        reply.rendering = wire.RenderingBlock(**manager.capture.rendering())
        reply.segmentation = _segmentation(manager)
        reply.camera_modes = {mode: mode.pixel_format.name for mode in CameraMode if mode not in _OWN_MODES} or None
    reply.streams = _streams(context)
    reply.warnings = list(scene.notes) or None


def state_now(context: Context, *, opening: bool = False) -> StepReply | None:
    """The state as a step would tell it; None while a long step runs: there is no reason to wait for that.

    An ``opening`` session counts its steps from this state.
    """
    with contextlib.suppress(OpTimeout):
        observed = context.manager.read(View(context.session.observations), timeout_s=_STATE_WAIT_S)
        if opening:
            context.count_from(observed.steps)
        return plain_reply(StepReply, context, observed)
    return None


def _segmentation(manager: Manager) -> dict[str, list[wire.SegmentBlock]]:
    return {
        mode: [wire.SegmentBlock(id=one["id"], color=list(one["color"]), name=one["name"]) for one in entries]
        for mode, entries in segmentation_table(manager.scene).items()
    }


def _streams(context: Context) -> wire.StreamsBlock | None:
    streams = context.parts.streams
    if streams is None:
        return None
    where = streams.endpoints()
    return wire.StreamsBlock(
        state=where["state"],
        control=where["control"],
        info=where["info"],
        counters={name: dict(counts) for name, counts in streams.counters().items()},
    )


def _articulation(context: Context, running: RunningArticulation) -> wire.ArticulationBlock:
    compiled = running.compiled
    return wire.ArticulationBlock(
        prefix=compiled.prefix,
        actor_id=compiled.actor_id,
        default_control_mode=running.default_control_mode,
        actuator_types={one.short: one.actuator.kind for one in compiled.controls},
        original_names=_SAME_NAMES,
        camera_topics={one.short: _camera(context, f"{compiled.prefix}/{one.short}") for one in compiled.cameras},
        controller=_controller(running),
        setpoints=running.staged.active.tolist(),
        control_source=running.staged.source,
    )


def _controller(running: RunningArticulation) -> wire.ControllerBlock | None:
    controller = running.controller
    if controller is None:
        return None
    return wire.ControllerBlock(kind=controller.kind, params=controller.params(), schema=controller.schema())


def _entity(entity: CompiledEntity) -> wire.EntityBlock:
    free = entity.free_joint
    if free is None:
        return wire.EntityBlock(id=entity.body_id, has_free_base=False)
    return wire.EntityBlock(
        id=entity.body_id,
        has_free_base=True,
        free_joint=free.name,
        free_joint_id=free.id,
        qpos_offset=free.qpos.start,
        qvel_offset=free.qvel.start,
    )


def _camera(context: Context, name: str) -> wire.CameraTopic:
    camera = context.manager.capture.cameras[name]
    return wire.CameraTopic(
        mode=camera.mode,
        resolution=camera.slot.resolution,
        fovy=context.manager.capture.fovy(camera),
        zmq_endpoint=context.parts.camera_endpoint(camera.name),
        zmq_topic=camera.topic,
    )
