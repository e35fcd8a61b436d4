"""Level -> CompiledScene: whose options count, and who is at fault when it cannot be done."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.errors import CompileError, ImportFailed
from urlab.physics.options import read_options
from urlab.scene.actor import Actor
from urlab.scene.blueprint_record import BlueprintRecord, file_record
from urlab.scene.level import Level

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


def test_an_actuator_with_several_controls_is_refused_by_name(write: Write, compose: Compose) -> None:
    pid = ARM.replace("</mujoco>", '<actuator><pid name="servo" joint="j"/></actuator></mujoco>')
    with pytest.raises(CompileError, match=r"more than one control.*: arm_servo\. Write them as"):
        compose({"arm": write("arm", pid)})
