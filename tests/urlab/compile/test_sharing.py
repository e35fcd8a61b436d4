"""Actors of one model share its assets."""

from pathlib import Path

import numpy as np
import pytest

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.geometry import Pose
from urlab.scene.actor import Actor
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Level

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
