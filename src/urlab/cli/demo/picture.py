"""Pictures of a model's states, drawn in a process of their own: a broken GL driver cannot take anything else down.

``python -m urlab.cli.demo.picture MODEL.mjb STATES.npz OUT.png`` draws the last state from afar and, below it, a
close-up per row of the npz file.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PANEL = (320, 320)
OVERVIEW_HEIGHT = 520
_BACKENDS = ("egl", "osmesa")
_LIMIT_S = 60


def draw_states(model_mjb: bytes, states: list[dict[str, Any]], out: Path) -> str | None:
    """Draw states ({"qpos": ..., "mocap_pos": ..., "mocap_quat": ...}) side by side; returns why not, or None."""
    with tempfile.TemporaryDirectory() as folder:
        model, frames = Path(folder) / "model.mjb", Path(folder) / "states.npz"
        model.write_bytes(model_mjb)
        stacked: dict[str, Any] = {key: np.array([state[key] for state in states]) for key in states[0]}
        np.savez(frames, **stacked)
        reason = ""
        for backend in _BACKENDS:
            done = subprocess.run(
                [sys.executable, "-m", "urlab.cli.demo.picture", str(model), str(frames), str(out)],
                env={**os.environ, "MUJOCO_GL": backend},
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
                check=False,
            )
            if done.returncode == 0:
                return None
            reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
    return f"no software GL ({reason}); `urlab doctor` says what to install"


def draw(model_path: str, states_path: str, out: str) -> None:
    """Draw in this process, with the GL that MUJOCO_GL names."""
    import mujoco
    from PIL import Image

    model = mujoco.MjModel.from_binary_path(model_path)
    with np.load(states_path) as stored:
        states = [{key: stored[key][row] for key in stored.files} for row in range(len(stored["qpos"]))]
    width = PANEL[0] * len(states)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, max(OVERVIEW_HEIGHT, PANEL[1])
    overview = _draw_all(mujoco, model, states[-1:], (width, OVERVIEW_HEIGHT), _FROM_AFAR)
    panels = _draw_all(mujoco, model, states, PANEL, _CLOSE_UP)
    Image.fromarray(np.concatenate([overview[0], np.concatenate(panels, axis=1)])).save(out)


def _draw_all(
    mujoco: Any, model: Any, states: list[dict[str, Any]], size: tuple[int, int], view: dict[str, Any]
) -> list[NDArray[np.uint8]]:
    data, camera = mujoco.MjData(model), mujoco.MjvCamera()
    camera.lookat[:] = view["lookat"]
    camera.distance, camera.azimuth, camera.elevation = view["distance"], view["azimuth"], view["elevation"]
    pictures = []
    with mujoco.Renderer(model, size[1], size[0]) as renderer:
        for state in states:
            for key, values in state.items():
                getattr(data, key)[:] = values
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            pictures.append(renderer.render().copy())
    return pictures


_FROM_AFAR = {"lookat": (0.9, 0.75, 0.3), "distance": 3.9, "azimuth": 65.0, "elevation": -17.0}
_CLOSE_UP = {"lookat": (0.36, 0.0, 0.5), "distance": 1.45, "azimuth": 125.0, "elevation": -18.0}


if __name__ == "__main__":
    draw(*sys.argv[1:4])
