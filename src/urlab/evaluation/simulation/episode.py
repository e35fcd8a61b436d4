"""One attempt at a task: a layout, actions until the goal is reached or time is up, a result.

It also ends when the robot is in a state that no robot can be in: see `StateGuard`. The protocol allows Panda fingers
a hundredth beyond 0 to 0.04 m and jumps of 0.05 m; the jump is one and a quarter of their travel, which every gripper
is allowed. A hand that pushes hard bends its fingers by a third of their travel, for seconds, which is legal here: only
what is a whole travel beyond the range is impossible. Bases do not move here, so nothing watches them.

An observation has the keys of the first protocol and of the later one, side by side. Arrays are NumPy arrays; states
are float32, as the protocol's own server sends them.
"""

from typing import Any

import numpy as np

from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.episode_result import STEP_LIMIT, SUCCESS, EpisodeResult, seed_text
from urlab.evaluation.goals.scoring import GoalTracker, sample_layout
from urlab.evaluation.simulation.actions import Action
from urlab.evaluation.simulation.kinematics import Array
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.task import Task

Observation = dict[str, Any]

FARTHEST_ARM_RAD = 10.0
FARTHEST_ARM_JUMP_RAD = 1.0
_FARTHEST_BEYOND = 1.0
_FARTHEST_GRIPPER_JUMP = 1.25
"""Shares of a finger's travel."""


class Episode:
    """`reset` comes first; the simulation belongs to the episode until it is done. One thread.

    ``hold_steps`` is how long a subgoal must hold to count, ``num_steps`` the most control steps. The first observation
    has timestep 0 and ``reset`` True.
    """

    def __init__(
        self,
        task: Task,
        seed: int,
        simulation: Simulation,
        *,
        hold_steps: int,
        num_steps: int,
        episode_id: str = "",
        cameras: bool = False,
        privileged: bool = False,
    ) -> None:
        self.task, self.seed, self.simulation = task, seed, simulation
        self.hold_steps, self.episode_id = hold_steps, episode_id
        self.timestep = 0
        self._num_steps = num_steps
        self._cameras, self._privileged = cameras, privileged
        self._layout = sample_layout(task, seed)
        self._tracker = GoalTracker(task, hold_steps)
        self._guard = StateGuard(simulation.embodiment)
        self._reason: str | None = None
        self._floor = 0.0

    @property
    def instruction(self) -> str:
        """What the robot is told to do."""
        return self._layout.instruction

    def reset(self) -> Observation:
        """Set the scene and look at it."""
        self.simulation.reset(self._layout)
        self._guard.reset(self.simulation.joints)
        self._tracker = GoalTracker(self.task, self.hold_steps)
        self._floor = self._tracker.floor(self.simulation.objects, self.simulation.object_joints)
        self.timestep, self._reason = 0, None
        return self.observe()

    def step(self, action: Action) -> Observation:
        """One control step, and what is seen after it."""
        self.advance(action)
        return self.observe()

    def advance(self, action: Action) -> None:
        """One control step without looking. Nothing may follow once the episode is done."""
        simulation = self.simulation
        simulation.step(action)
        self.timestep += 1
        self._reason = self._guard.check(simulation.joints, is_stable=simulation.is_stable)
        if self._reason is None:
            if self._tracker.is_due(self.timestep):
                self._tracker.update(self.timestep, simulation.objects, simulation.object_joints, simulation.handling)
            self._reason = self._ending()

    def fail(self, reason: str) -> None:
        """End it as failed, for a reason that lies outside of the simulation: its score is 0."""
        self._reason = self._reason or reason

    def hold_for(self, hold_steps: int) -> None:
        """From now on a subgoal must last that long: what a client is may show only after the reset."""
        if hold_steps != self.hold_steps:
            self.hold_steps = hold_steps
            self._tracker.hold_for(hold_steps)

    def observe(self) -> Observation:
        """The observation of now; without cameras nothing is drawn and there are no pictures in it.

        ``privileged`` is what no robot could know, for scripted policies.
        """
        simulation = self.simulation
        views = simulation.render() if self._cameras else {}
        observation = {
            "instruction": self.instruction,
            "timestep": self.timestep,
            "reset": self.timestep == 0,
            "episode_id": self.episode_id,
            "robot_id": simulation.embodiment.robot_id,
            "camera_data": views,
            **{f"video.{name}_view": view["rgb"] for name, view in views.items()},
            **_state(simulation),
        }
        return observation | {"privileged": _privileged(simulation)} if self._privileged else observation

    @property
    def score(self) -> float:
        """The score so far, 0 to 1."""
        return self._tracker.score

    @property
    def done(self) -> bool:
        """True once there is a result."""
        return self._reason is not None

    @property
    def result(self) -> EpisodeResult | None:
        """How it ended; None while it goes on. An invalid state scores nothing."""
        if self._reason is None:
            return None
        is_valid = self._reason in (SUCCESS, STEP_LIMIT)
        return EpisodeResult(
            task=self.task.name,
            seed=seed_text(self.seed),
            score=self._tracker.score if is_valid else 0.0,
            success=self._reason == SUCCESS,
            steps=self.timestep,
            reason=self._reason,
            hold_steps=self.hold_steps,
            instruction=self.instruction,
            nested=self._tracker.nested,
            floor=self._floor,
        )

    def _ending(self) -> str | None:
        if self._tracker.is_success:
            return SUCCESS
        return STEP_LIMIT if self.timestep >= self._num_steps else None


class StateGuard:
    """Checks the joints once per control step, in the order of actions."""

    def __init__(self, embodiment: Embodiment) -> None:
        slots = embodiment.slots
        entries = np.arange(embodiment.action_length)
        self._arm = np.concatenate([entries[slot.joints] for slot in slots])
        self._gripper = np.concatenate([entries[slot.gripper] for slot in slots])
        open_, closed = (
            np.concatenate([getattr(slot.arm.gripper, end) for slot in slots]) for end in ("open", "closed")
        )
        travel = np.abs(open_ - closed)
        self._low = np.minimum(open_, closed) - _FARTHEST_BEYOND * travel
        self._high = np.maximum(open_, closed) + _FARTHEST_BEYOND * travel
        self._farthest_jump = _FARTHEST_GRIPPER_JUMP * travel
        self._before: Array | None = None

    def reset(self, joints: Array) -> None:
        """Begin an episode with these joints."""
        self._before = joints.copy()

    def check(self, joints: Array, *, is_stable: bool = True) -> str | None:
        """Why the episode must end after the step that led here; None when it may go on.

        ``is_stable`` is False when the simulation itself says that it has come apart.
        """
        before, self._before = self._before, joints.copy()
        jump = np.abs(joints - (joints if before is None else before))
        if not is_stable:
            return "unstable_physics"
        return self._arm_problem(joints[self._arm], jump[self._arm]) or self._gripper_problem(
            joints[self._gripper], jump[self._gripper]
        )

    def _arm_problem(self, arm: Array, jump: Array) -> str | None:
        if not np.isfinite(arm).all():
            return "non_finite_arm_state"
        if (np.abs(arm) > FARTHEST_ARM_RAD).any():
            return "arm_out_of_range"
        return "arm_jump" if (jump > FARTHEST_ARM_JUMP_RAD).any() else None

    def _gripper_problem(self, gripper: Array, jump: Array) -> str | None:
        if not np.isfinite(gripper).all():
            return "non_finite_gripper_state"
        if (gripper < self._low).any() or (gripper > self._high).any():
            return "gripper_out_of_range"
        return "gripper_jump" if (jump > self._farthest_jump).any() else None


def _state(simulation: Simulation) -> dict[str, Any]:
    joints, slots = simulation.joints.astype(np.float32), simulation.embodiment.slots
    poses = [[pose.pos.astype(np.float32), pose.quat_wxyz.astype(np.float32)] for pose in simulation.ee_poses]
    ee_pose = poses[0] if len(poses) == 1 else poses
    return {
        "joint_position_state": joints,
        "ee_pose_state": ee_pose,
        "state.joints": np.concatenate([joints[slot.joints] for slot in slots]),
        "state.gripper": np.concatenate([joints[slot.gripper] for slot in slots]),
        "state.ee_pose": ee_pose,
        **simulation.frames,
    }


def _privileged(simulation: Simulation) -> dict[str, Any]:
    """Plain Python values, in the world's frame. ``size`` is an object's full lengths along its own axes."""
    specs = simulation.task.objects
    return {
        "task": simulation.task.name,
        "objects": {
            name: {
                "pos": list(pose.pos),
                "quat_wxyz": list(pose.quat_wxyz),
                "size": list(specs[name].extents),
                "shape": str(specs[name].shape.__struct_config__.tag),
            }
            for name, pose in simulation.objects.items()
        },
        "object_joints": simulation.object_joints,
        "robot_base_pos": list(simulation.embodiment.base_pos_w),
    }
