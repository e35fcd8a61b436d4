"""Controllers of many simulations at once: the same laws as the server's, over arrays with a row per simulation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from urlab.control.controller import index_of
from urlab.control.pd_law import UNLIMITED, BatchPD, BoundJoints
from urlab.envs.scene_states import RAW, SCALAR_JOINTS, Array, SceneLayout
from urlab.physics.batch import SimulationBatch
from urlab_client import URLabClient
from urlab_client.handles.articulation import URLabArticulation

_PD = "pd"


class BatchControl:
    """Turns the setpoints of all robots into ``ctrl`` of a batch.

    Raw setpoints and those of a pass-through controller are written once per step; torques of a PD controller before
    each sub-step, as `per_sub_step` says.
    """

    def __init__(self, client: URLabClient, layout: SceneLayout, batch: SimulationBatch) -> None:
        self._ctrl = batch.ctrl
        self._direct: list[tuple[Any, slice | None]] = []
        """Where setpoints go in ``ctrl``, and which they are; None for all of them, which is quicker."""

        self._laws: list[tuple[BatchPD, slice]] = []
        start = 0
        for robot in layout.robots:
            columns = slice(start, start + robot.n_ctrl)
            start = columns.stop
            handle = client.articulations[robot.prefix]
            kind = _kind(handle)
            if kind is None:
                is_all = robot.n_ctrl == len(layout.low)
                self._direct.append(((slice(None), robot.ctrl), None if is_all else columns))
            elif kind == _PD:
                self._laws.append((_pd_law(handle, robot, batch), columns))
            else:
                raise ValueError(
                    f"{handle.prefix} has a controller of the kind {kind}; a vector environment runs pd and "
                    "passthrough. Use gymnasium.vector.AsyncVectorEnv over URLabEnv for others"
                )

    @staticmethod
    def knows(client: URLabClient) -> bool:
        """Whether there is a law for the controller of every robot."""
        return all(_kind(one) in (None, _PD) for one in client.articulations.values())

    @property
    def laws(self) -> list[BatchPD]:
        """The laws of those robots that have a PD controller."""
        return [law for law, _ in self._laws]

    @property
    def per_sub_step(self) -> bool:
        """Whether `apply` is to be called before every sub-step."""
        return bool(self._laws)

    def stage(self, setpoints: Array) -> None:
        """Take the setpoints of the next step, (count, n)."""
        for ctrl, columns in self._direct:
            self._ctrl[ctrl] = setpoints if columns is None else setpoints[:, columns]
        for law, columns in self._laws:
            law.stage(setpoints[:, columns])

    def apply(self) -> None:
        """Write the torques at the states as they are."""
        for law, _ in self._laws:
            law.apply()


def _pd_law(handle: URLabArticulation, robot: Any, batch: SimulationBatch) -> BatchPD:
    bound = [
        (local, actuator, handle.joints[actuator.joint])
        for local, actuator in enumerate(handle.actuators.values())
        if actuator.joint and handle.joints[actuator.joint].jnt_type in SCALAR_JOINTS
    ]
    params: Mapping[str, Any] = handle.controller.params if handle.controller is not None else {}
    ranges = [joint.range or (-UNLIMITED, UNLIMITED) for _, _, joint in bound]
    lower, upper = np.array(ranges, dtype=np.float64).reshape(-1, 2).T.copy()
    gains = {
        gain: np.array([params[gain][joint.name] for _, _, joint in bound]) for gain in ("kp", "kv", "torque_limit")
    }
    joints = BoundJoints(
        names=tuple(f"{handle.prefix}_{joint.name}" for _, _, joint in bound),
        **gains,
        lower=lower,
        upper=upper,
        setpoints=index_of([local for local, _, _ in bound]),
        ctrl=index_of([actuator.ctrl_id for _, actuator, _ in bound]),
        qpos=index_of([joint.qpos_offset for _, _, joint in bound]),
        qvel=index_of([joint.qvel_offset for _, _, joint in bound]),
    )
    return BatchPD(joints, robot.ctrl, robot.n_ctrl, batch)


def _kind(handle: URLabArticulation) -> str | None:
    """The kind of controller at work; None where setpoints are written to the actuators as they are."""
    if handle.controller is None or handle.control_mode == RAW or handle.controller.kind == "passthrough":
        return None
    return str(handle.controller.kind)
