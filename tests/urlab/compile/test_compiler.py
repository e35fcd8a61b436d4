from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab.compile
from urlab.compile import compile_scene
from urlab.compile.assemble import assemble
from urlab.compile.compiler import _who
from urlab.compile.export import export_mjcf
from urlab.compile.library import Library
from urlab.errors import CompileError, ImportFailed
from urlab.geometry import Pose, normalised
from urlab.physics.engine import route_mujoco_log
from urlab.physics.options import read_options
from urlab.robots import model_path
from urlab.scene.blueprint_record import BlueprintRecord, file_record
from urlab.scene.level import Actor, Level, Light

Write = Callable[..., Path]
Compose = Callable[..., Any]

ARM = """
<mujoco model="arm">
  <option timestep="0.004" impratio="3" viscosity=".1"><flag multiccd="disable"/></option>
  <worldbody><body name="link"><joint name="j"/><geom size=".1"/></body></worldbody>
</mujoco>
"""


def test_options_come_from_defaults_then_robot_then_level_then_server(write: Write, compose: Compose) -> None:
    level = {"impratio": 5, "density": 1.5, "gravity": [0, 0, -1]}
    scene = compose({"arm": write("arm", ARM)}, level, {"density": 2.5, "solver": "cg"})
    found = read_options(scene.model.opt)
    wanted = read_options(mujoco.MjOption()) | {
        "timestep": 0.004, "viscosity": 0.1, "enable_multiccd": False, "impratio": 5, "gravity": [0, 0, -1],
        "density": 2.5, "solver": "cg", "disableflags": found["disableflags"],
    }  # fmt: skip
    assert found == wanted
    assert found["disableflags"] == int(mujoco.mjtDisableBit.mjDSBL_MULTICCD)


def test_an_override_touches_only_what_it_names(write: Write, compose: Compose, differ: Any) -> None:
    path = write("arm", ARM)
    plain, changed = compose({"arm": path}), compose({"arm": path}, {"timestep": 0.001})
    assert differ(plain.model, changed.model) == ["opt.timestep: 0.004 is not 0.001"]


def test_the_model_is_called_like_the_level(compose: Compose) -> None:
    assert compose({}).model.names.startswith(b"level\0")


@pytest.mark.parametrize(
    ("options", "overrides", "words"),
    [
        ({"timestep": -1}, {}, "level 'level': option timestep must not be negative"),
        ({"speed": 1}, {}, "level 'level': there is no option 'speed'"),
        ({}, {"gravity": [1]}, "the server's options: option gravity must have 3 numbers"),
    ],
)
def test_bad_options_say_where_they_come_from(options: Any, overrides: Any, words: str, compose: Compose) -> None:
    with pytest.raises(CompileError, match=words):
        compose({}, options, overrides)


def test_broken_xml_names_the_actor(write: Write, compose: Compose) -> None:
    with pytest.raises(CompileError, match=r"actor 'bad': .*bad\.xml: XML parse error") as failed:
        compose({"arm": write("arm", ARM), "bad": write("bad", "<mujoco><worldbody>")})
    assert isinstance(failed.value.__cause__, ImportFailed)


def test_a_missing_mesh_names_the_actor_and_the_file(write: Write, compose: Compose) -> None:
    lost = (
        '<mujoco><asset><mesh file="lost.stl"/></asset><worldbody><geom type="mesh" mesh="lost"/></worldbody></mujoco>'
    )
    with pytest.raises(CompileError, match=r"(?s)actor 'statue': .*statue\.xml: .*lost\.stl"):
        compose({"arm": write("arm", ARM), "statue": write("statue", lost)})


def test_a_mistake_that_only_compiling_finds_names_the_actor(write: Write, compose: Compose) -> None:
    hollow = "<mujoco><worldbody><body name='shell'><joint/></body></worldbody></mujoco>"
    with pytest.raises(CompileError, match=r"(?s)actor 'hollow': .*mass and inertia.*shell"):
        compose({"arm": write("arm", ARM), "hollow": write("hollow", hollow)})


def test_a_bad_sidecar_names_the_actor_and_the_field(write: Write, compose: Compose) -> None:
    write("arm.urlab.toml", "twist = 3\n")
    with pytest.raises(CompileError, match=r"actor 'arm': .*arm\.urlab\.toml:1: twist: is 3, expected"):
        compose({"arm": write("arm", ARM)})


def test_a_blueprint_that_cannot_be_found_names_the_actor() -> None:
    def nothing(blueprint: str) -> BlueprintRecord:
        raise ImportFailed(f"there is no model {blueprint!r}; there are: none")

    with pytest.raises(CompileError, match="actor 'a': there is no model 'ghost'; there are: none"):
        compile_scene(Level("l", (Actor("a", "ghost"),)), Library(nothing))


def test_a_name_that_is_asked_for_is_found_or_not(compose: Compose) -> None:
    scene = compose({"panda": "panda"})
    assert scene.articulation("panda").prefix == "panda"
    assert scene.articulation("dog") is None


DANGLING = {
    "an actuator's joint": '<actuator><motor joint="nix"/></actuator>',
    "an actuator's site": '<actuator><motor site="nix"/></actuator>',
    "a sensor's joint": '<sensor><jointpos joint="nix"/></sensor>',
    "a sensor's site": '<sensor><touch site="nix"/></sensor>',
    "a sensor's actuator": '<sensor><actuatorpos actuator="nix"/></sensor>',
    "an equality's joint": '<equality><joint joint1="j" joint2="nix"/></equality>',
    "a weld's body": '<equality><weld body1="link" body2="nix"/></equality>',
    "a tendon's joint": '<tendon><fixed><joint joint="nix" coef="1"/></fixed></tendon>',
    "an exclude's body": '<contact><exclude body1="link" body2="nix"/></contact>',
    "a pair's geom": '<contact><pair geom1="ball" geom2="nix"/></contact>',
}


@pytest.mark.parametrize("what", DANGLING)
def test_a_reference_to_what_does_not_exist_is_refused_as_mujoco_does(
    what: str, write: Write, compose: Compose
) -> None:
    xml = f"""<mujoco><worldbody><body name="link"><joint name="j"/><geom name="ball" size=".1"/></body></worldbody>
    {DANGLING[what]}</mujoco>"""
    with pytest.raises(ValueError, match="nix"):
        mujoco.MjModel.from_xml_string(xml)
    with pytest.raises(CompileError, match="arm") as refused:
        compose({"arm": write("arm", xml)})
    assert "nix" in refused.value.message


def test_what_the_level_settles_is_not_reported_as_a_difference(write: Write, compose: Compose) -> None:
    other = ARM.replace("0.004", "0.001").replace('"arm"', '"other"')
    actors = {"arm": write("arm", ARM), "other": write("other", other)}
    assert any("timestep" in note for note in compose(actors).notes)
    assert not any("timestep" in note for note in compose(actors, {"timestep": 0.002}).notes)


def test_a_thing_cannot_start_from_a_keyframe(write: Write) -> None:
    path = write("crate", "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>")
    with pytest.raises(CompileError, match=r"'crate'.*keyframe 'home'"):
        compile_scene(Level("yard", (Actor("crate", str(path), keyframe="home"),)), Library(file_record))


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
POSED_ARM = """
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
    arm = write("arm", POSED_ARM)
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


def test_the_front_door_is_what_others_may_use() -> None:
    assert urlab.compile.__all__ == ["CompiledArticulation", "CompiledEntity", "CompiledScene", "compile_scene"]


def test_a_warning_of_mujoco_is_told_once(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    text = """<mujoco model="sheet"><worldbody><body name="b"><joint/><geom size=".1"/></body>
      <flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" mass="1"/></worldbody></mujoco>"""
    path = write("sheet", text)
    route_mujoco_log()
    with caplog.at_level("WARNING"):
        scene = compile_scene(Level("l", (Actor("sheet", str(path)),)), Library(file_record))
    assert len([note for note in scene.notes if "is not rigid" in note]) == 1
    assert [one.getMessage() for one in caplog.records if one.name != "urlab.watchdog"] == []


def test_a_light_that_is_called_as_one_of_an_actor_is_refused_by_name(write: Write) -> None:
    lamp = (
        "<mujoco model='arm'><worldbody><light name='lamp'/><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    level = Level("l", (Actor("arm", str(write("arm", lamp))),), lights=(Light("arm_lamp"),))
    with pytest.raises(CompileError, match=r"light 'arm_lamp' does not fit in: .*repeated name"):
        compile_scene(level, Library(file_record))


def test_a_complaint_about_a_scene_of_one_actor_names_it_and_its_file(write: Write) -> None:
    """MuJoCo has hardly any such complaint; the words about several actors would be wrong."""
    path = str(
        write("arm", "<mujoco model='arm'><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>")
    )
    actors = (Actor("arm", path), Actor("arm-2", path))
    told = [_who(assemble(Level("l", actors[:count]), Library(file_record)).placed) for count in (1, 2)]
    assert told == [
        f"{path} compiles alone, but not as the actor 'arm'",
        "every actor compiles alone, but not together",
    ]
