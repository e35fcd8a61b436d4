"""Whose qpos can be set, and what a robot's start keyframe sets."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.errors import UnknownArticulation
from urlab.geometry import Pose
from urlab.manager import Manager, StepCounter, View
from urlab.manager.edits import set_qpos
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab_wire.enums import StepMode

BOXES = """
<mujoco model="boxes"><worldbody>
  <body name="red"><freejoint/><geom size=".1"/></body>
  <body name="blue" pos="1 0 0"><freejoint/><geom size=".1"/></body>
  <body name="shelf" pos="2 0 0"><geom size=".1"/></body></worldbody></mujoco>"""
ARM = """
<mujoco model="arm"><worldbody>
  <body name="link"><joint name="turn"/><geom size=".1"/></body>
  <body name="ball" pos="0 0 1"><freejoint/><geom size=".1"/></body>
  <body name="target" mocap="true" pos="0 1 0"/></worldbody>
  <actuator><position name="plain" joint="turn"/>
    <general name="lagged" joint="turn" dyntype="filter" dynprm=".1"/></actuator>
  <keyframe><key name="up" time="1.5" qpos=".3 0 0 2 1 0 0 0" qvel=".1 0 0 0 0 0 0" ctrl=".2 .4" act=".7"
    mpos="0 3 0" mquat="0 0 0 1"/><key name="zero"/></keyframe></mujoco>"""
Start = Callable[..., Manager]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Plays a level of these actors, in direct mode."""
    with ExitStack() as stack:

        def begin(*actors: Actor) -> Manager:
            for name, text in (("boxes", BOXES), ("arm", ARM)):
                (tmp_path / f"{name}.xml").write_text(text)
            placed = tuple(
                Actor(one.name, str(tmp_path / one.blueprint), one.actor_id, one.pose, keyframe=one.keyframe)
                for one in actors
            )
            scene = compile_scene(Level("yard", placed), Library(file_record))
            manager = Manager(scene, replays_dir=tmp_path, roots=FileRoots(), counter=StepCounter())
            manager.start(StepMode.DIRECT)
            stack.callback(manager.stop)
            return manager

        yield begin


THERE = [9.0, 8.0, 7.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("target", ["boxes_blue", "boxes_red", "arm_ball"])
@pytest.mark.parametrize("by_name", [False, True])
def test_one_free_body_of_several_is_set_by_its_own_name(start: Start, target: str, by_name: bool) -> None:
    manager = start(Actor("boxes", "boxes.xml", "things"), Actor("arm", "arm.xml"))
    before = manager.engine.data.qpos.copy()
    written = set_qpos(manager, target, THERE, by_name=by_name)
    assert (written.target.actor_name, written.free_base_shortcut) == (target, False)
    assert manager.engine.data.body(target).xpos.tolist() == THERE[:3]
    assert (manager.engine.data.qpos != before).sum() == 3, "and nothing else"


@pytest.mark.parametrize("target", ["boxes", "things"])
def test_all_free_bodies_of_an_actor_are_set_together_by_its_name_or_id(start: Start, target: str) -> None:
    manager = start(Actor("boxes", "boxes.xml", "things"))
    there = [*THERE, 4.0, 5.0, 6.0, 1.0, 0.0, 0.0, 0.0]
    assert set_qpos(manager, target, there, by_name=False).qpos == there
    assert manager.engine.data.qpos.tolist() == there


def test_a_name_of_nothing_is_refused_with_those_that_exist(start: Start) -> None:
    manager = start(Actor("boxes", "boxes.xml", "things"))
    with pytest.raises(UnknownArticulation, match=r"'boxes_bleu'.*did you mean 'boxes_blue'.*boxes, .*things"):
        set_qpos(manager, "boxes_bleu", THERE, by_name=False)


def start_of(manager: Manager) -> dict[str, Any]:
    data = manager.engine.data
    names = ("qpos", "qvel", "ctrl", "act", "mocap_pos", "mocap_quat")
    return {"time": data.time, **{name: getattr(data, name).reshape(-1).tolist() for name in names}}


def test_a_start_keyframe_sets_everything_that_it_states(start: Start) -> None:
    manager = start(Actor("arm", "arm.xml", pose=Pose((10.0, 0.0, 0.0)), keyframe="up"))
    expected = {
        "time": 1.5, "qpos": [0.3, 10, 0, 2, 1, 0, 0, 0], "qvel": [0.1, 0, 0, 0, 0, 0, 0], "ctrl": [0.2, 0.4],
        "act": [0.7], "mocap_pos": [10, 3, 0], "mocap_quat": [0, 0, 0, 1],
    }  # fmt: skip
    assert start_of(manager) == expected
    with manager.engine.locked():
        manager.engine.advance(5, float("inf"))
        manager.engine.data.mocap_pos[:] = 0
    manager.reset(View())
    assert start_of(manager) == expected


def test_a_reset_to_a_keyframe_has_the_time_of_that_keyframe(start: Start) -> None:
    manager = start(Actor("arm", "arm.xml", keyframe="up"), Actor("arm-2", "arm.xml", keyframe="up"))
    assert manager.engine.data.time == 1.5
    manager.reset(View(), keyframe="arm_zero")
    assert manager.engine.data.time == 0
    assert manager.engine.data.act.tolist() == [0, 0.7], "the other robot goes where the level starts it"
