"""Cameras of a running scene over the wire: what they see, whether they stream, and the frames of a step."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from urlab.cameras import Capture, Frame, SceneCamera
from urlab.errors import BadValue, OpTimeout, ViewError
from urlab.ops.context import Context, handler
from urlab.ops.parsing import one_of
from urlab.physics import Snapshot
from urlab_wire.enums import CameraMode, CameraTiming
from urlab_wire.ops import runtime as wire

IncludeCameras = bool | Mapping[str, str] | None


@handler("set_camera_mode")
def set_camera_mode(context: Context, request: wire.SetCameraModeRequest) -> wire.SetCameraModeReply:
    """Switch what a camera sees, from its next frame on."""
    mode = one_of("mode", CameraMode, request.mode)
    context.manager.capture.set_mode(request.camera, mode)
    return wire.SetCameraModeReply(camera=request.camera, mode=mode)


@handler("set_camera_streaming")
def set_camera_streaming(context: Context, request: wire.SetCameraStreamingRequest) -> wire.SetCameraStreamingReply:
    """Switch cameras on or off, all that are named or none; or every camera there is and will be."""
    if isinstance(request.cameras, bool):
        return _switch_all(context, request.cameras)
    cameras = context.manager.capture
    orders = {name: (cameras.resolve(name), _stream_order(order)) for name, order in request.cameras.items()}
    for name, (_, order) in orders.items():
        cameras.check_rate(name, order.rate_hz)
    for name, (camera, order) in orders.items():
        cameras.set_streaming(name, order.zmq, order.rate_hz)
        if order.shm is not None and context.parts.shared_memory is not None:
            context.parts.shared_memory.streams.mute(camera.topic, not order.shm)
    return _streaming_reply(context, {name: one for name, (one, _) in orders.items()})


def _switch_all(context: Context, on: bool) -> wire.SetCameraStreamingReply:
    streams, cameras = context.parts.streams, context.manager.capture.cameras
    if on and cameras and streams is not None and not streams.endpoints()["cameras"]:
        raise BadValue("cameras cannot be switched on: the server was started with --no-camera-streams")
    context.play.switch_cameras(on)
    return _streaming_reply(context, cameras)


def _streaming_reply(context: Context, cameras: Mapping[str, SceneCamera]) -> wire.SetCameraStreamingReply:
    blocks = {name: _stream_block(context, one) for name, one in cameras.items()}
    return wire.SetCameraStreamingReply(cameras=blocks, all_cameras=context.play.cameras_switched)


def _stream_order(order: bool | wire.CameraStreamOrder) -> wire.CameraStreamOrder:
    return wire.CameraStreamOrder(zmq=order, shm=order) if isinstance(order, bool) else order


def _stream_block(context: Context, camera: SceneCamera) -> wire.CameraStreamBlock:
    memory = context.parts.shared_memory
    return wire.CameraStreamBlock(
        streaming=camera.streaming,
        zmq=camera.streaming,
        shm=not camera.muted and memory is not None and memory.streams.has_camera(camera.topic),
        rate_hz=camera.rate_hz,
        zmq_endpoint=context.parts.camera_endpoint(camera.name),
        zmq_topic=camera.topic,
    )


# -- frames of a step ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CameraSelection:
    """The cameras of a step as the caller calls them: those of this very state, those whose newest frame will do."""

    sync: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()

    @classmethod
    def read(cls, capture: Capture, asked: IncludeCameras) -> "CameraSelection":
        """Refuse unknown names and timings; ``true`` is the newest frame of every camera."""
        if not asked:
            return cls()
        if isinstance(asked, bool):
            return cls(latest=tuple(_names_of_all(capture)))
        timings = {name: one_of(f"include_cameras[{name!r}]", CameraTiming, word) for name, word in asked.items()}
        for name in timings:
            capture.resolve(name)
        chosen = {timing: tuple(name for name, one in timings.items() if one is timing) for timing in CameraTiming}
        return cls(sync=chosen[CameraTiming.SYNC], latest=chosen[CameraTiming.LATEST])

    def take(
        self, capture: Capture, snapshot: Snapshot, oldest_frame_id: int, *, runs_by_itself: bool
    ) -> tuple[dict[str, Any], list[str]]:
        """The frames by name, and what went wrong: a step that has been made is not lost for want of a picture.

        ``snapshot`` is the state that the reply tells; no frame is older than ``oldest_frame_id``.
        """
        frames: dict[str, Frame] = {}
        try:
            if self.sync:
                frames |= capture.sync(self.sync, snapshot)
            if self.latest:
                newest = capture.latest if runs_by_itself else capture.latest_of_steps
                frames |= newest(self.latest, snapshot, oldest_frame_id)
        except (ViewError, OpTimeout) as dark:
            return {}, [f"there are no camera frames: {dark.message}"]
        return {name: {**frame.metadata(), "data": frame.data} for name, frame in frames.items()}, []


def _names_of_all(capture: Capture) -> list[str]:
    """Every camera once, by its bare name where only one has it, else by its full name."""
    count = Counter(camera.slot.short for camera in capture.cameras.values())
    return [one.slot.short if count[one.slot.short] == 1 else name for name, one in capture.cameras.items()]
