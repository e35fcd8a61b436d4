"""Where to put an arm's joints so that its gripper is above a point: damped least squares on the client's own model."""

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_DAMPING = 1e-3
_ITERATIONS = 200
_DOWN = np.diag([1.0, -1.0, -1.0])


class Reach:
    """Inverse kinematics for the shipped arm, on copies of the client's model data."""

    def __init__(self, model: Any, data: Any, arm: Any) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._data.qpos[:] = data.qpos
        self._site = model.site(f"{arm.prefix}_ee").id
        self._qpos = np.array([joint.qpos_offset for joint in list(arm.joints.values())[:7]])
        self._dofs = np.array([joint.qvel_offset for joint in list(arm.joints.values())[:7]])

    def joints_above(self, point: Vector, height_m: float) -> Vector:
        """Seven joint angles that put the gripper, pointing down, ``height_m`` above a point."""
        target = point + np.array([0.0, 0.0, height_m])
        for _ in range(_ITERATIONS):
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)
            error = self._error(target)
            if np.linalg.norm(error) < 1e-5:
                break
            self._data.qpos[self._qpos] += self._step(error)
        return np.array(self._data.qpos[self._qpos])

    def _error(self, target: Vector) -> Vector:
        rotation = self._data.site_xmat[self._site].reshape(3, 3)
        turn = 0.5 * sum(np.cross(rotation[:, axis], _DOWN[:, axis]) for axis in range(3))
        return np.concatenate([target - self._data.site_xpos[self._site], turn])

    def _step(self, error: Vector) -> Vector:
        jacobian = np.zeros((6, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, jacobian[:3], jacobian[3:], self._site)
        mine = jacobian[:, self._dofs]
        return np.asarray(mine.T @ np.linalg.solve(mine @ mine.T + _DAMPING * np.eye(6), error))
