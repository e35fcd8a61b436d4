"""The viewport camera. ``rotation_quat`` is x, y, z, w; ``fov`` is horizontal, in degrees."""

import msgspec

from urlab_wire.envelope import Reply, Request, TargetedRequest
from urlab_wire.ops.session import RenderingBlock


class SetCameraRequest(Request["SetCameraReply"], tag="set_camera"):
    """Place the viewport camera."""

    location: list[float]
    rotation_quat: list[float] | None = None
    rotation_euler: list[float] | None = None
    fov: float | None = None


class CameraPoseReply(Reply):
    """The pose that the camera ops answer with; ``camera`` (extension) is the model's that the view looks through."""

    location: list[float]
    rotation_quat: list[float]
    rotation_euler: list[float]
    fov: float
    camera: str | None = None


class SetCameraReply(CameraPoseReply, tag="set_camera_ok"):
    """The pose in force."""


class GetCameraRequest(Request["GetCameraReply"], tag="get_camera"):
    """Ask where the viewport camera is."""


class GetCameraReply(CameraPoseReply, tag="get_camera_ok"):
    """The pose in force."""


class LookThroughRequest(Request["LookThroughReply"], tag="look_through"):
    """Show what a camera of the model sees, wherever it goes, until untrack or set_camera. An extension."""

    camera: str


class LookThroughReply(CameraPoseReply, tag="look_through_ok"):
    """The pose of that camera now."""


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
    """Stop following, or go back from looking through a camera of the model."""


class UntrackReply(Reply, tag="untrack_ok"):
    """Whether the camera was following."""

    was_tracking: bool


class SetViewportOverlaysRequest(Request["SetViewportOverlaysReply"], tag="set_viewport_overlays"):
    """Switch what MuJoCo draws over the model in viewport pictures; what is left out stays. An extension.

    ``frames`` and ``names`` take true (bodies), false, or the kind of element that they are drawn at.
    """

    contacts: bool | None = None
    contact_forces: bool | None = None
    joints: bool | None = None
    com: bool | None = None
    frames: bool | str | None = None
    inertia: bool | None = None
    tendons: bool | None = None
    names: bool | str | None = None
    transparent: bool | None = None
    perturbation: bool | None = None
    split_contact_forces: bool | None = None
    actuators: bool | None = None
    activations: bool | None = None
    scaled_inertia: bool | None = None
    constraints: bool | None = None
    islands: bool | None = None
    skeleton: bool | None = None
    cameras: bool | None = None
    lights: bool | None = None
    rangefinders: bool | None = None
    convex_hulls: bool | None = None
    textures: bool | None = None
    static_bodies: bool | None = None
    skins: bool | None = None
    flex_vertices: bool | None = None
    flex_edges: bool | None = None
    flex_faces: bool | None = None
    flex_skins: bool | None = None
    body_boxes: bool | None = None
    mesh_boxes: bool | None = None
    sdf_iterations: bool | None = None


class SetViewportOverlaysReply(Reply, tag="set_viewport_overlays_ok"):
    """Every overlay by its word: whether it is drawn, or at which kind of element."""

    overlays: dict[str, bool | str]


class DrawingBlock(msgspec.Struct, omit_defaults=True):
    """A debug drawing. ``kind`` is marker, line, box, arrow or axes; the rest as in the op that draws it."""

    kind: str
    location: list[float] | None = None
    color: list[float] | None = None
    label: str | None = None
    from_: list[float] | None = msgspec.field(default=None, name="from")
    to: list[float] | None = None
    half_extents: list[float] | None = None
    rotation_quat: list[float] | None = None
    thickness: float | None = None
    arrow_size: float | None = None
    scale: float | None = None


class ChoiceBlock(msgspec.Struct):
    """A choice that people have in the views, and what is chosen."""

    options: list[str]
    chosen: str


class HeldBodyBlock(msgspec.Struct, omit_defaults=True):
    """A body that a session pushes or drags: ``point`` in the body's frame, the rest in the world's (m, N, N m)."""

    body_id: int
    point: list[float]
    target: list[float] | None = None
    force: list[float] | None = None
    torque: list[float] | None = None


class ReadViewRequest(Request["ReadViewReply"], tag="read_view"):
    """Ask for everything that a viewer needs to draw the viewport's world by itself, at display rate. An extension.

    ``known_model`` is ``model`` of an earlier reply: the model's bytes are then left out while it is the same.
    ``as_file``: a caller on this machine is told a file that has them instead, which is quicker for a large model.
    """

    known_model: str | None = None
    as_file: bool | None = None


class ReadViewReply(Reply, tag="read_view_ok"):
    """The world that plays, or the edited one as it would start; nothing of it waits for the simulation.

    ``mjb``, or the name of a file, ``mjb_file``, and ``actors`` (body ids by actor) come with another model; the file
    is there until the server has another model. ``state`` is float64, little endian: qpos, qvel,
    act, ctrl, mocap_pos, mocap_quat, sensordata. ``sim_time`` is absent while nothing plays.
    """

    model: str
    playing: bool
    state: bytes
    location: list[float]
    rotation_quat: list[float]
    fov: float
    tracking: bool
    mode: str
    overlays: dict[str, bool | str]
    drawings: list[DrawingBlock]
    texts: dict[str, str]
    choices: dict[str, ChoiceBlock]
    held: list[HeldBodyBlock]
    mjb: bytes | None = None
    mjb_file: str | None = None
    actors: dict[str, list[int]] | None = None
    sim_time: float | None = None
    selected: str | None = None
    camera: str | None = None


class EditorAddressRequest(Request["EditorAddressReply"], tag="editor_address"):
    """Ask where the browser editor is. An extension; observers may not, as the address has the token that opens it."""


class EditorAddressReply(Reply, tag="editor_address_ok"):
    """``url`` is the page with its token; absent when the server has no editor, and ``reason`` says why."""

    url: str | None = None
    reason: str | None = None


class ViewportScreenshotRequest(Request["ViewportScreenshotReply"], tag="viewport_screenshot"):
    """Ask for a picture of what the viewport shows, drawings and overlay text included. An extension."""

    width: int | None = None
    height: int | None = None


class ViewportScreenshotReply(Reply, tag="viewport_screenshot_ok"):
    """``png`` is a PNG file; ``sim_time`` is that of the state it shows, absent while nothing plays.

    ``rendering`` is how it was drawn.
    """

    width: int
    height: int
    png: bytes
    mode: str
    sim_time: float | None = None
    rendering: RenderingBlock | None = None
