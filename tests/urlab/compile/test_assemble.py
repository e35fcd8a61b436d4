"""Actors in one scene: where they stand, what their elements are called, what they cannot have at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.errors import CompileError
from urlab.geometry import Pose, normalised
from urlab.robots import model_path
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level

Write = Callable[..., Path]
Compose = Callable[..., Any]

THERE = Pose((1.0, -2.0, 0.5), normalised((0.5, -0.1, 0.7, 0.3)))

ARM = """
<mujoco model="arm">
  <option {option}/>
  <worldbody>
    <body name="upper" pos="0 0 .3" euler="0 20 0"><joint name="shoulder" axis="0 1 0"/><geom size=".1"/>
      <body name="lower" pos=".4 0 0" euler="30 0 10"><joint name="elbow" axis="0 1 0"/><geom size=".05"/></body>
    </body>
  </worldbody>
  <actuator><motor name="shoulder" joint="shoulder"/></actuator>
</mujoco>
"""

FREE = '<mujoco><worldbody><body name="it" pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
PAIR = """
<mujoco>
  <worldbody>
    <body name="stand" pos="0 0 1"><geom size=".1"/></body>
    <body name="target" pos="1 0 0" mocap="true"><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""
BARE = '<mujoco><worldbody><geom name="slab" type="box" size="1 1 .1" pos="0 0 .1"/></worldbody></mujoco>'
ROBOT_WITH_BALL = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 1"><freejoint name="root"/><geom size=".1"/>
      <body name="leg" pos="0 0 -.2"><joint name="knee"/><geom size=".05"/></body>
    </body>
    <body name="ball" pos="1 0 1"><freejoint name="roll"/><geom size=".1"/></body>
    <body name="cup" pos="2 0 1"><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


def poses_at_start(model: Any) -> dict[str, tuple[Any, Any]]:
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return {model.body(i).name: (data.xpos[i].copy(), data.xquat[i].copy()) for i in range(1, model.nbody)}


def same_turn(a: Any, b: Any) -> bool:
    return abs(float(np.dot(a, b))) == pytest.approx(1, abs=1e-12)


def entity_names(scene: Any) -> list[str]:
    return [entity.name for entity in scene.entities]


@pytest.mark.parametrize("name", ["panda", "quadruped", "pallet", "table"])
def test_every_body_stands_where_the_actors_pose_puts_it(name: str, compose: Compose) -> None:
    stock = poses_at_start(mujoco.MjModel.from_xml_path(str(model_path(name))))
    moved = poses_at_start(compose({"it": (name, THERE)}).model)
    for body, (pos, quat) in stock.items():
        wanted = THERE.apply(Pose(tuple(pos), tuple(quat)))
        found_pos, found_quat = moved.get(f"it_{body}") or moved["it"]
        np.testing.assert_allclose(found_pos, wanted.pos, atol=1e-12)
        assert same_turn(found_quat, wanted.quat_wxyz), body


def test_every_element_carries_its_actors_prefix(write: Write, compose: Compose) -> None:
    model = compose(dict.fromkeys(("left", "right"), write("arm", ARM.format(option="")))).model
    assert [model.joint(i).name for i in range(model.njnt)] == [
        "left_shoulder", "left_elbow", "right_shoulder", "right_elbow",
    ]  # fmt: skip
    assert [model.body(i).name for i in range(model.nbody)] == [
        "world", "left_upper", "left_lower", "right_upper", "right_lower",
    ]  # fmt: skip


def test_a_mix_of_robots_and_things_makes_mujoco_complain_of_nothing(
    compose: Compose, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ("floor", "panda", "quadruped", "box", "table", "target", "terrain", "pallet")
    scene = compose({**{name: name for name in names}, "panda-2": ("panda", THERE), "box-2": ("box", THERE)})
    parts = {name: mujoco.MjModel.from_xml_path(str(model_path(name))) for name in names}
    assert [note for note in scene.notes if "stand in each other" not in note] == []
    assert capfd.readouterr().err == ""
    assert scene.model.nu == 2 * parts["panda"].nu + parts["quadruped"].nu
    assert scene.model.nq == 2 * parts["panda"].nq + 2 * parts["box"].nq + sum(
        parts[name].nq for name in names if name not in ("panda", "box")
    )


def test_options_that_a_later_robot_would_like_are_reported(write: Write, compose: Compose) -> None:
    first = write("first", ARM.format(option='timestep="0.004"'))
    second = write("second", ARM.format(option='timestep="0.001" gravity="0 0 -1"'))
    scene = compose({"first": first, "second": (second, Pose((5.0, 0.0, 0.0)))})
    assert scene.model.opt.timestep == 0.004
    assert scene.notes == (
        "'second' asks for timestep 0.001, but the scene runs with 0.004 of 'arm'",
        "'second' asks for gravity [0.0, 0.0, -1.0], but the scene runs with [0.0, 0.0, -9.81] of 'arm'",
    )


def test_a_thing_never_sets_the_options_when_there_is_a_robot(write: Write, compose: Compose) -> None:
    thing = write("thing", FREE.replace("<worldbody>", '<option timestep="0.01"/><worldbody>'))
    scene = compose({"thing": thing, "arm": write("arm", ARM.format(option='timestep="0.004"'))})
    assert scene.model.opt.timestep == 0.004
    assert [note for note in scene.notes if "stand in each other" not in note] == []


def test_a_thing_of_one_body_is_named_by_its_prefix(write: Write, compose: Compose) -> None:
    scene = compose({"crate": (write("free", FREE), THERE)})
    crate = scene.entities[0]
    assert (crate.name, crate.actor_name, crate.actor_id) == ("crate", "crate", "id-of-crate")
    assert scene.model.body(crate.body_id).name == "crate"
    assert crate.free_joint.qpos == slice(0, 7)
    assert crate.free_joint.qvel == slice(0, 6)
    np.testing.assert_allclose(scene.model.qpos0[:3], THERE.apply(Pose((0, 0, 1))).pos)


def test_a_thing_of_several_bodies_lists_each(write: Write, compose: Compose) -> None:
    scene = compose({"set": write("pair", PAIR)})
    assert entity_names(scene) == ["set_stand", "set_target"]
    assert [scene.model.body_mocapid[entity.body_id] for entity in scene.entities] == [-1, 0]
    assert all(entity.free_joint is None for entity in scene.entities)


def test_a_thing_without_a_body_gets_one(write: Write, compose: Compose) -> None:
    scene = compose({"slab": (write("bare", BARE), THERE)})
    data = mujoco.MjData(scene.model)
    mujoco.mj_kinematics(scene.model, data)
    assert entity_names(scene) == ["slab"]
    assert scene.model.geom("slab_slab").bodyid == scene.entities[0].body_id
    np.testing.assert_allclose(data.geom("slab_slab").xpos, THERE.apply(Pose((0, 0, 0.1))).pos)


def test_offsets_of_free_things_are_those_of_the_compiled_model(write: Write, compose: Compose) -> None:
    path = write("free", FREE)
    scene = compose({"a": path, "arm": write("arm", ARM.format(option="")), "b": path})
    assert {entity.name: entity.free_joint.qpos for entity in scene.entities} == {"a": slice(0, 7), "b": slice(9, 16)}
    assert {entity.name: entity.free_joint.qvel for entity in scene.entities} == {"a": slice(0, 6), "b": slice(8, 14)}


def test_free_bodies_in_a_robots_file_are_entities_too_but_its_root_is_not(write: Write, compose: Compose) -> None:
    scene = compose({"dog": write("dog", ROBOT_WITH_BALL)})
    robot = scene.articulation("dog")
    assert entity_names(scene) == ["dog_ball"]
    assert [joint.short for joint in robot.joints] == ["root", "knee", "roll"]
    assert (robot.joints[0].name, robot.joints[0].kind) == ("dog_root", 0)
    assert [body.short for body in robot.bodies] == ["trunk", "leg", "ball", "cup"]


def test_a_robot_that_does_not_float_still_lists_its_free_bodies(write: Write, compose: Compose) -> None:
    fixed = ROBOT_WITH_BALL.replace('<freejoint name="root"/>', "")
    scene = compose({"dog": write("dog", fixed)})
    assert entity_names(scene) == ["dog_ball"]
    assert scene.articulation("dog").joints[0].kind != 0


def test_a_scene_of_nothing_compiles(compose: Compose) -> None:
    scene = compose({})
    assert scene.model.nbody == 1
    assert scene.articulations == ()
    assert scene.entities == ()


def test_one_model_file_serves_any_number_of_actors(write: Write, tmp_path: Path) -> None:
    path = write("free", FREE)
    library = Library(lambda _: file_record(str(path)))
    scene = compile_scene(Level("l", tuple(Actor(f"free-{i}", "free") for i in range(5))), library)
    assert len({id(one.blueprint) for one in scene.placed}) == 1


def test_actors_that_clash_are_named(write: Write) -> None:
    path = str(write("arm", ARM.format(option="")))
    level = Level("l", (Actor("arm", path), Actor("arm", path)))
    with pytest.raises(CompileError, match=r"actor 'arm' .* does not fit in: .*repeated name 'arm_"):
        compile_scene(level, Library(file_record))
