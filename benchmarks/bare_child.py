"""Floors in a process of their own, with MuJoCo and nothing of ours: physics, and pictures of a bare renderer.

``python -m benchmarks.bare_child FOLDER`` reads `MODEL_FILE`, and what else there is, from that folder. It obeys lines
of JSON on stdin: ``{"do": "reset"}``, ``{"do": "steps"}``, ``{"do": "draw", "cameras": [id, ...], ...}``; each is
answered with the nanoseconds that every repetition (``count``, else one) took.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

MODEL_FILE, STATE_FILE, CONTROLS_FILE = "scene.mjb", "state.npy", "controls.npy"
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
FAST, DEFAULT = "fast", "default"


class BarePhysics:
    """The mj_steps of a sequence of actions: a folder has model, first state, and controls (actions, sub-steps, nu)."""

    def __init__(self, folder: Path) -> None:
        self.model = mujoco.MjModel.from_binary_path(str(folder / MODEL_FILE))
        self.data = mujoco.MjData(self.model)
        self._begin = np.load(folder / STATE_FILE)
        self._controls = [list(action) for action in np.load(folder / CONTROLS_FILE)]
        self.reset()

    def reset(self) -> None:
        """Back to the begin of the sequence."""
        mujoco.mj_setState(self.model, self.data, self._begin, STATE)
        self._next = 0

    def once(self) -> None:
        """The sub-steps of the next action."""
        model, data = self.model, self.data
        for controls in self._controls[self._next]:
            data.ctrl[:] = controls
            mujoco.mj_step(model, data)
        self._next += 1


class BareRenderer:
    """A ``mujoco.Renderer`` with MuJoCo's default settings or with those of the fast profile."""

    def __init__(self, mjb: str, width: int, height: int, profile: str) -> None:
        self.model = mujoco.MjModel.from_binary_path(mjb)
        self.data = mujoco.MjData(self.model)
        vis = self.model.vis
        vis.global_.offwidth, vis.global_.offheight = width, height
        if profile == FAST:
            vis.quality.offsamples = vis.quality.shadowsize = 0
        self._renderer = mujoco.Renderer(self.model, height, width)
        if profile == FAST:
            self._renderer.scene.flags[:] = 0
            self._renderer.scene.flags[int(mujoco.mjtRndFlag.mjRND_CULL_FACE)] = 1
        self._color = np.empty((height, width, 3), np.uint8)
        self._depth = np.empty((height, width), np.float32)

    def once(self, cameras: Sequence[int], modes: Sequence[str], *, step: bool) -> None:
        """Pictures of some cameras, each in the modes "real" and "depth" or one of them; a step before, if asked."""
        if step:
            mujoco.mj_step(self.model, self.data)
        for camera in cameras:
            self._renderer.update_scene(self.data, camera=camera)
            if "real" in modes:
                self._renderer.render(out=self._color)
            if "depth" in modes:
                self._renderer.enable_depth_rendering()
                self._renderer.render(out=self._depth)
                self._renderer.disable_depth_rendering()

    def put(self, state: NDArray[np.float64]) -> None:
        """Show that state."""
        mujoco.mj_setState(self.model, self.data, state, STATE)
        mujoco.mj_forward(self.model, self.data)

    def close(self) -> None:
        """Give back GL memory."""
        self._renderer.close()


class _Worker:
    """What the process does; a renderer is kept until another one is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._renderer: tuple[tuple[Any, ...], BareRenderer] | None = None
        self._physics = BarePhysics(folder) if (folder / CONTROLS_FILE).exists() else None

    def obey(self, order: dict[str, Any]) -> None:
        """Carry out one order once."""
        if order["do"] == "draw":
            renderer = self._renderer_for((order["width"], order["height"], order["profile"]))
            renderer.once(order["cameras"], order["modes"], step=order["step"])
        else:
            assert self._physics is not None
            (self._physics.reset if order["do"] == "reset" else self._physics.once)()

    def _renderer_for(self, key: tuple[int, int, str]) -> BareRenderer:
        if self._renderer is None or self._renderer[0] != key:
            if self._renderer is not None:
                self._renderer[1].close()
            self._renderer = (key, BareRenderer(str(self._folder / MODEL_FILE), *key))
            if (self._folder / STATE_FILE).exists():
                self._renderer[1].put(np.load(self._folder / STATE_FILE))
        return self._renderer[1]


def main(folder: Path) -> None:
    """Obey until stdin ends."""
    worker = _Worker(folder)
    for line in sys.stdin:
        order, taken = json.loads(line), []
        for _ in range(order.get("count", 1)):
            begin = time.perf_counter_ns()
            worker.obey(order)
            taken.append(time.perf_counter_ns() - begin)
        print(json.dumps(taken), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
