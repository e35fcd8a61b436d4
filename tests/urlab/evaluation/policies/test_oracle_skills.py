"""Every skill by itself: it does what its step says, and tries again when something went wrong."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from urlab.evaluation.embodiments import EMBODIMENTS
from urlab.evaluation.policies.oracle.hand import Motion
from urlab.evaluation.policies.oracle.skills import SKILLS
from urlab.evaluation.policies.oracle.world import OracleWorld
from urlab.evaluation.simulation.actions import parse_action
from urlab.evaluation.simulation.episode import Episode
from urlab.evaluation.simulation.simulation import Simulation
from urlab.evaluation.tasks.oracle_steps import ORACLE_STEPS, Home, OracleStep, Place, Wait
from urlab.evaluation.tasks.task import find_task
from urlab.geometry import Pose, rotate


class Bench:
    """A task on which steps are carried out one by one."""

    def __init__(self, name: str, seed: int = 0) -> None:
        task = find_task(name)
        self.simulation = Simulation(task, EMBODIMENTS[task.embodiment], cameras=False)
        self._episode = Episode(task, seed, self.simulation, hold_steps=100, num_steps=3000, privileged=True)
        first = self._episode.reset()
        self.world = OracleWorld(task, self.simulation.embodiment, first)
        self.steps = task.oracle

    def do(self, step: OracleStep) -> int:
        """Carry it out; how many control steps it took."""
        return self.advance(SKILLS[type(step)](self.world, step))

    def advance(self, motion: Motion, most: int = 3000) -> int:
        for count in range(most):
            self.world.see(self._episode.observe())
            if next(motion, "over") == "over":
                return count
            self.simulation.step(parse_action(self.world.action(), self.simulation.embodiment, default_is_rel=True))
        return most

    def pose(self, name: str) -> Pose:
        return self.simulation.objects[name]

    def put(self, name: str, pose: Pose) -> None:
        """Move an object by hand, at once."""
        with self.simulation._engine.locked():
            joint = self.simulation._engine.data.joint(f"{name}_free")
            joint.qpos[:], joint.qvel[:] = (*pose.pos, *pose.quat_wxyz), 0.0


@contextmanager
def bench(name: str, seed: int = 0) -> Iterator[Bench]:
    one = Bench(name, seed)
    yield one
    one.simulation.close()


def test_every_step_of_the_task_files_has_a_skill() -> None:
    assert set(SKILLS) == set(ORACLE_STEPS.values())


@pytest.mark.parametrize("name", ["panda_cube_on_plate", "robotiq_align_bar"])
def test_pick_lifts_the_object_and_place_puts_it_down_where_the_step_says(name: str) -> None:
    with bench(name) as at:
        pick, place = at.steps[:2]
        start, target = at.pose(pick.object), at.pose(place.target)
        at.do(pick)
        assert at.pose(pick.object).pos[2] - start.pos[2] == pytest.approx(pick.lift, abs=0.02)
        assert at.world.is_in(at.world.hand(pick.arm), pick.object)
        at.do(place)
        assert math.dist(at.pose(pick.object).pos[:2], target.pos[:2]) < 0.01
        assert at.world.hand(place.arm).opening == 1.0
        assert at.world.held(at.world.hand(place.arm)) is None


def test_a_place_on_the_table_is_stated_by_its_middle() -> None:
    with bench("panda_cube_on_plate") as at:
        pick = at.steps[0]
        at.do(pick)
        at.do(Place(pick.object, "table", offset=(-0.1, 0.0, 0.005)))
        assert math.dist(at.pose(pick.object).pos[:2], (-0.1, 0.0)) < 0.01
        assert at.pose(pick.object).pos[2] == pytest.approx(1.02, abs=0.002)


def test_what_is_dropped_on_the_way_is_picked_up_again() -> None:
    with bench("panda_cube_on_plate") as at:
        pick, place = at.steps
        start = at.pose("cube")
        at.do(pick)
        motion = SKILLS[type(place)](at.world, place)
        at.advance(motion, most=20)
        at.put("cube", start)
        at.advance(motion)
        assert math.dist(at.pose("cube").pos[:2], at.pose("plate").pos[:2]) < 0.01


def test_what_cannot_be_had_is_given_up() -> None:
    with bench("panda_cube_on_plate") as at:
        pick, place = at.steps
        at.put("cube", Pose((1.5, 1.5, 0.02)))
        at.do(pick)
        assert at.world.held(at.world.hand(None)) is None
        assert at.do(place) == 0


def test_what_is_moved_while_the_hand_comes_is_picked_where_it_is_then() -> None:
    with bench("panda_cube_on_plate") as at:
        pick, start = at.steps[0], at.pose("cube")
        elsewhere = Pose((start.pos[0] - 0.05, start.pos[1] + 0.04, start.pos[2]), start.quat_wxyz)
        motion = SKILLS[type(pick)](at.world, pick)
        at.advance(motion, most=30)
        at.put("cube", elsewhere)
        at.advance(motion)
        assert at.pose("cube").pos[2] > start.pos[2] + 0.1


def test_operate_opens_and_closes_a_drawer() -> None:
    with bench("panda_open_drawer") as at:
        opening = at.steps[0]
        at.do(opening)
        assert at.simulation.object_joints["cabinet"]["drawer"] == pytest.approx(opening.to, abs=0.015)
        at.do(type(opening)("cabinet", "drawer", 0.02))
        assert at.simulation.object_joints["cabinet"]["drawer"] == pytest.approx(0.02, abs=0.01)


def test_operate_does_nothing_to_a_joint_that_is_where_it_belongs() -> None:
    with bench("panda_open_drawer") as at:
        assert at.do(type(at.steps[0])("cabinet", "drawer", 0.0)) == 0


def test_operate_closes_a_door() -> None:
    with bench("robotiq_close_door") as at:
        assert at.simulation.object_joints["cabinet"]["door"] > math.radians(40)
        at.do(at.steps[0])
        assert at.simulation.object_joints["cabinet"]["door"] == pytest.approx(0.0, abs=math.radians(4))


def test_lift_together_raises_a_tray_level_with_what_lies_in_it() -> None:
    with bench("aloha_lift_tray") as at:
        step, start, cube = at.steps[0], at.pose("tray"), at.pose("cube")
        at.do(step)
        tray = at.pose("tray")
        assert tray.pos[2] - start.pos[2] == pytest.approx(step.height, abs=0.02)
        assert rotate(tray.quat_wxyz, (0.0, 0.0, 1.0))[2] > math.cos(math.radians(5))
        assert at.pose("cube").pos[2] - cube.pos[2] == pytest.approx(step.height, abs=0.02)


def test_hand_over_leaves_the_object_in_the_other_hand() -> None:
    with bench("aloha_hand_over") as at:
        pick, give = at.steps[:2]
        at.do(pick)
        at.do(give)
        left, right = at.world.hand("left"), at.world.hand("right")
        assert at.pose("stick").pos == pytest.approx(give.at, abs=0.02)
        assert at.world.is_in(right, "stick")
        assert at.world.held(left) is None
        assert math.dist(left.measured.pos, left.home.pos) < 0.005


def test_wait_and_home_hold_still_and_go_back() -> None:
    with bench("panda_cube_on_plate") as at:
        hand = at.world.hand(None)
        joints = at.simulation.joints
        assert at.do(Wait(7)) == 7
        assert np.abs(at.simulation.joints - joints).max() < 1e-3
        at.do(at.steps[0])
        at.do(Home())
        assert math.dist(hand.measured.pos, hand.home.pos) < 0.005
