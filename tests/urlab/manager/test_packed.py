"""Packed observations decode to exactly what the plain ones say."""

from dataclasses import replace

import msgpack
import mujoco
import numpy as np
import pytest

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.manager import Manager, StepCounter, View
from urlab.manager.observation import DATA_FIELDS
from urlab.manager.packed import PackedObserver
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab_wire import encode
from urlab_wire.enums import ObservationLevel
from urlab_wire.ops.stepping import StepRequest

LEVELS = list(ObservationLevel)


def decoded(manager, level, *, packed):
    blocks = manager.read(View(level, packed=packed)).blocks
    if packed:
        return msgpack.unpackb(b"\x82" + blocks)
    return msgpack.unpackb(encode({"per_articulation": blocks.articulations, "entities": blocks.entities}))


@pytest.mark.parametrize("level", LEVELS)
def test_both_ways_say_the_same_at_every_step(demo_manager, level):
    for _ in range(5):
        demo_manager.step(StepRequest(n_steps=3), View(level, packed=True))
        assert decoded(demo_manager, level, packed=True) == decoded(demo_manager, level, packed=False)


def test_numbers_keep_every_bit(demo_manager):
    seen = decoded(demo_manager, ObservationLevel.MINIMAL, packed=True)
    data = demo_manager.engine.data
    joints = demo_manager.scene.articulation("panda").joints
    assert seen["per_articulation"]["panda"]["qpos"] == [float(data.qpos[joint.qpos.start]) for joint in joints]


def test_numbers_that_are_not_finite_travel_too(demo_manager):
    data = demo_manager.engine.data
    data.qvel[0] = np.inf
    data.qvel[1] = np.nan
    robot = demo_manager.scene.articulations[0]
    seen = decoded(demo_manager, ObservationLevel.MINIMAL, packed=True)["per_articulation"][robot.prefix]["qvel"]
    assert np.array_equal(seen[:2], [np.inf, np.nan], equal_nan=True)


def test_a_twist_and_its_actions_show_at_once(demo_manager):
    level = ObservationLevel.STANDARD
    decoded(demo_manager, level, packed=True)
    demo_manager.articulation("quadruped").twist.set([0.5, 0.25], [0, 0, -1.0], 77)
    dog = decoded(demo_manager, level, packed=True)["per_articulation"]["quadruped"]
    assert (dog["twist"], dog["actions"]) == ({"linear": [0.5, 0.25, 0.0], "angular": [0.0, 0.0, -1.0]}, 77)
    assert decoded(demo_manager, level, packed=True) == decoded(demo_manager, level, packed=False)
    demo_manager.articulation("quadruped").twist.set([-0.5], [0, 0, 2.0])
    assert decoded(demo_manager, level, packed=True) == decoded(demo_manager, level, packed=False)


def test_earlier_bytes_are_not_changed_by_later_ones(demo_manager):
    first = demo_manager.read(View(packed=True)).blocks
    before = bytes(bytearray(first))
    demo_manager.step(StepRequest(n_steps=10), View(packed=True))
    demo_manager.read(View(packed=True))
    assert first == before


def test_a_scene_without_joints_packs_its_entities(tmp_path):
    (tmp_path / "post.xml").write_text(
        '<mujoco><worldbody><body name="post"><geom size=".1"/></body></worldbody></mujoco>'
    )
    level = Level("yard", (Actor("post", str(tmp_path / "post.xml")),))
    manager = Manager(
        compile_scene(level, Library(file_record)), replays_dir=tmp_path, roots=FileRoots(), counter=StepCounter()
    )
    assert manager.engine.model.nq == 0
    assert decoded(manager, ObservationLevel.FULL, packed=True) == decoded(manager, ObservationLevel.FULL, packed=False)


TOWN = """
<mujoco model="town"><worldbody>
  <body name="wall" pos="1.2345678901234567 2 3" euler="10 20 30"><geom size=".1"/>
    <body name="shelf" pos=".1 0 0"><geom size=".1"/></body></body>
  <body name="hand" mocap="true"><geom size=".1" contype="0" conaffinity="0"/>
    <body name="thumb" pos=".1 0 0"><geom size=".1" contype="0" conaffinity="0"/></body></body>
  <body name="ball" pos="0 0 9"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def test_bodies_that_cannot_move_are_constant_and_mocap_bodies_are_not(tmp_path):
    path = tmp_path / "town.xml"
    path.write_text(TOWN)
    scene = compile_scene(Level("l", (Actor("town", str(path)),)), Library(file_record))
    manager = Manager(scene, replays_dir=tmp_path, roots=FileRoots(), counter=StepCounter())
    level = ObservationLevel.STANDARD
    before = decoded(manager, level, packed=True)["entities"]
    manager.engine.data.mocap_pos[0] = 3.0, 4.0, 5.0
    for _ in range(3):
        mujoco.mj_step(manager.engine.model, manager.engine.data)
        assert decoded(manager, level, packed=True) == decoded(manager, level, packed=False)
    after = decoded(manager, level, packed=True)["entities"]
    assert after["town_wall"] == before["town_wall"]
    assert after["town_wall"]["xpos"] == manager.engine.data.body("town_wall").xpos.tolist()
    assert after["town_thumb"] != before["town_thumb"]
    assert after["town_ball"] != before["town_ball"]


@pytest.mark.parametrize("level", LEVELS)
def test_arrays_that_do_not_tell_of_one_buffer_are_gathered(demo_manager, level):
    shared = demo_manager.arrays
    apart = replace(shared, **{name: np.array(getattr(shared, name)) for name in DATA_FIELDS})
    observer = PackedObserver(demo_manager.scene, apart)
    for _ in range(3):
        demo_manager.step(StepRequest(n_steps=3), View(level, packed=True))
        for name in DATA_FIELDS:
            getattr(apart, name)[...] = getattr(shared, name)
        assert observer.pack(level) == demo_manager.packed.pack(level)
