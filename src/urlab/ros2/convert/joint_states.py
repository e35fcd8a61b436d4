"""sensor_msgs/JointState: every hinge and slide joint of a robot in one message.

Free and ball joints have no single number: they are in tf, and a free root in odometry as well.
"""

from typing import Any

import mujoco
import numpy as np

from urlab.ros2.convert.links import HINGE, SLIDE
from urlab.ros2.convert.pose import Array
from urlab.ros2.convert.robot_state import RobotState
from urlab.ros2.convert.stamps import header, time_message
from urlab.ros2.messages import typestore
from urlab_client import URLabArticulation
from urlab_wire.ops.stepping import ArticulationState
from urlab_wire.stream_messages import StateFull

JOINT_STATE = "sensor_msgs/msg/JointState"

_JointState: Any = typestore.types[JOINT_STATE]
_JOINT_DRIVEN = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_TENDON_DRIVEN = int(mujoco.mjtTrn.mjTRN_TENDON)
_WRAPS_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)
_NONE: Array = np.zeros(0)


class JointStates:
    """Joint states of one robot: ``names`` are unprefixed, positions in rad or m, velocities per second.

    ``effort`` (N m or N) is what the actuators do to each joint. It needs the actuator forces of the observation level
    full; at other levels, so in ``state/full``, it is empty, and always where an actuator drives neither joints nor
    fixed tendons. Made once per scene; any thread.
    """

    type_name = JOINT_STATE

    def __init__(self, model: Any, robot: URLabArticulation) -> None:
        joints = [one for one in robot.joints.values() if one.jnt_type in (HINGE, SLIDE)]
        self.names = [one.name for one in joints]
        self._state = RobotState(robot)
        self._qpos = np.array([one.qpos_local_offset for one in joints], dtype=np.intp)
        self._qvel = np.array([one.qvel_local_offset for one in joints], dtype=np.intp)
        self._moments = _moments(model, [one.id for one in robot.actuators.values()], [one.id for one in joints])

    def convert(self, state: StateFull) -> Any:
        """The joint states of that state; `SceneChanged` when it is another scene's."""
        block = self._state.of(state)
        return _JointState(
            header=header(time_message(state.sim_time), ""),
            name=self.names,
            position=np.array(block.qpos)[self._qpos],
            velocity=np.array(block.qvel)[self._qvel],
            effort=self._effort(block),
        )

    def _effort(self, block: ArticulationState) -> Array:
        forces = block.actuator_force
        if forces is None or self._moments is None or len(forces) != self._moments.shape[1]:
            return _NONE
        return np.asarray(self._moments @ np.array(forces))


def _moments(model: Any, actuators: list[int], joints: list[int]) -> Array | None:
    """What a unit force of each actuator (column) does to each joint (row); None where that is not constant."""
    rows = {joint: row for row, joint in enumerate(joints)}
    moments = np.zeros((len(joints), len(actuators)))
    for column, actuator in enumerate(actuators):
        arms = _arms(model, actuator)
        if arms is None:
            return None
        for joint, arm in arms:
            if joint in rows:
                moments[rows[joint], column] += arm
    return moments


def _arms(model: Any, actuator: int) -> list[tuple[int, float]] | None:
    """The joints that an actuator drives, and its gear on each; None when that depends on the pose."""
    kind, target = int(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    gear = float(model.actuator_gear[actuator, 0])
    if kind in _JOINT_DRIVEN:
        return [(target, gear)]
    if kind != _TENDON_DRIVEN:
        return None
    start = int(model.tendon_adr[target])
    wraps = range(start, start + int(model.tendon_num[target]))
    if any(int(model.wrap_type[one]) != _WRAPS_JOINT for one in wraps):
        return None
    return [(int(model.wrap_objid[one]), gear * float(model.wrap_prm[one])) for one in wraps]
