"""What drawing one scene through its cameras takes: a state of its own, an MjvScene, and memory of the GL context."""

from typing import Any

import mujoco
import numpy as np

from urlab.cameras.film import Film
from urlab.cameras.frame import Frame, Shot, seal
from urlab.cameras.lens import Lens, lens_of
from urlab.cameras.modes import Mode, make_mode
from urlab.cameras.profile import DrawSettings
from urlab.compile.compiled_scene import CameraSlot, CompiledScene
from urlab.geometry import Quat, Vec3
from urlab.physics.snapshot import Snapshot
from urlab_wire.enums import CameraMode

_POSITIONS = (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight, mujoco.mj_flex, mujoco.mj_tendon)
_SPARE_GEOMS = 100
_CATENARY_GEOMS = 40


class SceneView:
    """Takes pictures of one scene. Made, used and freed on the GL thread; the scene itself is only read."""

    def __init__(self, scene: CompiledScene, settings: DrawSettings) -> None:
        model = scene.model
        self._scene = scene
        self._settings = settings
        self._data = mujoco.MjData(model)
        self._seen: Snapshot | None = None
        self._drawn = mujoco.MjvScene(model, maxgeom=_most_geoms(model))
        self._option = mujoco.MjvOption()
        self._option.flags[int(mujoco.mjtVisFlag.mjVIS_RANGEFINDER)] = 0
        self._eye = mujoco.MjvCamera()
        self._eye.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._modes: dict[CameraMode, Mode] = {}
        self._lenses: dict[tuple[int, tuple[int, int]], Lens] = {}
        self._quat = np.empty(4)
        self._film = Film(model, settings)

    def free(self) -> None:
        """Give back the GL memory; nothing can be drawn afterwards."""
        self._film.free()

    def pose(self, seen: Snapshot) -> None:
        """Take on a state: positions only, as a picture needs no more."""
        if seen is self._seen:
            return
        data, self._seen = self._data, seen
        data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = seen.qpos, seen.mocap_pos, seen.mocap_quat
        for compute in _POSITIONS:
            compute(self._scene.model, data)

    def take(self, shot: Shot, seen: Snapshot) -> Frame:
        """One picture of the state that was taken on, which is that of ``seen``."""
        mode, lens = self._mode(shot.mode), self._lens(shot)
        self._film.load(lens.width, lens.height)
        self._fill(shot.camera, lens)
        mode.set_up(self._drawn)
        mode.expose(self._film, self._drawn)
        pos_w, quat_wxyz = self._pose_of(shot.camera)
        return Frame(
            name=shot.camera.name,
            mode=shot.mode,
            width=lens.width,
            height=lens.height,
            dtype=mode.dtype,
            data=seal(mode.develop(self._film, lens)),
            frame_id=seen.frame_id,
            sim_time=seen.sim_time,
            K=lens.matrix,
            pos_w=pos_w,
            quat_wxyz=quat_wxyz,
        )

    def _fill(self, camera: CameraSlot, lens: Lens) -> None:
        self._eye.fixedcamid = camera.id
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self._scene.model, self._data, self._option, None, self._eye, everything, self._drawn)
        lens.put_on(self._drawn.camera)

    def _mode(self, kind: CameraMode) -> Mode:
        if kind not in self._modes:
            self._modes[kind] = make_mode(kind, self._scene, self._settings)
        return self._modes[kind]

    def _lens(self, shot: Shot) -> Lens:
        key = (shot.camera.id, shot.size)
        if key not in self._lenses:
            self._lenses[key] = lens_of(self._scene.model, *key)
        return self._lenses[key]

    def _pose_of(self, camera: CameraSlot) -> tuple[Vec3, Quat]:
        mujoco.mju_mat2Quat(self._quat, self._data.cam_xmat[camera.id])
        x, y, z = self._data.cam_xpos[camera.id].tolist()
        qw, qx, qy, qz = self._quat.tolist()
        return (x, y, z), ((qw, qx, qy, qz) if qw >= 0 else (-qw, -qx, -qy, -qz))


def _most_geoms(model: Any) -> int:
    """At least as many as MuJoCo will draw of this model."""
    strings = 2 * model.nwrap + _CATENARY_GEOMS * model.ntendon
    return int(2 * (model.ngeom + model.nsite + strings + model.nskin + model.nflex) + _SPARE_GEOMS)
