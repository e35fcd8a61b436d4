"""Scripted policies that solve the shipped tasks: what a learned one has to beat, and how our tests know them solvable.

They see the flat observation of one environment and return its action. They know the robot's model, and nothing of the
simulation but what is observed.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import mujoco
import numpy as np

from urlab.envs.interface import EnvInterface
from urlab.envs.scene_states import Array

_BASELINES: dict[str, type["Baseline"]] = {}


class Baseline(ABC):
    """A policy for one task; `reset` before each episode, `act` at each step."""

    task: ClassVar[str]

    def __init_subclass__(cls, *, task: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if task in _BASELINES:
            raise TypeError(f"the task {task!r} has the baseline {_BASELINES[task].__qualname__} already")
        cls.task, _BASELINES[task] = task, cls

    def __init__(self, interface: EnvInterface) -> None:
        """``interface`` is that of the environment, single or vector: ``env.unwrapped.interface``."""
        self._interface = interface
        self._ends = np.cumsum(list(interface.parts.values()))[:-1]
        self.reset()

    @abstractmethod
    def reset(self) -> None:
        """A new episode begins."""

    @abstractmethod
    def setpoints(self, parts: Mapping[str, Array]) -> Array:
        """The setpoints for an observation by part."""

    def act(self, observation: Array) -> Array:
        """The action for a flat observation."""
        parts = dict(zip(self._interface.parts, np.split(observation, self._ends), strict=True))
        layout = self._interface.layout
        return self._interface.action_of(np.clip(self.setpoints(parts), layout.low, layout.high))


def make_baseline(task: str, interface: EnvInterface) -> Baseline:
    """The baseline of a task by its name, with or without ``urlab/``."""
    found = _BASELINES.get(task.removeprefix("urlab/"))
    if found is None:
        raise ValueError(f"there is no baseline for {task!r}; there are: {', '.join(sorted(_BASELINES))}")
    return found(interface)


class _ArmKinematics:
    """Joints that bring a site somewhere, by damped least squares from where the arm is."""

    def __init__(self, model: Any, joints: tuple[str, ...], site: str) -> None:
        self._model, self._data = model, mujoco.MjData(model)
        ids = [model.joint(name).id for name in joints]
        self._qpos, self._dofs = model.jnt_qposadr[ids], model.jnt_dofadr[ids]
        self._low, self._high = model.jnt_range[ids].T
        self._site = model.site(site).id
        self._jacobian = np.zeros((6, model.nv))

    def solve(self, seed: Array, pos: Array, quat: Array | None = None, iterations: int = 100) -> Array:
        """Joints with the site at ``pos`` (world, metres), turned as ``quat`` (w, x, y, z) unless that is None."""
        joints = seed.copy()
        rows = 3 if quat is None else 6
        for _ in range(iterations):
            error = self._error(joints, pos, quat)[:rows]
            if np.abs(error).max() < 1e-4:
                break
            mujoco.mj_jacSite(self._model, self._data, self._jacobian[:3], self._jacobian[3:], self._site)
            jacobian = self._jacobian[:rows, self._dofs]
            damped = jacobian @ jacobian.T + 1e-4 * np.eye(rows)
            joints = np.clip(joints + jacobian.T @ np.linalg.solve(damped, error), self._low, self._high)
        return joints

    def _error(self, joints: Array, pos: Array, quat: Array | None) -> Array:
        data = self._data
        data.qpos[self._qpos] = joints
        mujoco.mj_kinematics(self._model, data)
        mujoco.mj_comPos(self._model, data)
        error, turn, back, now = np.zeros(6), np.zeros(4), np.zeros(4), np.zeros(4)
        error[:3] = pos - data.site_xpos[self._site]
        if quat is not None:
            mujoco.mju_mat2Quat(now, data.site_xmat[self._site])
            mujoco.mju_negQuat(back, now)
            mujoco.mju_mulQuat(turn, quat, back)
            mujoco.mju_quat2Vel(error[3:], turn, 1.0)
        return error


_ARM = tuple(f"panda_joint{i}" for i in range(1, 8))


class ReachBaseline(Baseline, task="PandaReach-v0"):
    """Inverse kinematics of the marker's place, once per episode; the servos do the rest."""

    def reset(self) -> None:
        """Forget where the marker was."""
        self._joints: Array | None = None
        self._arm = _ArmKinematics(self._interface.layout.model, _ARM, "panda_ee")

    def setpoints(self, parts: Mapping[str, Array]) -> Array:
        """The joints that reach the marker, the hand open."""
        if self._joints is None:
            self._joints = self._arm.solve(parts["joint_pos"], parts["goal_pos"])
        return np.append(self._joints, 0.04)


_OPEN, _SHUT = 0.04, 0.0
_ABOVE_M = 0.10


class PickCubeBaseline(Baseline, task="PandaPickCube-v0"):
    """Above the cube, down, shut the hand, up: each phase begins when the one before it is done."""

    def reset(self) -> None:
        """Begin with the first phase."""
        self._arm = _ArmKinematics(self._interface.layout.model, _ARM, "panda_ee")
        self._phase, self._waited = 0, 0
        self._wanted: Array | None = None
        self._quat = np.zeros(4)

    def setpoints(self, parts: Mapping[str, Array]) -> Array:
        """The joints of the phase, and the hand's opening."""
        joints = parts["joint_pos"][:7]
        if self._wanted is None:
            self._quat = _grasp(parts["cube_quat"])
            self._wanted = self._plan(joints, parts["cube_pos"] + [0.0, 0.0, _ABOVE_M])
        self._waited += 1
        still = np.abs(parts["joint_vel"]).max() < 0.05
        there = np.abs(joints - self._wanted).max() < 0.02
        if (there and still and self._waited > 5) or self._waited > 60:
            self._next_phase(joints, parts)
        return np.append(self._wanted, _OPEN if self._phase < 2 else _SHUT)

    def _next_phase(self, joints: Array, parts: Mapping[str, Array]) -> None:
        self._phase, self._waited = min(self._phase + 1, 3), 0
        if self._phase == 1:
            self._wanted = self._plan(joints, parts["cube_pos"])
        elif self._phase == 3:
            self._wanted = self._plan(joints, parts["hand_pos"] + [0.0, 0.0, 0.2])

    def _plan(self, joints: Array, pos: Array) -> Array:
        return self._arm.solve(joints, pos, self._quat)


def _grasp(cube_quat: Array) -> Array:
    """The hand pointing down, its fingers at two sides of the cube, turned as little as that takes."""
    w, z = cube_quat[0], cube_quat[3]
    yaw = 2.0 * np.arctan2(z, w)
    yaw = (yaw + np.pi / 4) % (np.pi / 2) - np.pi / 4
    down, quat = np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4)
    turn = np.array([np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)])
    mujoco.mju_mulQuat(quat, turn, down)
    return quat


_PERIOD_S = 0.5
_STRIDE_RAD, _LIFT_RAD = 0.22, 0.5
_HOME = np.array([0.0, 0.8, -1.6] * 4)
_PHASES = np.array([0.0, 0.5, 0.5, 0.0])
"""A trot: diagonal legs together. FL, FR, RL, RR."""

_LEFT = np.array([1.0, -1.0, 1.0, -1.0])


class WalkBaseline(Baseline, task="QuadrupedWalk-v0"):
    """A trot: thighs swing, calves lift the feet, and legs of one side take shorter steps to stay on course."""

    def reset(self) -> None:
        """Nothing is kept: the time is observed."""

    def setpoints(self, parts: Mapping[str, Array]) -> Array:
        """Joint targets at the phase of the gait."""
        phase = (float(parts["time"][0]) / _PERIOD_S + _PHASES) % 1.0
        swing = phase < 0.5
        along = np.where(swing, -np.cos(2 * np.pi * phase), np.cos(2 * np.pi * (phase - 0.5)))
        lift = np.where(swing, np.sin(2 * np.pi * phase), 0.0)
        w, x, y, z = parts["trunk_pose"][3:7]
        heading = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        turn = np.clip(1.5 * heading + 1.0 * parts["trunk_pose"][1], -0.8, 0.8)
        stride = _STRIDE_RAD * (1.0 + turn * _LEFT)
        targets = _HOME.reshape(4, 3).copy()
        targets[:, 1] += -stride * along + 0.5 * _LIFT_RAD * lift
        targets[:, 2] += -_LIFT_RAD * lift
        return targets.reshape(12)
