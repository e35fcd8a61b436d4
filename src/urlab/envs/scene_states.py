"""What environments know of a scene: where the numbers of its robots are, and the states of its simulations as arrays.

The same arrays serve one simulation behind a client and many in a batch: the first axis counts simulations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.control.controller import Index, index_of
from urlab_client import URLabClient
from urlab_client.handles.articulation import URLabArticulation
from urlab_wire.codec import Tree

Array = NDArray[np.float64]

RAW = "raw"
SCALAR_JOINTS = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))


@dataclass(frozen=True, slots=True)
class RobotLayout:
    """Where one robot's numbers are in the arrays of the whole model, and what its setpoints may be.

    ``low`` and ``high`` are the range of each setpoint: the actuator's, or the joint's where a controller makes a
    torque of it; infinite where there is none.
    """

    prefix: str
    qpos: Index
    qvel: Index
    sensors: Index
    ctrl: Index
    low: Array
    high: Array

    @property
    def n_ctrl(self) -> int:
        """How many setpoints it has."""
        return len(self.low)

    @classmethod
    def of(cls, robot: URLabArticulation, *, has_sensors: bool) -> Self:
        """The layout of a client's handle, with or without its sensors."""
        joints, actuators = robot.joints.values(), robot.actuators.values()
        sensors = robot.sensors.values() if has_sensors else ()
        ranges = [_setpoint_range(robot, name) for name in robot.actuators]
        low, high = np.array(ranges, dtype=np.float64).reshape(-1, 2).T
        return cls(
            robot.prefix,
            _places((one.qpos_offset, one.qpos_dim) for one in joints),
            _places((one.qvel_offset, one.qvel_dim) for one in joints),
            _places((one.offset, one.dim) for one in sensors),
            index_of([one.ctrl_id for one in actuators]),
            low.copy(),
            high.copy(),
        )


@dataclass(frozen=True, slots=True)
class States:
    """The states of n simulations, a row each: (n,), (n, nq), (n, nv), (n, nsensordata), (n, nmocap, 3 and 4).

    ``sensordata`` is what the last mj_step left: it describes the state before the last sub-step. All other fields
    are of now. World frame, metres, radians, seconds, quaternions w, x, y, z.
    """

    time: Array
    qpos: Array
    qvel: Array
    sensordata: Array
    mocap_pos: Array
    mocap_quat: Array


class SceneLayout:
    """The robots of a scene and its model, as a client tells them."""

    def __init__(self, client: URLabClient, *, has_sensors: bool = True) -> None:
        if not client.articulations:
            raise RuntimeError("an environment needs a robot, and this scene has none: add a model with an actuator")
        self.model: Any = client.model
        self.robots = tuple(RobotLayout.of(one, has_sensors=has_sensors) for one in client.articulations.values())
        self.low = np.concatenate([one.low for one in self.robots])
        self.high = np.concatenate([one.high for one in self.robots])

    def joint_qpos(self, *names: str) -> Index:
        """The places in qpos of joints by compiled name, one behind the other; KeyError names one that is not there."""
        ids = [self.model.joint(name).id for name in names]
        return _places((int(self.model.jnt_qposadr[i]), _qpos_width(int(self.model.jnt_type[i]))) for i in ids)

    def joint_qvel(self, *names: str) -> Index:
        """The places in qvel of joints by compiled name."""
        ids = [self.model.joint(name).id for name in names]
        return _places((int(self.model.jnt_dofadr[i]), _qvel_width(int(self.model.jnt_type[i]))) for i in ids)

    def sensor(self, name: str) -> Index:
        """The places in sensordata of a sensor by compiled name."""
        found = self.model.sensor(name).id
        return _places([(int(self.model.sensor_adr[found]), int(self.model.sensor_dim[found]))])

    def mocap(self, body: str) -> int:
        """The row of a mocap body in mocap_pos."""
        return int(self.model.body_mocapid[self.model.body(body).id])


def write_setpoints(buffers: Iterable[Array], setpoints: Array) -> None:
    """Part the setpoints of all robots, (n,), among the buffers of each."""
    start = 0
    for buffer in buffers:
        buffer[:] = setpoints[start : start + len(buffer)]
        start += len(buffer)


class ClientStates:
    """The state behind one client as `States` of one row, filled from its replies."""

    def __init__(self, client: URLabClient, layout: SceneLayout) -> None:
        model = layout.model
        self.states = States(
            np.zeros(1),
            np.zeros((1, model.nq)),
            np.zeros((1, model.nv)),
            np.zeros((1, model.nsensordata)),
            np.zeros((1, model.nmocap, 3)),
            np.zeros((1, model.nmocap, 4)),
        )
        self._robots = [(one, self.states.sensordata[0, one.sensors].size > 0) for one in layout.robots]
        self._free = [(name, *_free_places(model, name)) for name in client.entities if _is_free(model, name)]
        self._free = [one for one in self._free if one[0] not in client.articulations]
        self._row = [one[0] for one in (self.states.qpos, self.states.qvel, self.states.sensordata)]

    def absorb(self, reply: Tree) -> None:
        """Take the numbers of a reply of step, reset or restore_state."""
        qpos, qvel, sensordata = self._row
        self.states.time[0] = reply["time"]
        blocks: Mapping[str, Tree] = reply["per_articulation"]
        for robot, has_sensors in self._robots:
            block = blocks[robot.prefix]
            qpos[robot.qpos] = block["qpos"]
            qvel[robot.qvel] = block["qvel"]
            if has_sensors:
                sensordata[robot.sensors] = list(chain.from_iterable(block["sensors"].values()))
        if self._free:
            entities = reply["entities"]
            for name, at_qpos, at_qvel in self._free:
                qpos[at_qpos] = entities[name]["qpos"]
                qvel[at_qvel] = entities[name]["qvel"]

    def keep_mocap(self, states: States) -> None:
        """Take the places of mocap bodies, which no reply tells."""
        self.states.mocap_pos[:], self.states.mocap_quat[:] = states.mocap_pos, states.mocap_quat


def _setpoint_range(robot: URLabArticulation, name: str) -> tuple[float, float]:
    actuator = robot.actuators[name]
    joint = robot.joints.get(actuator.joint) if actuator.joint else None
    controlled = robot.controller is not None and robot.controller.kind == "pd" and robot.control_mode != RAW
    if controlled and joint is not None and joint.jnt_type in SCALAR_JOINTS:
        return joint.range or (-np.inf, np.inf)
    return actuator.ctrlrange or (-np.inf, np.inf)


def _places(spans: Any) -> Index:
    return index_of([start + i for start, width in spans for i in range(width)])


def _qpos_width(kind: int) -> int:
    return (7, 4, 1, 1)[kind]


def _qvel_width(kind: int) -> int:
    return (6, 3, 1, 1)[kind]


def _is_free(model: Any, body: str) -> bool:
    found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, body)
    return bool(found >= 0 and model.body_jntnum[found] == 1 and model.jnt_type[model.body_jntadr[found]] == 0)


def _free_places(model: Any, body: str) -> tuple[slice, slice]:
    joint = int(model.body_jntadr[model.body(body).id])
    qpos, qvel = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    return slice(qpos, qpos + 7), slice(qvel, qvel + 6)


def joined(parts: Sequence[Array]) -> Array:
    """Arrays of n rows side by side; always a copy."""
    return np.concatenate(parts, axis=1)
