"""The cameras that a policy sees through, and the two ways to say where a camera looks.

The protocol's cameras look along +X, with +Y to the left and +Z up; MuJoCo's look along -Z, with +X right and +Y up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from urlab.cameras import Frame, RenderRequest, SceneRenderer
from urlab.compile import CompiledScene
from urlab.compile.compiled_scene import CameraSlot
from urlab.config import RenderProfile
from urlab.evaluation.embodiments import CameraMount
from urlab.geometry import Quat, multiply, normalised
from urlab.physics.snapshot import Snapshot
from urlab_wire.enums import CameraMode
from urlab_wire.pixels import pick_channels

_PROTOCOL_IN_MUJOCO: Quat = (0.5, -0.5, 0.5, 0.5)
_MUJOCO_IN_PROTOCOL: Quat = (0.5, 0.5, -0.5, -0.5)


def mujoco_quat(protocol_wxyz: Sequence[float]) -> Quat:
    """MuJoCo's orientation of a camera whose orientation the protocol gives; both w, x, y, z."""
    return multiply(normalised(protocol_wxyz), _MUJOCO_IN_PROTOCOL)


def protocol_quat(mujoco_wxyz: Sequence[float]) -> Quat:
    """The protocol's orientation of a camera whose orientation MuJoCo gives; both w, x, y, z, and w is not negative."""
    w, x, y, z = multiply(normalised(mujoco_wxyz), _PROTOCOL_IN_MUJOCO)
    return (w, x, y, z) if w >= 0 else (-w, -x, -y, -z)


@dataclass(frozen=True)
class CameraView:
    """What one camera sees, and from where. The arrays may be read-only.

    ``rgb`` uint8 (height, width, 3); ``depth`` float32 (height, width), metres to the image plane, inf for nothing;
    ``intrinsics`` (3, 3) in pixels; ``p`` (3,) and ``q`` (4,) w, x, y, z in the world: it looks along +X, +Z is up.
    """

    rgb: NDArray[np.uint8]
    depth: NDArray[np.float32]
    intrinsics: NDArray[np.float64]
    p: NDArray[np.float64]
    q: NDArray[np.float64]


class CameraRig:
    """The mounted cameras of one compiled scene. Any thread may call it; drawing is done on the GL thread."""

    def __init__(self, scene: CompiledScene, mounts: tuple[CameraMount, ...], profile: RenderProfile) -> None:
        slots = _slots(scene)
        self._mounts = mounts
        self._requests = [
            RenderRequest(slots[mount.name], mode) for mount in mounts for mode in (CameraMode.REAL, CameraMode.DEPTH)
        ]
        self._renderer = SceneRenderer(scene, profile)

    def take(self, snapshot: Snapshot) -> dict[str, CameraView]:
        """All cameras' views of one state, by name; NoViewport when nothing can be drawn on this machine."""
        frames = self._renderer.render(self._requests, snapshot)
        pairs = zip(frames[::2], frames[1::2], strict=True)
        return {mount.name: _view(mount, real, depth) for mount, (real, depth) in zip(self._mounts, pairs, strict=True)}

    def close(self) -> None:
        """Give back the GL memory. May be called twice."""
        self._renderer.close()


def _slots(scene: CompiledScene) -> dict[str, CameraSlot]:
    """By the name that the mount has."""
    robots = [camera for robot in scene.articulations for camera in robot.cameras]
    return {camera.short: camera for camera in (*robots, *scene.global_cameras)}


def _view(mount: CameraMount, real: Frame, depth: Frame) -> CameraView:
    return CameraView(
        rgb=pick_channels(real.array(), "bgra"),
        depth=depth.array(),
        intrinsics=np.array([[mount.fx, 0.0, mount.cx], [0.0, mount.fy, mount.cy], [0.0, 0.0, 1.0]]),
        p=np.array(real.pos_w),
        q=np.array(protocol_quat(real.quat_wxyz)),
    )
