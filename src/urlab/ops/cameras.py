"""Cameras of a running scene over the wire: what they see, and whether they stream."""

from urlab.cameras import SceneCamera
from urlab.ops.checks import one_of
from urlab.ops.context import Context
from urlab.ops.registry import handler
from urlab_wire.enums import CameraMode
from urlab_wire.ops import runtime as wire


@handler("set_camera_mode")
def set_camera_mode(context: Context, request: wire.SetCameraModeRequest) -> wire.SetCameraModeReply:
    """Switch what a camera sees, from its next frame on."""
    mode = one_of("mode", CameraMode, request.mode)
    context.manager.cameras.set_mode(request.camera, mode)
    return wire.SetCameraModeReply(camera=request.camera, mode=mode)


@handler("set_camera_streaming")
def set_camera_streaming(context: Context, request: wire.SetCameraStreamingRequest) -> wire.SetCameraStreamingReply:
    """Switch cameras on or off; all of them or none."""
    cameras = context.manager.cameras
    orders = {name: (cameras.resolve(name), _order(order)) for name, order in request.cameras.items()}
    for name, (_, order) in orders.items():
        cameras.check_rate(name, order.rate_hz)
    for name, (channel, order) in orders.items():
        cameras.set_streaming(name, channel.streaming if order.zmq is None else order.zmq, order.rate_hz)
        if order.shm is not None and context.parts.shared_memory is not None:
            context.parts.shared_memory.streams.mute(channel.topic, not order.shm)
    return wire.SetCameraStreamingReply(cameras={name: _block(context, one) for name, (one, _) in orders.items()})


def _order(order: bool | wire.CameraStreamOrder) -> wire.CameraStreamOrder:
    return wire.CameraStreamOrder(zmq=order, shm=order) if isinstance(order, bool) else order


def _block(context: Context, channel: SceneCamera) -> wire.CameraStreamBlock:
    memory = context.parts.shared_memory
    return wire.CameraStreamBlock(
        streaming=channel.streaming,
        zmq=channel.streaming,
        shm=memory is not None and memory.streams.has_camera(channel.topic),
        rate_hz=channel.rate_hz,
        zmq_endpoint=context.parts.camera_endpoint(channel.name),
        zmq_topic=channel.topic,
    )
