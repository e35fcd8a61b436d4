"""A dynamic body of the scene: its root state, and the wrench to put on it."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

from urlab_client.checks import finite_numbers
from urlab_client.enums import StepMode
from urlab_client.errors import URLabGoneError
from urlab_client.lookup import FixedAttributes

if TYPE_CHECKING:
    from urlab_client.client import URLabClient

Array = npt.NDArray[np.float64]
StateBlock = Mapping[str, Sequence[float]]
"""What a reply tells of one body, by field: xpos, xquat, qpos, qvel."""

_DOWN = np.array([0.0, 0.0, -1.0])


class Root(NamedTuple):
    """Where a body's root stands in the compiled model; what follows ``has_free_base`` is there with a free joint only.

    The local offsets point into an articulation's own arrays.
    """

    body_id: int = -1
    has_free_base: bool = False
    free_joint: str | None = None
    free_joint_id: int | None = None
    qpos_offset: int | None = None
    qvel_offset: int | None = None
    qpos_local: int = 0
    qvel_local: int = 0


NO_ROOT = Root()


class URLabEntity(FixedAttributes):
    """One body that streams with every step; articulations are entities too.

    Poses and velocities are read from ``client.data`` on access and returned as fresh arrays, so writing into them
    changes nothing: hold ``client._data_lock`` to read them from another thread than the stepping one. Positions are
    metres in the world frame. Without a local model they come from the last reply and, where it does not tell them,
    from the model's initial pose.

    A handle stays good as long as the running scene has a body of its name: over a second ``discover()``, over
    ``sim.stop()`` and ``sim.start()``. While it has none, use of the handle raises `URLabGoneError`.
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
        self._name = name
        self._pending_xfrc: dict[str, list[float]] = {}
        root = Root(body_id, has_free_base, free_joint, free_joint_id, qpos_offset, qvel_offset)
        self._renew(root, actor_id, client)

    def _renew(self, root: Root, actor_id: str, client: "URLabClient | None") -> None:
        """Become the body of a new handshake."""
        self._root = root
        self._actor_id = actor_id
        self._client = client
        self._gone = ""
        self._pending_xfrc.clear()
        self._wire_state: StateBlock = {}
        self._initial_pose: Mapping[str, Array] = {}

    def _retire(self, reason: str) -> None:
        """The running scene does not have this any more: uses raise, with the reason."""
        self._gone = reason

    def _refuse_when_gone(self) -> None:
        if self._gone:
            raise URLabGoneError(f"{type(self).__name__} {self._name!r}: {self._gone}")

    def __repr__(self) -> str:
        words = [repr(self._name), "free" if self.has_free_base else "no free joint", f"body_id={self.body_id}"]
        return f"{type(self).__name__}({', '.join([*words, *(['gone'] if self._gone else [])])})"

    @property
    def name(self) -> str:
        """The compiled name of the body; an articulation's prefix."""
        return self._name

    @property
    def actor_id(self) -> str:
        """The stable id that the actor was spawned with; empty if it has none."""
        return self._actor_id

    @property
    def body_id(self) -> int:
        """The MuJoCo id of the root body; -1 where the handshake does not tell it."""
        return self._root.body_id

    @property
    def has_free_base(self) -> bool:
        """Whether the root has a free joint."""
        return self._root.has_free_base

    @property
    def free_joint(self) -> str | None:
        """The compiled name of the free joint; None without one."""
        return self._root.free_joint

    @property
    def free_joint_id(self) -> int | None:
        """The MuJoCo id of the free joint; None without one."""
        return self._root.free_joint_id

    @property
    def qpos_offset(self) -> int | None:
        """Where the root's seven numbers begin in ``client.data.qpos``; None without a free joint."""
        return self._root.qpos_offset

    @property
    def qvel_offset(self) -> int | None:
        """Where the root's six numbers begin in ``client.data.qvel``; None without a free joint."""
        return self._root.qvel_offset

    @property
    def root_pos_w(self) -> Array:
        """Position of the root, (3,) metres, world frame; a copy."""
        return self._pose("xpos", np.zeros(3))

    @property
    def root_quat_w(self) -> Array:
        """Orientation of the root in the world frame, (4,) unit quaternion as w, x, y, z (MuJoCo); a copy."""
        return self._pose("xquat", np.array([1.0, 0.0, 0.0, 0.0]))

    @property
    def root_quat_xyzw(self) -> Array:
        """Orientation of the root in the world frame, (4,) unit quaternion as x, y, z, w (SciPy, ROS); a copy."""
        return np.roll(self.root_quat_w, -1)

    @property
    def root_lin_vel_w(self) -> Array:
        """Linear velocity of the root, (3,) m/s, world; zero without a free joint; a copy."""
        return self._free_velocity(0)

    @property
    def root_ang_vel_b(self) -> Array:
        """Angular velocity of the root, (3,) rad/s, body frame; zero without a free joint; a copy."""
        return self._free_velocity(3)

    @property
    def root_ang_vel_w(self) -> Array:
        """Angular velocity of the root, (3,) rad/s, world; a copy."""
        return _rotate(self.root_ang_vel_b, self.root_quat_w)

    @property
    def root_lin_vel_b(self) -> Array:
        """Linear velocity of the root, (3,) m/s, body frame; a copy."""
        return _rotate_back(self.root_lin_vel_w, self.root_quat_w)

    @property
    def projected_gravity_b(self) -> Array:
        """The unit vector that points down, (3,), body frame; a copy."""
        return _rotate_back(_DOWN, self.root_quat_w)

    def apply_xfrc(self, force: Sequence[float] = (0, 0, 0), torque: Sequence[float] = (0, 0, 0)) -> None:
        """Put a wrench (N, N m, world frame) on the body for the next step. Inert in puppet mode."""
        self._buffer_xfrc(self.name, force, torque)

    def clear_xfrc(self) -> None:
        """Forget the wrenches that wait for the next step."""
        self._pending_xfrc.clear()

    def _buffer_xfrc(self, body: str, force: Sequence[float], torque: Sequence[float]) -> None:
        self._refuse_when_gone()
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
        self._refuse_when_gone()
        return self._client._evaluated_data() if self._client is not None else None

    @property
    def _state(self) -> mujoco.MjData | None:
        """The local data, of which the state (qpos, qvel, ...) is current; None without."""
        self._refuse_when_gone()
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
