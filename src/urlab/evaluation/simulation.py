"""One robot at one task: the physics behind an episode."""

from typing import Any

import mujoco
import numpy as np

from urlab.config import RenderProfile
from urlab.evaluation.actions import Action
from urlab.evaluation.camera_rig import CameraRig, CameraView
from urlab.evaluation.command import CommandMemory
from urlab.evaluation.embodiments import Embodiment
from urlab.evaluation.kinematics import Array, EePose, Kinematics
from urlab.evaluation.object_port import ObjectPort
from urlab.evaluation.robot_port import RobotPort
from urlab.evaluation.scene import ROBOT, build_scene
from urlab.evaluation.tasks.layout import Layout
from urlab.evaluation.tasks.task import Task
from urlab.geometry import Pose
from urlab.physics.engine import Engine

SUBSTEPS = 16
"""One control step is 1/30 s."""

SETTLE_STEPS = 50

_BAD_STATES = [
    int(kind)
    for kind in (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
]


class Simulation:
    """`reset` comes first. One thread at a time. The same layout and actions give the same bits, with cameras or not.

    Vectors of joints are in the order of actions (rad, and m for sliding fingers).
    """

    def __init__(
        self, task: Task, embodiment: Embodiment, *, cameras: bool, profile: RenderProfile = RenderProfile.AUTO
    ) -> None:
        self.task, self.embodiment = task, embodiment
        scene = build_scene(task, embodiment, cameras=cameras)
        self._engine = Engine(scene.model)
        self._robot = RobotPort(scene.model, ROBOT, embodiment)
        self._objects = ObjectPort(scene, task.objects)
        self._kinematics = Kinematics(embodiment)
        self._memory = CommandMemory(embodiment, self._kinematics)
        self._rig = CameraRig(scene, embodiment.cameras, profile) if cameras else None

    def reset(self, layout: Layout) -> None:
        """Put everything in its place, let it come to rest, and take the joints measured then as the command."""
        data = self._data
        with self._engine.locked():
            self._engine.reset()
            self._robot.put(data, np.array(self.embodiment.home))
            self._objects.put(data, layout)
            for _ in range(SETTLE_STEPS * SUBSTEPS):
                self._engine.step_once()
            self._memory.reset(self._robot.joints(data))
            self._engine.publish()

    def step(self, action: Action) -> None:
        """Carry out one action for one control step, as far as the robot gets in that time."""
        data = self._data
        with self._engine.locked():
            targets = self._memory.apply(action, self._robot.joints(data))
            for controls in self._robot.ramp(data, targets, SUBSTEPS):
                data.ctrl[:] = controls
                self._engine.step_once()
            self._engine.publish()

    @property
    def joints(self) -> Array:
        """The measured joints."""
        return self._robot.joints(self._data)

    @property
    def ee_poses(self) -> tuple[EePose, ...]:
        """Per arm, where the hand is in the frame of the arm's base, by the measured joints."""
        return self._kinematics.ee_poses(self.joints)

    @property
    def commanded_joints(self) -> Array:
        """The joints last commanded: what the next relative action adds to."""
        return self._memory.joints

    @property
    def is_held(self) -> tuple[bool, ...]:
        """Per arm, whether the last action asked for a pose out of reach, so that the arm holds still."""
        return self._memory.is_held

    @property
    def is_stable(self) -> bool:
        """False once MuJoCo has found the state to be nonsense (and has begun anew) since the last reset."""
        return not self._data.warning.number[_BAD_STATES].any()

    @property
    def objects(self) -> dict[str, Pose]:
        """Where the task's objects are in the world."""
        return self._objects.poses(self._data)

    @property
    def object_joints(self) -> dict[str, dict[str, float]]:
        """Joint positions (rad or m) of those objects that have joints."""
        return self._objects.joints(self._data)

    def render(self) -> dict[str, CameraView]:
        """What the cameras see now, by name; nothing without cameras."""
        return {} if self._rig is None else self._rig.take(self._engine.snapshot)

    def close(self) -> None:
        """Give back GL memory and threads. May be called twice."""
        if self._rig is not None:
            self._rig.close()
        self._engine.close()

    @property
    def _data(self) -> Any:
        return self._engine.data
