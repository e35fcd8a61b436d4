"""The viewport camera. ``rotation_quat`` is x, y, z, w; ``fov`` is horizontal, in degrees."""

from urlab_wire.envelope import Reply, Request, TargetedRequest


class SetCameraRequest(Request["SetCameraReply"], tag="set_camera"):
    """Place the viewport camera."""

    location: list[float]
    rotation_quat: list[float] | None = None
    rotation_euler: list[float] | None = None
    fov: float | None = None


class CameraPoseReply(Reply):
    """The pose that the camera ops answer with."""

    location: list[float]
    rotation_quat: list[float]
    rotation_euler: list[float]
    fov: float


class SetCameraReply(CameraPoseReply, tag="set_camera_ok"):
    """The pose in force."""


class GetCameraRequest(Request["GetCameraReply"], tag="get_camera"):
    """Ask where the viewport camera is."""


class GetCameraReply(CameraPoseReply, tag="get_camera_ok"):
    """The pose in force."""


class FrameActorRequest(TargetedRequest["FrameActorReply"], tag="frame_actor"):
    """Move the camera so that an actor fills the view."""

    target: str
    target_by: str | None = None


class FrameActorReply(CameraPoseReply, tag="frame_actor_ok"):
    """The pose in force."""


class SetViewportModeRequest(Request["SetViewportModeReply"], tag="set_viewport_mode"):
    """Choose lit, unlit, wireframe, collision or reflections."""

    mode: str


class SetViewportModeReply(Reply, tag="set_mode_ok"):
    """The mode in force. Its op is set_mode_ok: so does the original, and clients insist on it."""

    mode: str


class TrackActorRequest(TargetedRequest["TrackActorReply"], tag="track_actor"):
    """Let the camera follow an actor."""

    offset: list[float] | None = None
    smoothing: float | None = None


class TrackActorReply(Reply, tag="track_actor_ok"):
    """The actor that is followed."""

    tracked_actor_path: str


class UntrackRequest(Request["UntrackReply"], tag="untrack"):
    """Stop following."""


class UntrackReply(Reply, tag="untrack_ok"):
    """Whether the camera was following."""

    was_tracking: bool


class ViewportScreenshotRequest(Request["ViewportScreenshotReply"], tag="viewport_screenshot"):
    """Ask for a picture of what the viewport shows, drawings and overlay text included. An extension."""

    width: int | None = None
    height: int | None = None


class ViewportScreenshotReply(Reply, tag="viewport_screenshot_ok"):
    """``png`` is a PNG file; ``sim_time`` is that of the state it shows, absent while nothing plays."""

    width: int
    height: int
    png: bytes
    mode: str
    sim_time: float | None = None
