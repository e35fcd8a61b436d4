"""The tasks that we ship: enough of them, of all kinds, at rest when they begin, and not done by doing nothing."""

from collections import Counter

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.goals.scoring import GoalTracker, sample_layout
from urlab.evaluation.tasks.layout import Layout
from urlab.evaluation.tasks.objects import ObjectSpec, object_mjcf
from urlab.evaluation.tasks.oracle_steps import Pick
from urlab.evaluation.tasks.task import Task, find_task, task_names
from urlab.geometry import Pose

WIDEST_GRASP_M = {"franka_panda": 0.06, "franka_robotiq": 0.07, "aloha": 0.07}
TABLE = """<mujoco><option timestep="0.00208333333" integrator="implicitfast" cone="elliptic" impratio="10"/>
<worldbody><geom type="box" size="0.6 0.8 0.025" pos="0 0 0.975" friction="0.7 0.01 0.0005"/></worldbody></mujoco>"""


class World:
    """The objects of a task on a table, without a robot."""

    def __init__(self, task: Task, layout: Layout) -> None:
        spec = mujoco.MjSpec.from_string(TABLE)
        for name, one in task.objects.items():
            frame = spec.worldbody.add_frame()
            spec.attach(mujoco.MjSpec.from_string(object_mjcf(one)), prefix=f"{name}/", frame=frame)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self._objects = task.objects
        for name, one in task.objects.items():
            self._put(name, one, layout.poses[name])
            for joint in one.joints:
                self.data.joint(f"{name}/{joint}").qpos[0] = layout.joints[name][joint]

    def _put(self, name: str, one: ObjectSpec, pose: Pose) -> None:
        if one.fixed:
            mocap = self.model.body(f"{name}/{name}").mocapid[0]
            self.data.mocap_pos[mocap], self.data.mocap_quat[mocap] = pose.pos, pose.quat_wxyz
        else:
            self.data.joint(f"{name}/free").qpos[:] = (*pose.pos, *pose.quat_wxyz)

    def step(self) -> None:
        for _ in range(16):
            mujoco.mj_step(self.model, self.data)

    def poses(self) -> dict[str, Pose]:
        bodies = {name: self.data.body(f"{name}/{name}") for name in self._objects}
        return {name: Pose.of(body.xpos, body.xquat) for name, body in bodies.items()}

    def joints(self) -> dict[str, dict[str, float]]:
        return {
            name: {joint: float(self.data.joint(f"{name}/{joint}").qpos[0]) for joint in one.joints}
            for name, one in self._objects.items()
        }


def test_there_are_enough_tasks_for_every_robot() -> None:
    robots = Counter(find_task(name).embodiment for name in task_names())
    assert len(task_names()) >= 12
    assert set(robots) == set(EMBODIMENTS)
    assert min(robots.values()) >= 3


def test_there_are_tasks_of_all_kinds() -> None:
    assert {find_task(name).category for name in task_names()} >= {
        "pick_place",
        "stacking",
        "sorting",
        "container",
        "spatial",
        "articulated",
        "orientation",
        "two_handed",
        "long_horizon",
    }
    relations = {getattr(one, "relation", None) for name in task_names() for one in find_task(name).goal.subgoals}
    assert {"on", "in", "between", "left", "right"} <= relations


def test_long_tasks_have_stages() -> None:
    stages = {name: len(find_task(name).goal.stages) for name in task_names()}
    long = {name for name in task_names() if find_task(name).category == "long_horizon"}
    assert {name for name, count in stages.items() if count > 1} == long | {"aloha_hand_over"}


@pytest.mark.parametrize("name", task_names())
def test_a_task_can_be_told_and_has_a_script_and_time_for_it(name: str) -> None:
    task = find_task(name)
    assert task.oracle
    assert len(task.instructions) >= 2
    assert task.num_steps >= 300 + 110 * len(task.goal.stages)


@pytest.mark.parametrize("name", task_names())
def test_what_is_picked_fits_the_gripper(name: str) -> None:
    task = find_task(name)
    for step in task.oracle:
        if isinstance(step, Pick):
            spec = task.objects[step.object]
            assert 0.03 <= spec.mass_kg <= 0.15
            assert spec.friction >= 1
            assert min(spec.extents[:2]) <= WIDEST_GRASP_M[task.embodiment]


@pytest.mark.parametrize("name", task_names())
def test_nothing_moves_and_nothing_is_done_while_nobody_does_anything(name: str) -> None:
    task = find_task(name)
    layout = sample_layout(task, 7)
    world, tracker = World(task, layout), GoalTracker(task, 50)
    for timestep in range(1, 121):
        world.step()
        tracker.update(timestep, world.poses(), world.joints())
    for one, pose in layout.poses.items():
        assert np.linalg.norm(np.subtract(world.poses()[one].pos, pose.pos)) < 1e-3
        assert abs(np.dot(world.poses()[one].quat_wxyz, pose.quat_wxyz)) > 0.99999
    for one, joints in layout.joints.items():
        assert world.joints()[one] == pytest.approx(joints, abs=2e-3)
    assert not tracker.is_success
    assert tracker.score <= 0.2
