"""Pictures of a scene: what is asked for, what comes back, and the renderer that draws it on the GL thread."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.cameras.gl_thread import GlThread, shared_gl
from urlab.cameras.modes import RenderMode, make_mode
from urlab.cameras.noise import CameraNoise
from urlab.cameras.offscreen_buffer import OffscreenBuffer
from urlab.cameras.profile import SETTINGS, effective_profile
from urlab.cameras.projection import Matrix3, Projection, camera_projection
from urlab.compile.compiled_scene import CameraSlot, CompiledScene
from urlab.config import RenderProfile
from urlab.errors import NoViewport
from urlab.geometry import Quat, Vec3
from urlab_wire.enums import CameraMode

_POSITIONS = (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight, mujoco.mj_flex, mujoco.mj_tendon)
_SPARE_GEOMS = 100
_CATENARY_GEOMS = 40
_FREE_LIMIT_S = 1.5


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """One picture to draw: a camera of the scene and what its pixels are to mean.

    ``resolution`` (width, height) replaces the camera's own.
    """

    camera: CameraSlot
    mode: CameraMode
    resolution: tuple[int, int] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.resolution or self.camera.resolution


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture, and where and when it was taken. ``name`` is the camera's compiled name.

    ``data`` are pixels of the mode's format, row by row from the top left, in memory that is never written to again.
    ``K`` is the 3x3 intrinsic matrix in pixels, row by row (`Projection` says where pixels are). ``pos_w`` and
    ``quat_wxyz`` are the pose of the camera in the world, in MuJoCo's convention: it looks along its own -Z, +X is
    right and +Y is up.
    """

    name: str
    mode: CameraMode
    width: int
    height: int
    data: memoryview
    frame_id: int
    sim_time: float
    K: Matrix3
    pos_w: Vec3
    quat_wxyz: Quat

    def array(self) -> NDArray[Any]:
        """The pixels as `PixelFormat` shapes them, not copied and read-only."""
        return self.mode.pixel_format.array(self.data, self.width, self.height)

    def metadata(self) -> dict[str, Any]:
        """Everything but the pixels, as plain data that travels beside them."""
        return {
            "width": self.width,
            "height": self.height,
            "dtype": self.mode.pixel_format.word,
            "mode": self.mode.value,
            "frame_id": self.frame_id,
            "sim_time": self.sim_time,
            "K": list(self.K),
            "pos": list(self.pos_w),
            "quat": list(self.quat_wxyz),
        }


class DrawnState(Protocol):
    """A state as far as pictures show it, such as a `Snapshot`: positions of the model's joints and mocap bodies."""

    @property
    def frame_id(self) -> int:
        """Its number, for the frame."""

    @property
    def sim_time(self) -> float:
        """Simulated seconds."""

    @property
    def qpos(self) -> NDArray[np.float64]:
        """(nq,)."""

    @property
    def mocap_pos(self) -> NDArray[np.float64]:
        """(nmocap, 3)."""

    @property
    def mocap_quat(self) -> NDArray[np.float64]:
        """(nmocap, 4), w first."""


class SceneRenderer:
    """Draws one compiled scene through its cameras. Any thread may call it; the drawing is done on the GL thread.

    It keeps a state of its own, and never touches the one that is stepped; the scene itself is only read. That state
    and the GL memory are made with the first picture, and belong to the GL thread alone.
    """

    def __init__(self, scene: CompiledScene, profile: RenderProfile, gl: GlThread | None = None) -> None:
        self._scene = scene
        self._wanted = profile
        self._gl = gl or shared_gl()
        self._asked = self._closed = False
        self._option = mujoco.MjvOption()
        self._option.flags[int(mujoco.mjtVisFlag.mjVIS_RANGEFINDER)] = 0
        self._viewpoint = mujoco.MjvCamera()
        self._viewpoint.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._quat = np.empty(4)
        self.noise = CameraNoise(scene)
        self._modes: dict[CameraMode, RenderMode] = {}
        self._buffer: OffscreenBuffer | None = None
        self._data: Any = None
        self._posed: DrawnState | None = None
        self._drawn: Any = None

    @property
    def gl_name(self) -> str:
        """What draws, as its driver calls it; NoViewport when nothing does."""
        return self._gl.gl_name()

    @property
    def profile(self) -> RenderProfile:
        """The profile in force, never auto; NoViewport when nothing draws and it depends on what does."""
        if self._wanted is not RenderProfile.AUTO:
            return self._wanted
        return effective_profile(self._wanted, self.gl_name)

    @property
    def is_in_use(self) -> bool:
        """Whether it holds GL memory."""
        return self._buffer is not None

    def render(self, requests: Sequence[RenderRequest], snapshot: DrawnState) -> list[Frame]:
        """Draw pictures, in the order asked for, all of the one state. Blocks until they are there.

        NoViewport when nothing can be drawn on this machine, or not at that size, or not any more.
        """
        if not requests:
            return []
        self._asked = True
        return self._gl.run(lambda: self._draw_all(requests, snapshot))

    def begin(self, requests: Sequence[RenderRequest], snapshot: DrawnState) -> "Future[list[Frame]]":
        """Like `render`, without waiting: the frames are the result of what is returned."""
        self._asked = True
        return self._gl.post(lambda: self._draw_all(requests, snapshot))

    def close(self) -> None:
        """Give back the GL memory; nothing can be drawn afterwards. May be called twice."""
        self._closed = True
        if not self._asked:
            return
        with suppress(NoViewport, TimeoutError):
            self._gl.post(self.free).result(_FREE_LIMIT_S)

    # -- on the GL thread ---------------------------------------------------------------------------------------

    def free(self) -> None:
        """Give back the GL memory; the next picture takes it anew. GL thread only."""
        buffer, self._buffer = self._buffer, None
        self._data = self._posed = self._drawn = None
        self._modes.clear()
        if buffer is not None:
            buffer.free()

    def _draw_all(self, requests: Sequence[RenderRequest], snapshot: DrawnState) -> list[Frame]:
        if self._closed:
            raise NoViewport("this scene is not drawn any more: it was closed")
        try:
            buffer = self._open()
            if snapshot is not self._posed:
                set_positions(self._scene.model, self._data, snapshot)
                self._posed = snapshot
            return [self._draw(buffer, request, snapshot) for request in requests]
        except (mujoco.FatalError, NoViewport) as refused:
            self.free()
            sizes = ", ".join(sorted({"x".join(map(str, request.size)) for request in requests}))
            raise NoViewport(f"this scene cannot be drawn at {sizes}: {refused}") from refused

    def _open(self) -> OffscreenBuffer:
        if self._buffer is None:
            model, settings = self._scene.model, SETTINGS[self.profile]
            self._data = mujoco.MjData(model)
            self._drawn = mujoco.MjvScene(model, maxgeom=max_geoms(model))
            self._buffer = OffscreenBuffer(model, settings)
            self._gl.adopt(self)
        return self._buffer

    def _draw(self, buffer: OffscreenBuffer, request: RenderRequest, snapshot: DrawnState) -> Frame:
        """One picture of the state that ``snapshot`` holds, and the positions were set to."""
        camera, mode, projection = request.camera, self._mode(request.mode), self._projection(request)
        buffer.resize(projection.width, projection.height)
        self._viewpoint.fixedcamid = camera.id
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(
            self._scene.model, self._data, self._option, None, self._viewpoint, everything, self._drawn
        )
        projection.set_frustum(self._drawn.camera)
        mode.prepare(self._drawn)
        mode.render(buffer, self._drawn)
        pixels = mode.read_pixels(buffer, projection)
        if self.noise.amounts:
            self.noise.add(pixels, camera.name, request.mode, snapshot.sim_time)
        pos_w, quat_wxyz = self._pose_of(camera)
        return Frame(
            name=camera.name,
            mode=request.mode,
            width=projection.width,
            height=projection.height,
            data=_read_only(pixels),
            frame_id=snapshot.frame_id,
            sim_time=snapshot.sim_time,
            K=projection.matrix,
            pos_w=pos_w,
            quat_wxyz=quat_wxyz,
        )

    def _mode(self, kind: CameraMode) -> RenderMode:
        if kind not in self._modes:
            self._modes[kind] = make_mode(kind, self._scene, SETTINGS[self.profile])
        return self._modes[kind]

    def _projection(self, request: RenderRequest) -> Projection:
        return camera_projection(self._scene.model, request.camera.id, request.size)

    def _pose_of(self, camera: CameraSlot) -> tuple[Vec3, Quat]:
        mujoco.mju_mat2Quat(self._quat, self._data.cam_xmat[camera.id])
        x, y, z = self._data.cam_xpos[camera.id].tolist()
        qw, qx, qy, qz = self._quat.tolist()
        return (x, y, z), ((qw, qx, qy, qz) if qw >= 0 else (-qw, -qx, -qy, -qz))


def rendering(wanted: RenderProfile, gl: GlThread | None = None) -> dict[str, str]:
    """How pictures are drawn here: ``profile`` in force and ``renderer``, or ``problem`` if nothing can be drawn."""
    try:
        name = (gl or shared_gl()).gl_name()
    except NoViewport as dark:
        return {"profile": RenderProfile.AUTO.value, "problem": dark.message}
    return {"profile": effective_profile(wanted, name).value, "renderer": name}


def set_positions(model: Any, data: Any, state: Any) -> None:
    """Take on the ``qpos``, ``mocap_pos`` and ``mocap_quat`` of a state, and what a picture needs of its consequences.

    Positions only: velocities, contacts and forces are not computed.
    """
    data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = state.qpos, state.mocap_pos, state.mocap_quat
    for compute in _POSITIONS:
        compute(model, data)


def max_geoms(model: Any) -> int:
    """Room in an MjvScene for at least as many geoms as MuJoCo will draw of this model."""
    strings = 2 * model.nwrap + _CATENARY_GEOMS * model.ntendon
    return int(2 * (model.ngeom + model.nsite + strings + model.nskin + model.nflex) + _SPARE_GEOMS)


def _read_only(pixels: NDArray[Any]) -> memoryview:
    """The bytes of an array that nothing else refers to. It is not copied, and cannot be written to any more."""
    pixels.flags.writeable = False
    return pixels.data.cast("B")
