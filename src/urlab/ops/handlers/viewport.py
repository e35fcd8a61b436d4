"""The viewport over the wire. It shows the running level, or the edited one while nothing plays."""

from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from urlab.access import LOCAL
from urlab.authoring.placement import read_rotation, vector
from urlab.errors import CompileError, UrlabError
from urlab.geometry import Pose, euler_deg_from_wxyz, xyzw_from_wxyz
from urlab.manager.scene_view import actor_poses
from urlab.numbers import finite_number
from urlab.ops.context import Context, handler
from urlab.ops.handlers.debug import drawing_block
from urlab.ops.handlers.outliner import bounds, shown_level
from urlab.ops.parsing import by_name
from urlab.overlay import OVERLAY_WORDS
from urlab.viewport import DEFAULT_SIZE, HeldBody, ViewCamera
from urlab_wire.ops import viewport as wire
from urlab_wire.ops.session import RenderingBlock

CameraReply = TypeVar("CameraReply", bound=wire.CameraPoseReply)


@handler("set_camera")
def set_camera(context: Context, request: wire.SetCameraRequest) -> wire.SetCameraReply:
    """Place the camera; what is left out stays. Ends tracking."""
    location = vector("location", request.location)
    quat_wxyz = read_rotation(request.rotation_quat, request.rotation_euler)
    fov_deg = None if request.fov is None else finite_number("fov", request.fov)
    return _camera_reply(context, context.parts.viewport.set_camera(location, quat_wxyz, fov_deg), wire.SetCameraReply)


@handler("look_through")
def look_through(context: Context, request: wire.LookThroughRequest) -> wire.LookThroughReply:
    """Show what a camera of the model sees."""
    return _camera_reply(context, context.parts.viewport.look_through(request.camera), wire.LookThroughReply)


@handler("get_camera")
def get_camera(context: Context, request: wire.GetCameraRequest) -> wire.GetCameraReply:  # noqa: ARG001 - no fields
    """Where the camera is now."""
    return _camera_reply(context, context.parts.viewport.camera, wire.GetCameraReply)


@handler("frame_actor")
def frame_actor(context: Context, request: wire.FrameActorRequest) -> wire.FrameActorReply:
    """Move the camera so that an actor, where it is now, fills the view. Ends tracking."""
    shown = shown_level(context)
    actor = shown.find(request.target, by_name=by_name(request.target_by))
    try:
        camera = context.parts.viewport.frame_actor(actor.name)
    except CompileError:  # of the whole level; the actor alone may do
        box = bounds(context, actor)
        camera = context.parts.viewport.frame(box.lower, box.upper)
    return _camera_reply(context, camera, wire.FrameActorReply)


@handler("set_viewport_mode")
def set_viewport_mode(context: Context, request: wire.SetViewportModeRequest) -> wire.SetViewportModeReply:
    """Show the world in another way."""
    return wire.SetViewportModeReply(mode=context.parts.viewport.set_mode(request.mode))


@handler("track_actor")
def track_actor(context: Context, request: wire.TrackActorRequest) -> wire.TrackActorReply:
    """Follow an actor, in the running level and in the edited one."""
    shown = shown_level(context)
    actor = shown.find(request.target, by_name=by_name(request.target_by))
    offset = None if request.offset is None else vector("offset", request.offset)
    smoothing = 0.0 if request.smoothing is None else finite_number("smoothing", request.smoothing)
    path = shown.level.path_of(actor.name)
    context.parts.viewport.track(
        lambda: _pose_now(context, actor.name), offset, smoothing, lambda: _seconds(context),
        lambda: _pose_in_states(context, actor.name),
    )  # fmt: skip
    return wire.TrackActorReply(tracked_actor_path=path)


@handler("untrack")
def untrack(context: Context, request: wire.UntrackRequest) -> wire.UntrackReply:  # noqa: ARG001 - no fields
    """Stop following the tracked actor."""
    return wire.UntrackReply(was_tracking=context.parts.viewport.untrack())


@handler("set_viewport_overlays")
def set_viewport_overlays(
    context: Context, request: wire.SetViewportOverlaysRequest
) -> wire.SetViewportOverlaysReply:  # fmt: skip
    """Switch what is drawn over the model."""
    asked = {word: getattr(request, word) for word in OVERLAY_WORDS}
    changes = {word: value for word, value in asked.items() if value is not None}
    return wire.SetViewportOverlaysReply(overlays=context.parts.viewport.set_overlays(changes))


@handler("read_view")
def read_view(context: Context, request: wire.ReadViewRequest) -> wire.ReadViewReply:
    """What a viewer draws by itself."""
    viewport = context.parts.viewport
    as_file = bool(request.as_file) and context.caller is LOCAL
    view, camera, drawings = viewport.read(request.known_model, as_file=as_file)
    return wire.ReadViewReply(
        model=view.model,
        playing=view.posed.sim_time is not None,
        state=view.state,
        location=list(camera.location),
        rotation_quat=list(xyzw_from_wxyz(camera.quat_wxyz)),
        fov=camera.fov_deg,
        tracking=viewport.is_tracking,
        mode=viewport.mode,
        overlays=viewport.overlays,
        drawings=[drawing_block(one) for one in drawings.items],
        texts=dict(drawings.texts),
        choices={name: wire.ChoiceBlock(list(one.options), one.chosen) for name, one in drawings.choices.items()},
        held=[_held_block(one) for one in view.posed.held],
        mjb=view.mjb,
        mjb_file=view.mjb_file,
        actors=None if view.model == request.known_model else dict(view.actors),
        sim_time=view.posed.sim_time,
        selected=context.world.selected,
        camera=viewport.looks_through,
    )


def _held_block(held: HeldBody) -> wire.HeldBodyBlock:
    target, force, torque = (None if one is None else one.tolist() for one in (held.target, held.force, held.torque))
    return wire.HeldBodyBlock(held.body_id, held.point.tolist(), target, force, torque)


@handler("editor_address")
def editor_address(context: Context, request: wire.EditorAddressRequest) -> wire.EditorAddressReply:  # noqa: ARG001
    """Where the browser editor is; with its token: to callers on this machine, or with the key of an admin."""
    if context.parts.editor is None:
        reason = "this server has no browser editor: start it with --web, or urlab.launch(..., web=True)"
        return wire.EditorAddressReply(reason=reason)
    return wire.EditorAddressReply(url=context.parts.editor.url)


@handler("viewport_screenshot")
def viewport_screenshot(context: Context, request: wire.ViewportScreenshotRequest) -> wire.ViewportScreenshotReply:
    """A picture of what the viewport shows."""
    width = DEFAULT_SIZE[0] if request.width is None else request.width
    height = DEFAULT_SIZE[1] if request.height is None else request.height
    shot = context.parts.viewport.screenshot(width, height)
    return wire.ViewportScreenshotReply(
        width=shot.width,
        height=shot.height,
        png=shot.png,
        mode=shot.mode,
        sim_time=shot.sim_time,
        rendering=RenderingBlock(**shot.rendering),
    )


def _pose_now(context: Context, actor_name: str) -> Pose | None:
    """Where an actor is; None when there is none of that name, or the level is just changing."""
    try:
        shown = shown_level(context)
        return shown.pose_of(shown.find(actor_name, by_name=True))
    except UrlabError:
        return None


def _pose_in_states(context: Context, name: str) -> Callable[[Any], Pose | None]:
    """Where an actor is in other states of the scene that is shown now; one that cannot move is where it stands."""
    stands = _pose_now(context, name)
    if not context.play.is_playing:
        return lambda _: stands
    manager = context.play.manager
    return lambda state: actor_poses(manager, state).get(name, stands)


def _seconds(context: Context) -> float:
    """Simulated time while a scene plays, else that of the wall."""
    sim_time = context.play.status().sim_time
    return monotonic() if sim_time is None else sim_time


def _camera_reply(context: Context, camera: ViewCamera, reply: type[CameraReply]) -> CameraReply:
    return reply(
        location=list(camera.location),
        rotation_quat=list(xyzw_from_wxyz(camera.quat_wxyz)),
        rotation_euler=list(euler_deg_from_wxyz(camera.quat_wxyz)),
        fov=camera.fov_deg,
        camera=context.parts.viewport.looks_through,
    )
