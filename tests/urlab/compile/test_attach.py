from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.geometry import Pose
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level

THING = """
<mujoco model="thing"><asset><texture name="t" type="2d" builtin="checker" width="8" height="8" rgb2="1 1 1"/>
  <material name="m" texture="t" rgba="1 0 0 1"/><material name="n" rgba="0 1 0 1"/>
  <mesh name="wedge" vertex="0 0 0  .1 0 0  0 .1 0  0 0 .1"/>
  <hfield name="h" nrow="2" ncol="2" size="1 1 .1 .1" elevation="0 1 0 1"/></asset>
  <worldbody><geom type="hfield" hfield="h" material="n" pos="0 0 -1"/>
  <body name="b"><freejoint/><geom type="mesh" mesh="wedge" material="m"/><site name="s" material="n"/></body>
  </worldbody></mujoco>"""


@pytest.fixture
def level(tmp_path: Path) -> Level:
    path = tmp_path / "thing.xml"
    path.write_text(THING)
    return Level("l", tuple(Actor(f"thing-{i}", str(path), pose=Pose((3.0 * i, 0.0, 0.0))) for i in range(4)))


def test_four_actors_need_the_assets_of_one(level: Level) -> None:
    model = compile_scene(level, Library(file_record)).model
    assert (model.nmat, model.ntex, model.nmesh, model.nhfield) == (2, 1, 1, 1)
    assert model.ngeom == 8


def test_each_looks_and_weighs_as_it_would_alone(level: Level) -> None:
    library = Library(file_record)
    scene = compile_scene(level, library).model
    alone = compile_scene(Level("one", level.actors[:1]), library).model
    for i in range(4):
        mesh, lone = scene.geom(f"thing-{i}_geom_1"), alone.geom("thing-0_geom_1")
        assert scene.material(int(mesh.matid[0])).name == alone.material(int(lone.matid[0])).name
        assert scene.body(f"thing-{i}").mass == alone.body("thing-0").mass
        np.testing.assert_array_equal(scene.body(f"thing-{i}").inertia, alone.body("thing-0").inertia)
        assert int(scene.geom(f"thing-{i}_geom_0").dataid[0]) == int(alone.geom("thing-0_geom_0").dataid[0])


Write = Callable[..., Path]
Compose = Callable[..., Any]

REFERRING_THING = """
<mujoco>
  <worldbody>
    <body name="box" pos="0 0 1"><freejoint/><geom name="box" size=".1"/><site name="box"/></body>
    <camera name="eye" mode="targetbody" target="box" pos="0 -1 1"/>
    <light name="spot" mode="targetbody" target="box"/>
  </worldbody>
  <sensor>
    <framepos name="p" objtype="body" objname="box"/><framepos name="x" objtype="xbody" objname="box"/>
    <framepos name="g" objtype="geom" objname="box" reftype="body" refname="box"/>
    <framepos name="s" objtype="site" objname="box"/>
  </sensor>
  <equality><weld name="w" body1="box"/></equality>
  <contact><exclude body1="world" body2="box"/></contact>
  <custom>
    <tuple name="t"><element objtype="body" objname="box"/><element objtype="geom" objname="box"/></tuple>
  </custom>
</mujoco>
"""


@pytest.fixture
def crate(write: Write, compose: Compose) -> Any:
    path = write("thing", REFERRING_THING)
    return compose({"other": path, "crate": path}).model


def test_cameras_and_lights_keep_their_target(crate: Any) -> None:
    body = crate.body("crate").id
    assert crate.camera("crate_eye").targetbodyid == body
    assert crate.light("crate_spot").targetbodyid == body


def test_sensors_keep_what_they_watch(crate: Any) -> None:
    body, geom, site = crate.body("crate").id, crate.geom("crate_box").id, crate.site("crate_box").id
    assert {name: int(crate.sensor(f"crate_{name}").objid[0]) for name in "pxgs"} == {
        "p": body, "x": body, "g": geom, "s": site,
    }  # fmt: skip
    assert crate.sensor("crate_g").refid == body


def test_constraints_exclusions_and_tuples_keep_their_body(crate: Any) -> None:
    body = crate.body("crate").id
    assert crate.equality("crate_w").obj1id == body
    assert body in crate.exclude_signature
    assert crate.tuple("crate_t").objid.tolist() == [body, crate.geom("crate_box").id]


WORLDLY_THING = """
<mujoco model="worldly">
  <worldbody>
    <light name="l" mode="targetbody" target="world" pos="0 0 3"/>
    <camera name="c" mode="targetbody" target="world" pos="1 1 1"/>
    <geom name="ground" type="plane" size="1 1 .1"/>
    <body name="held" pos="0 0 1"><freejoint/><geom size=".1"/></body>
    <body name="hung" pos="0 1 1"><freejoint/><geom size=".1"/></body>
    <body name="tied" pos="1 0 1"><freejoint/><geom size=".1"/></body>
    <body name="arm"><joint name="j"/><geom size=".05" pos=".2 0 .3"/></body>
    <flexcomp name="sheet" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="0 0 2" radius=".01" mass="1">
      <edge equality="true"/><pin id="0 2 6 8"/></flexcomp>
  </worldbody>
  <equality>
    <weld name="w" body1="held" relpose="0 0 -1 1 0 0 0"/>
    <weld name="v" body1="tied" body2="world" relpose="-1 0 -1 1 0 0 0"/>
    <connect name="p" body1="world" body2="hung" anchor="0 1 1"/>
  </equality>
  <contact><exclude name="e" body1="world" body2="arm"/></contact>
  <sensor>
    <framepos name="of_world" objtype="body" objname="world"/>
    <framepos name="from_world" objtype="body" objname="arm" reftype="body" refname="world"/>
    <contact name="touches" body1="world" body2="held" data="found"/>
  </sensor>
</mujoco>"""


def test_references_to_the_world_give_the_model_that_mujoco_makes_of_the_file(
    write: Write, compose: Compose, differ: Callable[..., list[str]]
) -> None:
    path = write("worldly", WORLDLY_THING)
    assert differ(compose({"worldly": path}).model, mujoco.MjModel.from_xml_path(str(path))) == []


def test_what_is_fixed_to_the_world_of_a_file_moves_with_the_actor(write: Write, compose: Compose) -> None:
    path, shift = write("worldly", WORLDLY_THING), np.array([10.0, -3.0, 0.5])
    model = compose({"worldly": (path, Pose(tuple(shift)))}).model
    alone = mujoco.MjModel.from_xml_path(str(path))
    moved, data = mujoco.MjData(model), mujoco.MjData(alone)
    for _ in range(300):
        mujoco.mj_step(model, moved)
        mujoco.mj_step(alone, data)
    for body in ("held", "hung", "tied"):
        np.testing.assert_allclose(moved.body(f"worldly_{body}").xpos, data.body(body).xpos + shift, atol=1e-6)
    np.testing.assert_allclose(moved.flexvert_xpos, data.flexvert_xpos + shift, atol=1e-5)
    mujoco.mj_forward(model, moved)
    np.testing.assert_allclose(moved.cam("worldly_c").xmat, data.cam("c").xmat, atol=1e-9)
    assert model.nsensor == 3
    np.testing.assert_array_equal(moved.sensor("worldly_of_world").data, [0, 0, 0])


SKINNED_THING = """
<mujoco model="cushion"><worldbody><body name="box"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody>
  <deformable><skin name="cover" {where}/></deformable></mujoco>"""


def skin_file(path: Path, bones: tuple[str, ...]) -> None:
    """One triangle, every vertex of which every bone carries."""
    points, bind = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4"), np.array([0, 0, 0, 1, 0, 0, 0], "<f4")
    head = np.array([3, 0, 1, len(bones)], "<i4").tobytes() + points.tobytes() + np.array([0, 1, 2], "<i4").tobytes()
    carried = np.array([3, 0, 1, 2], "<i4").tobytes() + np.ones(3, "<f4").tobytes()
    path.write_bytes(head + b"".join(name.encode().ljust(40, b"\0") + bind.tobytes() + carried for name in bones))


@pytest.mark.parametrize("bones", [("box",), ("box", "world")])
def test_a_thing_of_one_body_keeps_the_skin_that_a_file_puts_on_it(
    write: Write, compose: Compose, bones: tuple[str, ...]
) -> None:
    path = write("cushion", SKINNED_THING.format(where='file="cover.skn"'))
    skin_file(path.parent / "cover.skn", bones)
    scene = compose({"cushion": path, "cushion-2": (path, Pose((3.0, 0.0, 0.0)))})
    model, alone = scene.model, mujoco.MjModel.from_xml_path(str(path))
    assert [one.name for one in scene.entities] == ["cushion", "cushion-2"]
    assert (model.nskin, model.nskinvert) == (2, 2 * alone.nskinvert)
    first = model.skin_bonebodyid[: len(bones)]
    assert [model.body(int(body)).name for body in first] == [{"box": "cushion"}.get(bone, bone) for bone in bones]
    np.testing.assert_allclose(model.skin_bonevertweight[:3], alone.skin_bonevertweight[:3])


def test_a_thing_of_one_body_keeps_a_skin_without_a_name(write: Write, compose: Compose) -> None:
    text = """<mujoco model="t"><worldbody><body name="b"><freejoint/><geom size=".1"/></body></worldbody>
      <deformable><skin vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
      <bone body="b" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></deformable>
      </mujoco>"""
    model = compose({"t": write("t", text)}).model
    assert model.body(int(model.skin_bonebodyid[0])).name == "t"


CHILD = """<mujoco model="child"><worldbody><body name="b"><freejoint/><geom size=".1"/>
  <body name="c" pos="0 0 1"><joint name="j"/><geom size=".1"/></body></body></worldbody>
  <keyframe><key name="up" qpos="0 0 2 1 0 0 0 .5"/></keyframe></mujoco>"""
PARENT = """<mujoco model="parent"><asset><model name="m" file="child.xml"/></asset><worldbody>
  <body name="rail"><joint name="r" type="slide"/><geom size=".2"/></body>
  <frame pos="3 0 0"><attach model="m" body="b" prefix="k_"/></frame></worldbody></mujoco>"""


def test_keyframes_of_a_model_that_a_file_attaches_stay_and_may_be_started_from_in_two_copies(
    write: Write, compose: Compose, differ: Callable[..., list[str]]
) -> None:
    write("child", CHILD)
    path = write("parent", PARENT)
    alone = mujoco.MjModel.from_xml_path(str(path))
    assert differ(compose({"parent": path}).model, alone) == []
    actors = tuple(Actor(f"p-{i}", str(path), keyframe="k_up", pose=Pose((0.0, 5.0 * i, 0.0))) for i in (1, 2))
    scene = compile_scene(Level("two", actors), Library(file_record))
    assert [scene.model.key(i).name for i in range(scene.model.nkey)] == ["p-1_k_up", "p-2_k_up"]
    assert [one.start_key for one in scene.articulations] == [0, 1]
    free = int(scene.model.joint("p-2_free").qposadr[0])
    np.testing.assert_allclose(scene.model.key_qpos[1, free : free + 3], alone.key_qpos[0, 1:4] + [0, 10, 0])
