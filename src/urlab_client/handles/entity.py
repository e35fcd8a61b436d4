"""A dynamic body of the scene: its root state, and the wrench to put on it."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import numpy.typing as npt

from urlab_client.checks import finite_numbers
from urlab_client.enums import StepMode

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

Array = npt.NDArray[np.float64]
StateBlock = Mapping[str, Sequence[float]]
"""What a reply tells of one body, by field: xpos, xquat, qpos, qvel."""

_DOWN = np.array([0.0, 0.0, -1.0])


class URLabEntity:
    """One body that streams with every step; articulations are entities too.

    Poses and velocities are read from ``client.data`` on access and returned as fresh arrays: hold
    ``client._data_lock`` to read them from another thread than the stepping one. Positions are metres in the world
    frame; ``qpos_offset`` / ``qvel_offset`` point into ``client.data`` and are None without a free joint. Without a
    local model they come from the last reply and, where it does not tell them, from the model's initial pose.
    """

    def __init__(
        self,
        name: str,
        body_id: int = -1,
        has_free_base: bool = False,
        free_joint: str | None = None,
        free_joint_id: int | None = None,
        qpos_offset: int | None = None,
        qvel_offset: int | None = None,
        *,
        actor_id: str = "",
        client: "URLabClient | None" = None,
    ) -> None:
        self.name = name
        self.body_id = body_id
        self.has_free_base = has_free_base
        self.free_joint = free_joint
        self.free_joint_id = free_joint_id
        self.qpos_offset = qpos_offset
        self.qvel_offset = qvel_offset
        self.actor_id = actor_id
        self._client = client
        self._pending_xfrc: dict[str, list[float]] = {}
        self._wire_state: StateBlock = {}
        self._initial_pose: Mapping[str, Array] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, body_id={self.body_id}, free={self.has_free_base})"

    @property
    def root_pos_w(self) -> Array:
        """Position of the root, (3,), world."""
        return self._pose("xpos", np.zeros(3))

    @property
    def root_quat_w(self) -> Array:
        """Orientation of the root, (4,) as w, x, y, z."""
        return self._pose("xquat", np.array([1.0, 0.0, 0.0, 0.0]))

    @property
    def root_quat_xyzw(self) -> Array:
        """Orientation of the root, (4,) as x, y, z, w."""
        return np.roll(self.root_quat_w, -1)

    @property
    def root_lin_vel_w(self) -> Array:
        """Linear velocity of the root, (3,) m/s, world; zero without a free joint."""
        return self._free_velocity(0)

    @property
    def root_ang_vel_b(self) -> Array:
        """Angular velocity of the root, (3,) rad/s, body frame; zero without a free joint."""
        return self._free_velocity(3)

    @property
    def root_ang_vel_w(self) -> Array:
        """Angular velocity of the root, (3,) rad/s, world."""
        return _rotate(self.root_ang_vel_b, self.root_quat_w)

    @property
    def root_lin_vel_b(self) -> Array:
        """Linear velocity of the root, (3,) m/s, body frame."""
        return _rotate_back(self.root_lin_vel_w, self.root_quat_w)

    @property
    def projected_gravity_b(self) -> Array:
        """The unit vector that points down, (3,), body frame."""
        return _rotate_back(_DOWN, self.root_quat_w)

    def apply_xfrc(self, force: Sequence[float] = (0, 0, 0), torque: Sequence[float] = (0, 0, 0)) -> None:
        """Put a wrench (N, N m, world frame) on the body for the next step. Inert in puppet mode."""
        self._buffer_xfrc(self.name, force, torque)

    def clear_xfrc(self) -> None:
        """Forget the wrenches that wait for the next step."""
        self._pending_xfrc.clear()

    def _buffer_xfrc(self, body: str, force: Sequence[float], torque: Sequence[float]) -> None:
        if self._client is not None and self._client.step_mode is StepMode.PUPPET:
            warnings.warn(
                f"apply_xfrc on {self.name!r} has no effect in puppet mode: write client.data.xfrc_applied instead",
                stacklevel=3,
            )
        self._pending_xfrc[body] = [
            *finite_numbers(f"force on {body!r}", force),
            *finite_numbers(f"torque on {body!r}", torque),
        ]

    def _take_xfrc(self) -> dict[str, list[float]]:
        pending, self._pending_xfrc = self._pending_xfrc, {}
        return pending

    @property
    def _data(self) -> mujoco.MjData | None:
        """The local data, current; None without."""
        return self._client._evaluated_data() if self._client is not None else None

    @property
    def _state(self) -> mujoco.MjData | None:
        """The local data, of which the state (qpos, qvel, ...) is current; None without."""
        return self._client._written_data() if self._client is not None else None

    def _pose(self, key: str, default: Array) -> Array:
        data = self._data
        if data is not None and self.body_id >= 0:
            return np.array(getattr(data, key)[self.body_id])
        reported = self._reported(key)
        return np.array(self._initial_pose.get(key, default) if reported is None else reported, dtype=np.float64)

    def _reported(self, key: str) -> Sequence[float] | None:
        """The root's xpos, xquat or qvel out of the last reply."""
        return self._wire_state.get(key)

    def _free_velocity(self, first: int) -> Array:
        data = self._state
        if data is not None and self.qvel_offset is not None:
            start = self.qvel_offset + first
            return np.array(data.qvel[start : start + 3])
        reported = self._reported("qvel") if data is None and self.has_free_base else None
        return np.zeros(3) if reported is None else np.array(reported[first : first + 3], dtype=np.float64)


def _rotate(vector: Array, quat_wxyz: Array) -> Array:
    out = np.empty(3)
    mujoco.mju_rotVecQuat(out, vector, quat_wxyz)
    return out


def _rotate_back(vector: Array, quat_wxyz: Array) -> Array:
    inverse = np.empty(4)
    mujoco.mju_negQuat(inverse, quat_wxyz)
    return _rotate(vector, inverse)
