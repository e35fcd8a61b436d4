"""The floor under a camera frame: a bare ``mujoco.Renderer``, in a process of its own.

It is asked over stdin, a JSON line each with camera, mode, width, height, profile and count; it answers with the
nanoseconds that each of ``count`` steps with one picture took.
"""

import json
import sys
import time
from typing import Any

import mujoco
import numpy as np

DEFAULT, FAST = "default", "fast"


class BareCamera:
    """A step, then a picture of it; with MuJoCo's default settings or with those of the fast profile."""

    def __init__(self, mjb: str, order: dict[str, Any]) -> None:
        self.model = mujoco.MjModel.from_binary_path(mjb)
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = order["width"], order["height"]
        if order["profile"] == FAST:
            self.model.vis.quality.offsamples = 0
            self.model.vis.quality.shadowsize = 0
        self.data = mujoco.MjData(self.model)
        self.renderer = mujoco.Renderer(self.model, order["height"], order["width"])
        if order["profile"] == FAST:
            flags = self.renderer.scene.flags
            flags[:] = 0
            flags[int(mujoco.mjtRndFlag.mjRND_CULL_FACE)] = 1
        if order["mode"] == "depth":
            self.renderer.enable_depth_rendering()
        self.camera = order["camera"]
        self.picture = np.empty((order["height"], order["width"], 3), np.uint8)
        if order["mode"] == "depth":
            self.picture = np.empty((order["height"], order["width"]), np.float32)

    def once(self) -> None:
        """Advance and look."""
        mujoco.mj_step(self.model, self.data)
        self.renderer.update_scene(self.data, camera=self.camera)
        self.renderer.render(out=self.picture)


def main(mjb: str) -> None:
    """Answer until stdin ends."""
    cameras: dict[str, BareCamera] = {}
    for line in sys.stdin:
        order = json.loads(line)
        key = json.dumps({name: value for name, value in order.items() if name != "count"})
        if key not in cameras:
            for old in cameras.values():
                old.renderer.close()
            cameras = {key: BareCamera(mjb, order)}
        once, taken = cameras[key].once, []
        for _ in range(order["count"]):
            begin = time.perf_counter_ns()
            once()
            taken.append(time.perf_counter_ns() - begin)
        print(json.dumps(taken), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
