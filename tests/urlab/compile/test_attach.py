from collections.abc import Callable
from pathlib import Path
from typing import Any

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
