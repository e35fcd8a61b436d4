"""The projection of a camera: its intrinsics in pixels, and how far it sees."""

import math
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

_DEFAULT_NEAR, _DEFAULT_FAR = float(np.float32(0.01)), 50.0
"""What a model that says nothing has in ``visual/map``, as shares of its extent."""

_NEAREST_M, _FARTHEST_M = 0.01, 100.0
_ORTHOGRAPHIC = int(mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC)

Matrix3 = tuple[float, float, float, float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Projection:
    """Focal lengths and principal point in pixels; u grows to the right, v down, (0, 0) is the picture's corner.

    So the middle of the first pixel is at (0.5, 0.5). A point x right, y down and z ahead of the camera is seen at
    u = fx x / z + cx, v = fy y / z + cy; where ``orthographic``, at u = fx x + cx, v = fy y + cy. What is nearer
    than ``near_m`` or farther than ``far_m`` along the optical axis is not seen.
    """

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    near_m: float
    far_m: float
    orthographic: bool = False

    @property
    def matrix(self) -> Matrix3:
        """K, row by row."""
        return (self.fx, 0.0, self.cx, 0.0, self.fy, self.cy, 0.0, 0.0, 1.0)

    def set_frustum(self, gl_cameras: Any) -> None:
        """Give this projection to the GL cameras (mjvGLCamera) of an MjvScene."""
        reach = 1.0 if self.orthographic else self.near_m
        left, right = -self.cx / self.fx * reach, (self.width - self.cx) / self.fx * reach
        for camera in gl_cameras:
            camera.frustum_near, camera.frustum_far = self.near_m, self.far_m
            camera.frustum_center, camera.frustum_width = (left + right) / 2, (right - left) / 2
            camera.frustum_top = self.cy / self.fy * reach
            camera.frustum_bottom = -(self.height - self.cy) / self.fy * reach


def camera_projection(model: Any, camera: int, resolution: tuple[int, int]) -> Projection:
    """The projection of a model's camera for pictures of (width, height) pixels.

    A camera with a sensor size has the intrinsics that its MJCF states, scaled to the resolution; any other one has
    square pixels, its principal point in the middle, and ``fovy`` as the vertical field of view.
    """
    width, height = resolution
    near_m, far_m = depth_range(model)
    if int(model.cam_projection[camera]) == _ORTHOGRAPHIC:
        scale = height / float(model.cam_fovy[camera])
        return Projection(width, height, scale, scale, width / 2, height / 2, near_m, far_m, orthographic=True)
    if float(model.cam_sensorsize[camera, 1]) > 0:
        return Projection(width, height, *_stated(model, camera, width, height), near_m, far_m)
    focal = height / 2 / math.tan(math.radians(float(model.cam_fovy[camera])) / 2)
    return Projection(width, height, focal, focal, width / 2, height / 2, near_m, far_m)


def depth_range(model: Any) -> tuple[float, float]:
    """The nearest and the farthest distance that is drawn, in metres.

    MuJoCo takes them as shares of the scene's extent, which in a large scene would hide what a gripper holds. So
    everything from 1 cm to 100 m is drawn, and more where MuJoCo draws more. An author who asks for less than
    MuJoCo's default share (a larger znear, a smaller zfar) gets what MuJoCo would give.
    """
    extent = max(float(model.stat.extent), 1e-6)
    near, far = float(model.vis.map.znear), float(model.vis.map.zfar)
    near_m = near * extent if near > _DEFAULT_NEAR else min(near * extent, _NEAREST_M)
    far_m = far * extent if far < _DEFAULT_FAR else max(far * extent, _FARTHEST_M)
    return near_m, far_m


def _stated(model: Any, camera: int, width: int, height: int) -> tuple[float, float, float, float]:
    """fx, fy, cx, cy; MuJoCo counts the principal point from the middle, to the left and upwards."""
    across, down = (float(length) for length in model.cam_sensorsize[camera])
    focal_x, focal_y, left, up = (float(length) for length in model.cam_intrinsic[camera])
    x, y = width / across, height / down
    return focal_x * x, focal_y * y, width / 2 - left * x, height / 2 - up * y
