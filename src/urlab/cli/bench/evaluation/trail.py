"""The steps that are measured: the same actions for everybody, and the same physics with nothing around it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.compile import CompiledScene
from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment
from urlab.evaluation.goals.scoring import sample_layout
from urlab.evaluation.policies.random_policy import RandomPolicy
from urlab.evaluation.settings import BENCHMARK
from urlab.evaluation.simulation.actions import Action, parse_action
from urlab.evaluation.simulation.commands import CommandMemory
from urlab.evaluation.simulation.kinematics import Kinematics
from urlab.evaluation.simulation.scene import ROBOT, build_scene
from urlab.evaluation.simulation.simulation import SETTLE_STEPS, SUBSTEPS, ObjectPort, RobotPort
from urlab.evaluation.tasks.task import Task, find_task
from urlab.physics.engine import FULL_STATE

SEED = 0
MODEL_FILE, STATE_FILE, CAMERAS_FILE = "scene.mjb", "state.npy", "cameras.npy"

RawAction = dict[str, Any]
Array = NDArray[np.float64]


class Trail:
    """``count`` actions of the random policy in one task, as a client sends them and as a simulation takes them."""

    def __init__(self, task: str, count: int) -> None:
        self.task: Task = find_task(task)
        self.embodiment: Embodiment = EMBODIMENTS[self.task.embodiment]
        policy = RandomPolicy()
        policy.reset({"episode_id": f"{BENCHMARK}/bench/{task}/{SEED}", "robot_id": self.embodiment.robot_id})
        self.raw: list[RawAction] = [policy.act({}) for _ in range(count)]
        self.actions: list[Action] = [parse_action(one, self.embodiment, default_is_rel=True) for one in self.raw]


class BareSteps:
    """The mj_steps of a trail, with the controls that a simulation applies, from the state in which it begins."""

    def __init__(self, trail: Trail, *, cameras: bool = False) -> None:
        scene = build_scene(trail.task, trail.embodiment, cameras=cameras)
        self.model, self.data = scene.model, mujoco.MjData(scene.model)
        self._cameras = _camera_ids(scene, trail.embodiment) if cameras else []
        self._robot = RobotPort(scene.model, ROBOT, trail.embodiment)
        self._next = 0
        self._settle(ObjectPort(scene, trail.task.objects), trail)
        self._begin = np.empty(mujoco.mj_stateSize(self.model, FULL_STATE))
        mujoco.mj_getState(self.model, self.data, self._begin, FULL_STATE)
        self._controls: list[list[Array]] = list(self._driven(trail))

    @property
    def joints(self) -> Array:
        """In the order of actions."""
        return self._robot.joints(self.data)

    def reset(self) -> None:
        """Back to the begin."""
        mujoco.mj_setState(self.model, self.data, self._begin, FULL_STATE)
        self._next = 0

    def once(self) -> None:
        """One control step."""
        model, data = self.model, self.data
        for controls in self._controls[self._next]:
            data.ctrl[:] = controls
            mujoco.mj_step(model, data)
        self._next += 1

    def save(self, folder: Path) -> None:
        """Write the model, the state in which the trail begins, and which cameras policies look through."""
        mujoco.mj_saveModel(self.model, str(folder / MODEL_FILE))
        np.save(folder / STATE_FILE, self._begin)
        np.save(folder / CAMERAS_FILE, np.array(self._cameras))

    def _settle(self, objects: ObjectPort, trail: Trail) -> None:
        self._robot.put(self.data, np.array(trail.embodiment.home))
        objects.put(self.data, sample_layout(trail.task, SEED))
        for _ in range(SETTLE_STEPS * SUBSTEPS):
            mujoco.mj_step(self.model, self.data)

    def _driven(self, trail: Trail) -> Iterator[list[Array]]:
        """Carry out the trail once, and keep the controls of every sub-step."""
        memory = CommandMemory(trail.embodiment, Kinematics(trail.embodiment))
        memory.reset(self.joints)
        for action in trail.actions:
            controls = list(self._robot.ramp(self.data, memory.apply(action, self.joints), SUBSTEPS))
            for one in controls:
                self.data.ctrl[:] = one
                mujoco.mj_step(self.model, self.data)
            yield controls


def _camera_ids(scene: CompiledScene, embodiment: Embodiment) -> list[int]:
    """The cameras that policies look through; a robot's model may have more."""
    of_robots = [camera for robot in scene.articulations for camera in robot.cameras]
    ids = {camera.short: camera.id for camera in (*of_robots, *scene.global_cameras)}
    return [ids[mount.name] for mount in embodiment.cameras]
