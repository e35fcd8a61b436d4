from collections.abc import Callable
from pathlib import Path
from typing import Any

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.geometry import Pose
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level

Write = Callable[..., Path]
Compose = Callable[..., Any]

BALL = "<mujoco model='ball'><worldbody><body name='b'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
FLOORED = "<mujoco model='f'><worldbody><geom type='plane' size='1 1 .1'/></worldbody></mujoco>"
LEG = """<mujoco model="leg"><worldbody><body pos="0 0 1"><joint name="j" type="slide" axis="0 0 1"/>
  <geom size=".1"/></body></worldbody><keyframe><key name="low" qpos="-.95"/></keyframe></mujoco>"""


def test_actors_in_each_other_are_named_with_the_depth(write: Write, compose: Compose) -> None:
    ball = write("ball", BALL)
    notes = compose({"a": ball, "b": (ball, Pose((0.15, 0.0, 0.0))), "c": (ball, Pose((0.0, 5.0, 0.0)))}).notes
    assert notes == ("'a' and 'b' stand in each other at the start: a and b overlap by 50 mm",)


def test_actors_that_touch_by_less_than_a_millimetre_are_not(write: Write, compose: Compose) -> None:
    ball = write("ball", BALL)
    assert compose({"a": ball, "b": (ball, Pose((0.1995, 0.0, 0.0)))}).notes == ()


def test_a_start_keyframe_counts(write: Write) -> None:
    floor, leg = str(write("f", FLOORED)), str(write("leg", LEG))
    library = Library(file_record)
    assert compile_scene(Level("l", (Actor("f", floor), Actor("leg", leg))), library).notes == ()
    (note,) = compile_scene(Level("l", (Actor("f", floor), Actor("leg", leg, keyframe="low"))), library).notes
    assert note == "'f' and 'leg' stand in each other at the start: f and leg_body_1 overlap by 50 mm"


def test_one_robot_that_overlaps_itself_is_its_author_s_business(write: Write, compose: Compose) -> None:
    text = BALL.replace("</worldbody>", "<body><joint type='slide'/><geom size='.1'/></body></worldbody>")
    assert compose({"a": write("ball", text)}).notes == ()


def test_two_floors_at_one_height_are_told(write: Write, compose: Compose) -> None:
    floor = write("f", FLOORED)
    (note,) = compose({"a": floor, "b": floor, "c": (floor, Pose((0.0, 0.0, 1.0)))}).notes
    assert note.startswith("a, b each bring a floor at height 0 m")
