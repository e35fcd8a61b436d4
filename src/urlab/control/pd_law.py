"""The PD law, for one simulation and for many at once, each with gains of its own where they are drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import maximum, minimum, multiply, subtract

from urlab.control.controller import BatchLaw, Float64Array, Index
from urlab.errors import BadValue
from urlab.physics.batch import SimulationBatch
from urlab.physics.queries import compiled_name
from urlab_wire.ops.stepping import ModelChange

GAIN_FIELDS: Mapping[str, Sequence[str]] = {"controller": ("kp", "kv", "torque_limit")}
"""What is drawn of controllers, by kind."""

LARGEST_GAIN = 3e38
"""A drawn gain is kept to this: what float32 can hold, as the schema promises."""

UNLIMITED = 1e200
"""The range of an unlimited joint: beyond any target, and still finite when multiplied by the largest gain."""


def pd_torque(
    target: Float64Array,
    qpos: Float64Array,
    qvel: Float64Array,
    kp: Float64Array,
    kv: Float64Array,
    limit: Float64Array,
    tau: Float64Array,
    damping: Float64Array,
) -> None:
    """The law: write ``kp * (target - qpos) - kv * qvel`` within ±``limit`` into ``tau``; ``damping`` is for its use.

    Joints are the last axis of all of them; there may be one before it, of simulations.
    """
    subtract(target, qpos, tau)
    multiply(tau, kp, tau)
    multiply(qvel, kv, damping)
    subtract(tau, damping, tau)
    maximum(tau, -limit, out=tau)
    minimum(tau, limit, out=tau)


@dataclass(frozen=True, slots=True)
class BoundJoints:
    """The joints that a PD controller drives, and where their numbers are.

    ``names`` are compiled; a joint with two actuators is there twice. ``setpoints`` finds their targets in a row of
    setpoints; ``ctrl``, ``qpos`` and ``qvel`` are places in the data.
    """

    names: tuple[str, ...]
    kp: Float64Array
    kv: Float64Array
    torque_limit: Float64Array
    lower: Float64Array
    upper: Float64Array
    setpoints: Index
    ctrl: Index
    qpos: Index
    qvel: Index


class BatchPD:
    """`PDController` for the simulations of a batch. Setpoints of what it does not drive are written as they are."""

    follows_state = True

    def __init__(self, joints: BoundJoints, all_ctrl: Index, width: int, batch: SimulationBatch) -> None:
        self.width = width
        self.joints, self._all_ctrl, self._batch = joints, all_ctrl, batch
        self._gains = {"kp": joints.kp, "kv": joints.kv, "torque_limit": joints.torque_limit}
        shape = (len(batch.time), len(joints.kp))
        self._target, self._tau, self._damping = (np.zeros(shape) for _ in range(3))

    def stage(self, setpoints: Float64Array) -> None:
        """Take the setpoints of the next step, (count, width)."""
        self._batch.ctrl[:, self._all_ctrl] = setpoints
        joints = self.joints
        np.maximum(setpoints[:, joints.setpoints], joints.lower, out=self._target)
        np.minimum(self._target, joints.upper, out=self._target)

    def own_gains(self, gain: str) -> Float64Array:
        """One of the gains with a row per simulation, which may be written: (count, joints)."""
        if self._gains[gain].ndim == 1:
            self._gains[gain] = np.tile(self._gains[gain], (len(self._batch.time), 1))
        return self._gains[gain]

    def apply(self) -> None:
        """Write the torques at the states as they are, before a sub-step."""
        joints, batch, gains = self.joints, self._batch, self._gains
        qpos, qvel = batch.qpos[:, joints.qpos], batch.qvel[:, joints.qvel]
        kp, kv, limit = gains["kp"], gains["kv"], gains["torque_limit"]
        pd_torque(self._target, qpos, qvel, kp, kv, limit, self._tau, self._damping)
        batch.ctrl[:, joints.ctrl] = self._tau


class BatchGains:
    """The gains of a batch's PD laws as parameters, by the compiled names of the joints that they drive."""

    def __init__(self, laws: Iterable[BatchLaw], prefixes: Iterable[str]) -> None:
        self._prefixes = tuple(prefixes)
        self._columns: dict[str, tuple[BatchPD, list[int]]] = {}
        for law in laws:
            for column, name in enumerate(law.joints.names if isinstance(law, BatchPD) else ()):
                self._columns.setdefault(name, (law, []))[1].append(column)  # type: ignore[arg-type]
        self._written: dict[int, list[ModelChange]] = {}

    def names(self, kind: str, field: str) -> Sequence[str]:  # noqa: ARG002 - the same for all
        """The compiled names of the joints."""
        return tuple(self._columns)

    def find(self, kind: str, name: str, field: str) -> str:  # noqa: ARG002
        """The compiled name that ``name`` means; BadValue lists those that exist."""
        return compiled_name("joint with a controller", name, self._columns, self._prefixes, BadValue)

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:  # noqa: ARG002
        """One number."""
        return 1, 1

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:  # noqa: ARG002
        """No gain is negative."""
        return 0.0, LARGEST_GAIN

    def value(self, kind: str, name: str, field: str) -> list[float]:  # noqa: ARG002
        """The gain that all simulations have without randomisation."""
        law, columns = self._columns[name]
        return [float(getattr(law.joints, field)[columns[0]])]

    def begin(self, index: int, changes: Sequence[ModelChange]) -> None:
        """Give one simulation these gains, and none that were drawn for it before."""
        for one in self._written.pop(index, ()):
            self._write(index, one, self.value(one.kind, one.name, one.field)[0])
        for one in changes:
            self._write(index, one, one.value[0])
        self._written[index] = list(changes)

    def _write(self, index: int, change: ModelChange, value: float) -> None:
        law, columns = self._columns[change.name]
        law.own_gains(change.field)[index, columns] = value
