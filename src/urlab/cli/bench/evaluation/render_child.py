"""The floor under the pictures of an observation: a bare ``mujoco.Renderer``, in a process of its own.

Each time it is told to it draws the colours and the depths that all cameras of a policy see, in one state.
"""

import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from urlab.cli.bench.evaluation.pipe_child import obey
from urlab.cli.bench.evaluation.trail import CAMERAS_FILE, MODEL_FILE, STATE_FILE
from urlab.config import RenderProfile
from urlab.physics.engine import FULL_STATE


class BareCameras:
    """The cameras that policies look through, at the resolution of the first."""

    def __init__(self, folder: Path, profile: RenderProfile) -> None:
        self._model = mujoco.MjModel.from_binary_path(str(folder / MODEL_FILE))
        self._data = mujoco.MjData(self._model)
        mujoco.mj_setState(self._model, self._data, np.load(folder / STATE_FILE), FULL_STATE)
        mujoco.mj_forward(self._model, self._data)
        self._cameras = [int(camera) for camera in np.load(folder / CAMERAS_FILE)]
        width, height = map(int, self._model.cam_resolution[self._cameras[0]])
        self._renderer = _renderer(self._model, width, height, profile)
        self._color = np.empty((height, width, 3), np.uint8)
        self._depth = np.empty((height, width), np.float32)

    def once(self) -> None:
        """Draw everything."""
        for camera in self._cameras:
            self._renderer.update_scene(self._data, camera=camera)
            self._renderer.render(out=self._color)
            self._renderer.enable_depth_rendering()
            self._renderer.render(out=self._depth)
            self._renderer.disable_depth_rendering()


def _renderer(model: Any, width: int, height: int, profile: RenderProfile) -> Any:
    """With MuJoCo's settings, or with those of the fast profile."""
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    if profile is RenderProfile.FAST:
        model.vis.quality.offsamples = model.vis.quality.shadowsize = 0
    renderer = mujoco.Renderer(model, height, width)
    if profile is RenderProfile.FAST:
        renderer.scene.flags[:] = 0
        renderer.scene.flags[int(mujoco.mjtRndFlag.mjRND_CULL_FACE)] = 1
    return renderer


if __name__ == "__main__":
    cameras = BareCameras(Path(sys.argv[1]), RenderProfile(sys.argv[2]))
    obey(lambda: None, cameras.once)
