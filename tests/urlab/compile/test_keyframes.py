"""Keyframes of one robot in a scene of many: world poses move with the robot, everybody else stays at the start."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile import compile_scene
from urlab.compile.export import export_mjcf
from urlab.compile.library import Library
from urlab.errors import CompileError
from urlab.geometry import Pose, normalised
from urlab.robots import model_path
from urlab.scene.actor import Actor
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Level

Write = Callable[..., Path]
Compose = Callable[..., Any]

THERE = Pose((1.0, -2.0, 0.5), normalised((0.5, -0.1, 0.7, 0.3)))
KEYS = ("time", "qpos", "qvel", "act", "ctrl", "mpos", "mquat")

WALKER = """
<mujoco model="walker">
  <worldbody>
    <body name="target" mocap="true" pos="0 0 2"><geom size=".01" contype="0" conaffinity="0"/></body>
    <body name="trunk" pos="0 0 1"><freejoint name="root"/><geom size=".1"/>
      <body name="leg" pos="0 0 -.2"><joint name="knee" ref="17" axis="0 1 0"/><geom size=".05"/></body>
    </body>
  </worldbody>
  <actuator><intvelocity name="knee" joint="knee" actrange="-1 1"/></actuator>
  <keyframe>
    <key name="jump" time="2" qpos="1 2 3 .5 .5 .5 .5 .7" qvel="1 2 3 4 5 6 7" act=".2" ctrl=".3"
         mpos="4 5 6" mquat="0 0 1 0"/>
    <key name="rest"/>
  </keyframe>
</mujoco>
"""
ARM = """
<mujoco model="arm">
  <worldbody><body name="link" pos="0 0 1"><joint name="j" ref="30"/><geom size=".1"/></body></worldbody>
  <actuator><motor name="j" joint="j"/></actuator>
</mujoco>
"""


@pytest.fixture
def walker(write: Write) -> Path:
    return write("walker", WALKER)


def moved(pos: Any, quat: Any) -> list[float]:
    pose = THERE.apply(Pose(tuple(pos), tuple(quat)))
    return [*pose.pos, *pose.quat_wxyz]


def test_an_unmoved_robot_keeps_its_keyframes_bit_for_bit(walker: Path, compose: Compose) -> None:
    stock, model = mujoco.MjModel.from_xml_path(str(walker)), compose({"walker": walker}).model
    for part in KEYS:
        np.testing.assert_array_equal(getattr(model, f"key_{part}"), getattr(stock, f"key_{part}"))


@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_shipped_robots_keep_theirs(name: str, compose: Compose) -> None:
    stock, model = mujoco.MjModel.from_xml_path(str(model_path(name))), compose({"it": name}).model
    assert stock.nkey > 0
    for part in KEYS:
        np.testing.assert_array_equal(getattr(model, f"key_{part}"), getattr(stock, f"key_{part}"))


def test_free_joints_and_mocap_bodies_move_with_the_robot(walker: Path, compose: Compose) -> None:
    model = compose({"walker": (walker, THERE)}).model
    key = model.key("walker_jump").id
    np.testing.assert_allclose(model.key_qpos[key, :7], moved((1, 2, 3), (0.5, 0.5, 0.5, 0.5)))
    np.testing.assert_allclose([*model.key_mpos[key], *model.key_mquat[key]], moved((4, 5, 6), (0, 0, 1, 0)))
    assert model.key_qpos[key, 7] == 0.7
    assert model.key_qvel[key].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert (model.key_act[key], model.key_ctrl[key], model.key_time[key]) == (0.2, 0.3, 2)


def test_a_keyframe_that_says_nothing_is_the_start(walker: Path, compose: Compose) -> None:
    model = compose({"walker": (walker, THERE)}).model
    key = model.key("walker_rest").id
    start = moved((0, 0, 1), (1, 0, 0, 0))
    np.testing.assert_allclose(model.qpos0[:7], start)
    np.testing.assert_allclose(model.key_qpos[key], model.qpos0)
    np.testing.assert_allclose([*model.key_mpos[key], *model.key_mquat[key]], moved((0, 0, 2), (1, 0, 0, 0)))


def test_everybody_else_takes_the_start(walker: Path, write: Write, compose: Compose) -> None:
    arm = write("arm", ARM)
    model = compose({"before": arm, "walker": (walker, THERE), "walker-2": walker, "after": arm}).model
    key = model.key("walker-2_jump").id
    others = [i for i in range(model.nq) if not 9 <= i < 17]
    np.testing.assert_array_equal(model.key_qpos[key, others], model.qpos0[others])
    assert model.key_qpos[key, 9:17].tolist() == [1, 2, 3, 0.5, 0.5, 0.5, 0.5, 0.7]
    assert model.key_ctrl[key].tolist() == [0, 0, 0.3, 0]
    assert model.key_act[key].tolist() == [0, 0.2]
    np.testing.assert_allclose(model.key_mpos[key].reshape(-1, 3)[0], THERE.apply(Pose((0, 0, 2))).pos)
    assert model.key_mpos[key].reshape(-1, 3)[1].tolist() == [4, 5, 6]


def test_only_the_keyframes_of_a_moved_robot_move(walker: Path, compose: Compose) -> None:
    model = compose({"walker": (walker, THERE), "walker-2": walker}).model
    key = model.key("walker-2_jump").id
    assert model.key_qpos[key, 8:11].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(model.key_qpos[key, :8], model.qpos0[:8])


def test_moved_keyframes_survive_an_export(walker: Path, compose: Compose) -> None:
    scene = compose({"walker": (walker, THERE), "walker-2": walker})
    xml, assets = export_mjcf(scene)
    again = mujoco.MjModel.from_xml_string(xml, assets)
    for part in KEYS:
        np.testing.assert_array_equal(getattr(again, f"key_{part}"), getattr(scene.model, f"key_{part}"))


def test_an_actor_can_name_the_keyframe_that_it_starts_from(walker: Path) -> None:
    actors = (
        Actor("a", str(walker), keyframe="rest"),
        Actor("b", str(walker), keyframe="jump"),
        Actor("c", str(walker)),
    )
    scene = compile_scene(Level("l", actors), Library(file_record))
    keys = [one.start_key for one in scene.articulations]
    assert [None if key is None else scene.model.key(key).name for key in keys] == ["a_rest", "b_jump", None]


def test_a_keyframe_that_the_model_has_not_is_refused(walker: Path) -> None:
    level = Level("l", (Actor("a", str(walker), keyframe="fly"),))
    with pytest.raises(CompileError, match="actor 'a' has no keyframe 'fly'; it has: jump, rest"):
        compile_scene(level, Library(file_record))
