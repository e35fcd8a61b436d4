"""``client.viewport``: the camera of the perspective viewport, and pictures of what it sees."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, Unpack

import mujoco
import numpy as np

from urlab_client.checks import Vector, maybe_numbers, numbers
from urlab_client.namespaces.base import RpcNamespace, Target, rotated, targeted
from urlab_client.results import ShortRepr, result_of
from urlab_client.types import CameraPose, Vec3, Vec4
from urlab_wire.ops import viewport as wire
from urlab_wire.ops.viewport import ChoiceBlock, DrawingBlock, HeldBodyBlock

_STATE_PARTS = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat", "sensordata")
"""What the state of a `WorldView` holds, in order; the arrays of MjData have these names."""

MODES = ("lit", "unlit", "wireframe", "collision", "reflections")


class ViewportOverlays(TypedDict, total=False):
    """What MuJoCo draws over the model, by plain words; docs/viewport.md says what each one is.

    ``frames`` and ``names`` take True (bodies), False, or the kind of element that they are drawn at, as ``"site"``.
    """

    contacts: bool
    contact_forces: bool
    joints: bool
    com: bool
    frames: bool | str
    inertia: bool
    tendons: bool
    names: bool | str
    transparent: bool
    perturbation: bool
    split_contact_forces: bool
    actuators: bool
    activations: bool
    scaled_inertia: bool
    constraints: bool
    islands: bool
    skeleton: bool
    cameras: bool
    lights: bool
    rangefinders: bool
    convex_hulls: bool
    textures: bool
    static_bodies: bool
    skins: bool
    flex_vertices: bool
    flex_edges: bool
    flex_faces: bool
    flex_skins: bool
    body_boxes: bool
    mesh_boxes: bool
    sdf_iterations: bool


@dataclass(frozen=True, repr=False)
class WorldView(ShortRepr):
    """One state of the world that plays, or of the edited one as it would start.

    ``model`` is another word whenever the model is. ``mjb`` (the model; or ``mjb_file``, a file that has it) and
    ``actors`` (body ids by actor) are None where the caller of `read` knew the model. ``location`` (m),
    ``rotation_quat`` (x, y, z, w) and ``fov`` (horizontal, degrees) are the viewport's camera, which looks along its
    +X. ``sim_time`` is None while nothing plays.

    ```python
    import mujoco
    from urlab_client import URLabClient

    with URLabClient("tcp://localhost", observer=True) as client:
        client.discover()
        view = client.viewport.read()
        model = view.load_model()
        data = mujoco.MjData(model)
        for _ in range(100):
            view = client.viewport.read(known_model=view.model)
            view.write_to(data)
            mujoco.mj_kinematics(model, data)
    ```
    """

    model: str
    playing: bool
    state: bytes = field(repr=False)
    location: Vec3
    rotation_quat: Vec4
    fov: float
    tracking: bool
    mode: str
    overlays: Mapping[str, bool | str] = field(repr=False)
    drawings: Sequence[DrawingBlock] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, ChoiceBlock] = field(default_factory=dict)
    held: Sequence[HeldBodyBlock] = ()
    mjb: bytes | None = field(default=None, repr=False)
    mjb_file: str | None = None
    actors: Mapping[str, list[int]] | None = field(default=None, repr=False)
    sim_time: float | None = None
    selected: str | None = None
    camera: str | None = None

    @property
    def has_model(self) -> bool:
        """Whether the model came with it."""
        return self.mjb is not None or self.mjb_file is not None

    def load_model(self) -> mujoco.MjModel:
        """The model; ValueError where it was left out because the caller knew it, or where its file is gone."""
        if self.mjb_file is not None:
            return mujoco.MjModel.from_binary_path(self.mjb_file)
        if self.mjb is None:
            raise ValueError("this view has no model, as known_model named it: load that of the view before")
        return mujoco.MjModel.from_binary_path("view.mjb", {"view.mjb": self.mjb})

    def write_to(self, data: mujoco.MjData) -> None:
        """Put the state into data of the model. What follows from it (mj_kinematics, mj_forward) is the caller's."""
        numbers = np.frombuffer(self.state, "<f8")
        arrays = [getattr(data, name) for name in _STATE_PARTS]
        if len(numbers) != sum(array.size for array in arrays):
            raise ValueError(f"the view has {len(numbers)} numbers, which do not fit this model: load the view's own")
        begin = 0
        for array in arrays:
            array.reshape(-1)[:] = numbers[begin : begin + array.size]
            begin += array.size
        if self.sim_time is not None:
            data.time = self.sim_time


class ViewportNamespace(RpcNamespace):
    """Place the viewport camera, let it follow an actor, choose how the scene is drawn, take pictures."""

    NAME = "viewport"

    def set_camera(
        self,
        location: Vector,
        *,
        rotation_quat: Vector | None = None,
        rotation_euler: Vector | None = None,
        fov: float | None = None,
    ) -> CameraPose:
        """Place the camera; returns the pose in force.

        ``location`` in metres, world frame; ``rotation_quat`` x, y, z, w or ``rotation_euler`` roll, pitch, yaw in
        degrees, at identity it looks along +X with +Z up; ``fov`` horizontal, degrees.
        """
        place, (quat, euler) = numbers("location", location), rotated(rotation_quat, rotation_euler)
        request = wire.SetCameraRequest(location=place, rotation_quat=quat, rotation_euler=euler, fov=fov)
        return result_of(CameraPose, self._ask(request))

    def look_through(self, camera: str) -> CameraPose:
        """Show what a camera of the model sees, wherever it goes, until `untrack` or `set_camera` (extension).

        ``camera`` is ``prefix/name``, or the bare name where only one camera has it.
        """
        return result_of(CameraPose, self._ask(wire.LookThroughRequest(camera=camera)))

    def get_camera(self) -> CameraPose:
        """Where the camera is: metres, x, y, z, w and degrees, world frame."""
        return result_of(CameraPose, self._ask(wire.GetCameraRequest()))

    def frame_actor(self, target: Target, *, by_name: bool = False) -> CameraPose:
        """Move the camera so that an actor fills the view; returns the new pose."""
        name, by = targeted(target, by_name)
        return result_of(CameraPose, self._ask(wire.FrameActorRequest(target=name, target_by=by)))

    def set_mode(self, mode: str) -> str:
        """Choose lit, unlit, wireframe, collision or reflections; returns the mode in force."""
        if mode not in MODES:
            raise ValueError(f"{mode!r} is no viewport mode: choose one of {', '.join(MODES)}")
        return self._ask(wire.SetViewportModeRequest(mode=mode)).mode or mode

    def track_actor(
        self, target: Target, *, by_name: bool = False, offset: Vector | None = None, smoothing: float = 0.0
    ) -> str:
        """Let the camera follow an actor from ``offset`` (its frame, metres); returns the actor's path.

        ``smoothing`` in [0, 1): 0 follows at once.
        """
        if not 0.0 <= smoothing < 1.0:
            raise ValueError(f"smoothing is in [0, 1), not {smoothing}")
        name, by = targeted(target, by_name)
        where = maybe_numbers("offset", offset)
        request = wire.TrackActorRequest(target=name, target_by=by, offset=where, smoothing=float(smoothing))
        return self._ask(request).tracked_actor_path

    def untrack(self) -> bool:
        """Stop following, or go back from a camera of the model; returns whether the camera did either."""
        return self._ask(wire.UntrackRequest()).was_tracking

    def set_overlays(self, **overlays: Unpack[ViewportOverlays]) -> dict[str, bool | str]:
        """Switch what MuJoCo draws over the model (extension): ``set_overlays(contacts=True, frames="site")``.

        What is not named stays. Returns every overlay by its word, and what is in force; without words, just that.
        """
        words = ViewportOverlays.__annotations__
        if unknown := overlays.keys() - words:
            raise ValueError(f"there is no overlay {', '.join(sorted(unknown))}; there are: {', '.join(words)}")
        return self._ask(wire.SetViewportOverlaysRequest(**overlays)).overlays

    def read(self, known_model: str | None = None, *, as_file: bool = False) -> WorldView:
        """What the viewport shows, as data for a viewer that draws it by itself (extension).

        ``known_model`` is ``model`` of an earlier view, so that the model's bytes need not come again. It waits for
        nothing but the compilation of an edited level, and may be called at display rate. ``as_file``: a server of
        this machine names a file with the model instead of sending it, which is quicker for a large one; it is there
        until the server has another model.
        """
        request = wire.ReadViewRequest(known_model=known_model, as_file=as_file or None)
        return result_of(WorldView, self._ask(request))

    def editor_url(self) -> str:
        """The page of the browser editor, with the token that opens it (extension); RuntimeError if there is none."""
        reply = self._ask(wire.EditorAddressRequest())
        if reply.url is None:
            raise RuntimeError(reply.reason or "this server has no browser editor")
        return reply.url

    def screenshot(
        self, path: str | os.PathLike[str] | None = None, *, width: int | None = None, height: int | None = None
    ) -> bytes:
        """A picture of what the viewport shows, drawings and texts included, as the bytes of a PNG file.

        With ``path`` it is written there as well, on this machine; the folder must exist. The size is in pixels,
        1280 x 720 unless stated.
        """
        file = None if path is None else _writable(Path(path))
        png = self._ask(wire.ViewportScreenshotRequest(width=width, height=height)).png
        if file is not None and png:
            file.write_bytes(png)
        return png


def _writable(file: Path) -> Path:
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the picture cannot be written to {file}: there is no folder {file.parent.absolute()}")
    if file.is_dir():
        raise IsADirectoryError(f"the picture cannot be written to {file}: it is a folder; name a file in it")
    if file.suffix.lower() not in ("", ".png"):
        raise ValueError(f"the picture is a PNG file: name it {file.with_suffix('.png').name}, not {file.name}")
    return file
