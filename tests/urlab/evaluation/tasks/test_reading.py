"""Task files: what they say is what the task has, and what is wrong with one is told with field and remedy."""

import math
from pathlib import Path

import pytest

from urlab.evaluation.tasks.goal import PositionRange, Relationship
from urlab.evaluation.tasks.oracle_steps import HandOver, LiftTogether, Operate, Pick, Place
from urlab.evaluation.tasks.shapes import SHAPES, BoxShape, Plate
from urlab.evaluation.tasks.task import TaskError, find_task, load_task, own_tasks, parse_task, task_names

GOOD = """
embodiment = "franka_panda"
title = "Cube on plate"
category = "pick_place"
num_steps = 600
instructions = ["Put the {cube} on the {plate}."]
goal = { object = "cube", relation = "on", target = "plate", never_reset = true }

[objects.plate]
shape = "plate"
radius = 0.08
x = [0, 0.1]
y = [0.1, 0.2]

[objects.cube]
shape = "box"
size = [0.04, 0.05, 0.06]
color = "red"
labels = ["cube", "block"]
mass_kg = 0.05
friction = 1.5
x = [-0.1, 0]
y = [-0.2, -0.1]
yaw_deg = [-30, 30]

[objects.closet]
shape = "door_cabinet"
size = [0.14, 0.18, 0.14]
fixed = true
x = [0.3, 0.3]
y = [0.5, 0.5]
joints = { door = [30, 60] }

[[oracle]]
do = "pick"
object = "cube"
lift = 0.2

[[oracle]]
do = "place"
object = "cube"
target = "plate"
"""


def parse(text: str):
    return parse_task(text, name="mine", source="mine.toml")


def test_a_file_becomes_a_task(tmp_path: Path) -> None:
    path = tmp_path / "cube_on_plate.toml"
    path.write_text(GOOD)
    task = load_task(path)
    assert (task.name, task.embodiment, task.title) == ("cube_on_plate", "franka_panda", "Cube on plate")
    assert (task.category, task.num_steps) == ("pick_place", 600)
    assert task.instructions == ("Put the {cube} on the {plate}.",)
    assert list(task.objects) == ["plate", "cube", "closet"]
    assert task.objects["plate"].shape == Plate(0.08)
    assert task.oracle == (Pick("cube", lift=0.2), Place("cube", "plate"))
    assert task.goal.subgoals == (Relationship("cube", "on", "plate", never_reset=True),)
    assert find_task(str(path)) == task


def test_an_object_has_what_its_table_says() -> None:
    cube = parse(GOOD).objects["cube"]
    assert cube.shape == BoxShape((0.04, 0.05, 0.06))
    assert isinstance(cube.shape, SHAPES["box"])
    assert cube.extents == pytest.approx((0.04, 0.05, 0.06))
    assert (cube.color, cube.labels, cube.mass_kg, cube.friction, cube.fixed) == (
        "red",
        ("cube", "block"),
        0.05,
        1.5,
        False,
    )
    assert cube.placement.yaw_deg == (-30, 30)


def test_what_is_left_out_has_a_default() -> None:
    objects = parse(GOOD).objects
    assert objects["plate"].labels == ("grey plate",)
    assert objects["plate"].placement.yaw_deg == (0, 0)
    assert parse(GOOD.split("[[oracle]]")[0]).oracle == ()


def test_hinges_are_stated_in_degrees_and_kept_in_radians() -> None:
    assert parse(GOOD).objects["closet"].placement.joints["door"] == pytest.approx((math.pi / 6, math.pi / 3))


@pytest.mark.parametrize("prefix", ["", "manip/default/sr_based_genmanip_"])
def test_types_can_be_named_as_in_genmanip(prefix: str) -> None:
    goal = f'{{ type = "{prefix}range", object = "cube", z = [1.1, 1.2] }}'
    assert parse(
        GOOD.replace('{ object = "cube", relation = "on", target = "plate", never_reset = true }', goal)
    ).goal.subgoals == (PositionRange("cube", z=(1.1, 1.2)),)


ALOHA = GOOD.replace("franka_panda", "aloha").split("[[oracle]]")[0]


def test_steps_for_two_arms() -> None:
    steps = """
[[oracle]]
do = "lift_together"
object = "plate"
left_offset = [0, 0.1, 0]
right_offset = [0, -0.1, 0]
height = 0.2
[[oracle]]
do = "pick"
object = "cube"
arm = "left"
[[oracle]]
do = "hand_over"
object = "cube"
arm = "left"
to_arm = "right"
at = [0, 0, 1.2]
[[oracle]]
do = "operate"
object = "closet"
joint = "door"
to = 90
arm = "right"
"""
    assert parse(ALOHA + steps).oracle == (
        LiftTogether("plate", (0, 0.1, 0), (0, -0.1, 0), 0.2),
        Pick("cube", "left"),
        HandOver("cube", "left", "right", (0, 0, 1.2)),
        Operate("closet", "door", 90, "right"),
    )


WRONG = [
    (
        "franka_panda",
        "franka",
        "mine.toml:2: embodiment: is 'franka', expected one of franka_panda, franka_robotiq, aloha",
    ),
    ('title = "Cube on plate"\n', "", "mine.toml: title: is missing"),
    ('title = "Cube on plate"', "title = 3", "title: expected text, got a whole number"),
    ("num_steps = 600", "num_steps = 1", "num_steps: expected a whole number >= 10, not 1"),
    (
        "num_steps = 600",
        "num_stepz = 600",
        "mine.toml:5: num_stepz: unknown key (did you mean 'num_steps'?); allowed: embodiment, title",
    ),
    ("num_steps = 600", "num_steps 600", "mine.toml:5:11: not TOML: Expected '=' after a key"),
    (
        "{cube}",
        "{cubes}",
        "instructions[0]: {cubes} names no object; allowed: closet, cube, plate (did you mean 'cube'?)",
    ),
    ("{cube}", "{cube", "instructions[0]: braces must be in pairs"),
    ("{cube}", "{cube!r}", "instructions[0]: braces hold the name of an object and nothing else"),
    ("{cube}", "{cube:d}", "instructions[0]: braces hold the name of an object and nothing else"),
    (
        '"franka_panda"',
        '["franka_panda"]',
        "embodiment: is ['franka_panda'], expected one of franka_panda, franka_robotiq",
    ),
    ('"box"', "3", "mine.toml:16: objects.cube.shape: is 3, expected one of box, cylinder, sphere"),
    ('labels = ["cube", "block"]', 'labels = [""]', "objects.cube.labels[0]: expected text of length >= 1, not ''"),
    ("x = [-0.1, 0]", "x = [0.5, 0.7]", "objects.cube.x: must be within -0.6 to 0.6 m to be on the table"),
    ("yaw_deg = [-30, 30]", 'on = "plate"', "objects.cube.x: must be within -0.08 to 0.08 m to be on plate"),
    (
        'object = "cube"\nlift',
        'object = "closet"\nlift',
        "oracle[0].object: 'closet' cannot be carried; allowed: cube, plate",
    ),
    ('object = "cube"\nlift', 'object = "plate"\nlift', "oracle[1].object: no step before it picks up 'cube'"),
    ("lift = 0.2", "offset = [0, 0, nan]", "oracle[0].offset[2]: expected a number >= -2.0, not nan"),
    ('shape = "box"', 'shape = "bux"', "objects.cube.shape: is 'bux', expected one of box, cylinder, sphere"),
    ('shape = "box"\n', "", "mine.toml:15: objects.cube.shape: is missing, expected one of box"),
    ("radius = 0.08\n", "", "objects.plate.radius: is missing"),
    ("radius = 0.08", "radius = -0.08", "objects.plate.radius: expected a number > 0.001, not -0.08"),
    (
        "radius = 0.08",
        "radious = 0.08",
        "objects.plate.radious: unknown key (did you mean 'radius'?); allowed: radius, height, x, y",
    ),
    ('color = "red"', 'color = "rad"', "objects.cube.color: is 'rad', expected one of red, orange"),
    ("mass_kg = 0.05", "mass_kg = 0", "objects.cube.mass_kg: expected a number >= 0.005, not 0"),
    ("x = [-0.1, 0]", "x = [0, -0.1]", "objects.cube.x: a range is [low, high] with low <= high, not [0, -0.1]"),
    ("x = [-0.1, 0]", "x = 0", "objects.cube.x: expected a list, got a whole number"),
    ("x = [-0.1, 0]", "x = [nan, 0]", "objects.cube.x: a range is [low, high]"),
    ("size = [0.14, 0.18, 0.14]", "size = [0.14, 0.18, 0.06]", "objects.closet: handle_length must be"),
    ("door = [30, 60]", "door = [30, 160]", "objects.closet.joints.door: must be [low, high] within 0 to 110"),
    ("door = [30, 60]", "lid = [30, 60]", "objects.closet.joints.lid: unknown key; allowed: door"),
    ("yaw_deg = [-30, 30]", "joints = { a = [0, 1] }", "objects.cube.joints.a: this shape has no joints"),
    ("yaw_deg = [-30, 30]", 'on = "closet"', "objects.cube.on: must be an object or a link stated before it: plate"),
    ("fixed = true", 'fixed = true\non = "plate"', "objects.closet.on: a fixed object stands on the table"),
    ("[objects.cube]", "[objects.robot]", "objects.robot: a name has small letters, digits and _, and is none of"),
    ("[objects.cube]", "[objects.Cube]", "objects.Cube: a name has small letters"),
    (
        'relation = "on"',
        'relation = "above"',
        "mine.toml:7: goal.relation: is 'above', expected one of back, below, between",
    ),
    (
        'target = "plate", never',
        'target = "dish", never',
        "mine.toml:7: goal.target: there is no object 'dish'; allowed: closet",
    ),
    (
        'target = "plate", never',
        'target = "closet/lid", never',
        "there is no object 'closet/lid'; allowed: closet, closet/base",
    ),
    ("never_reset = true", 'other = "closet"', "goal.other: is what 'between' needs"),
    ('relation = "on"', 'relation = "between"', "goal.other: is what 'between' needs"),
    ("never_reset = true", "weight = 2", "goal: the mean of the weights is 2; it must be 1"),
    ("never_reset = true", 'type = "rang"', "goal.type: is 'rang', expected one of relationship"),
    ('{ object = "cube", relation', "[] #", "goal: must be a list that is not empty"),
    ('do = "pick"', 'do = "grab"', "mine.toml:35: oracle[0].do: is 'grab', expected one of pick, place"),
    ('object = "cube"\nlift', 'object = "cup"\nlift', "oracle[0].object: there is no object 'cup'; allowed: closet"),
    ("lift = 0.2", "lift = 2", "oracle[0].lift: expected a number <= 0.5, not 2"),
    ("lift = 0.2", 'arm = "left"', "oracle[0].arm: there is no arm 'left'; allowed: arm"),
]


@pytest.mark.parametrize(("good", "bad", "message"), WRONG, ids=[wrong[2][:40] for wrong in WRONG])
def test_a_mistake_is_told_with_file_field_and_what_is_allowed(good: str, bad: str, message: str) -> None:
    assert good in GOOD
    with pytest.raises(TaskError) as told:
        parse(GOOD.replace(good, bad, 1))
    assert told.value.message.startswith("mine.toml:")
    assert message in told.value.message


COUNT = 'type = "count_multi_object_relationship", objects = ["cube"], relation = "in", target = "plate"'
ALIGN = 'type = "axis_align", object = "cube", target = "plate", axis = "x", target_axis = "x"'
MATCH = 'type = "match_local_world_orientation", object = "cube"'
JOINT = 'type = "check_joint_angle", object = "closet"'
ON = 'object = "cube", relation = "on", target = "plate"'
GOALS = [
    ('type = "range", object = "cube"', "x: at least one of x, y and z must be stated"),
    ('type = "range", object = "cube", z = [2, 1]', "z: an interval is [low, high]"),
    ('type = "range", object = "cube", z = [1, 2], x_of = "plate"', "x_of: needs an interval x"),
    (
        JOINT.replace("closet", "cube") + ', joint = "door", range = [0, 1]',
        "joint: cube has no joint 'door'; it has: none",
    ),
    (
        JOINT.replace("closet", "closet/door") + ', joint = "door", range = [0, 1]',
        "joint: closet/door has no joint 'door'; it has: none (joints belong to whole objects)",
    ),
    (JOINT.replace("closet", "table") + ', joint = "door", range = [0, 1]', "joint: table has no joint 'door'"),
    (JOINT + ', joint = "door", range = [120, 130]', "range: is out of the joint's reach, 0 to 110 deg"),
    ('type = "range", object = "cube", z = [nan, 1]', "z: an interval is [low, high]"),
    (JOINT + ', joint = "lid", range = [0, 1]', "it has: door"),
    (JOINT + ', joint = "door", range = [1, 0]', "range: must be [low, high]"),
    (
        'type = "status", object = "closet", statuses = [{ lid = [0, 1] }]',
        "statuses[0].lid: closet has no joint 'lid'; it has: door",
    ),
    (
        'type = "status", object = "closet", statuses = [{ door = [200, 300] }]',
        "is out of the joint's reach, 0 to 110 deg",
    ),
    ('type = "status", object = "closet", statuses = [{}]', "statuses[0]: expected a table of length >= 1"),
    (COUNT + ", at_least = 2", "at_least: must be at most 1"),
    (MATCH + ", constraints = []", "constraints: expected a list of length >= 1"),
    (
        MATCH + ', constraints = [{ axis = "w", world_axis = "z", angle_deg = [0, 1] }]',
        "constraints[0].axis: is 'w', expected one of +x, +y",
    ),
    (ALIGN + ", threshold_deg = 200", "threshold_deg: expected a number <= 180.0, not 200"),
    (ON + ', leaving = ["can"]', "leaving: there is no object 'can'; allowed: closet, cube, plate"),
    (ON + ', held_by = ["left"]', "held_by: there is no arm 'left'; allowed: arm"),
    (ON + ", held_by = []", "held_by: expected a list of length >= 1"),
    (ON + ', held_by = ["arm"], released = true', "held_by: an object cannot be released and held"),
]


@pytest.mark.parametrize(("goal", "message"), GOALS)
def test_a_mistake_in_a_subgoal_is_told(goal: str, message: str) -> None:
    text = GOOD.replace('{ object = "cube", relation = "on", target = "plate", never_reset = true }', f"[{{ {goal} }}]")
    with pytest.raises(TaskError) as told:
        parse(text)
    assert told.value.message.startswith("mine.toml:7: goal[0]")
    assert message in told.value.message


PICK = 'do = "pick"\nobject = "cube"\narm = "left"'
STEPS = [
    ('do = "pick"\nobject = "cube"', "oracle[0].arm: is missing, and the robot has several; allowed: left, right"),
    ('do = "operate"\nobject = "cube"\njoint = "a"\nto = 1\narm = "left"', "joint: cube has no joint 'a'"),
    (
        'do = "operate"\nobject = "closet"\njoint = "door"\nto = 120\narm = "left"',
        "to: must be within 0 to 110 deg",
    ),
    (
        'do = "place"\nobject = "cube"\ntarget = "plate"\nframe = "magic"\narm = "left"',
        "frame: is 'magic', expected one of target, world",
    ),
    (
        f'{PICK}\n[[oracle]]\ndo = "hand_over"\nobject = "cube"\narm = "left"\nto_arm = "left"\nat = [0, 0, 1.2]',
        "oracle[1].to_arm: must be another arm than 'left'",
    ),
]


@pytest.mark.parametrize(("step", "message"), STEPS)
def test_a_mistake_in_a_step_is_told(step: str, message: str) -> None:
    with pytest.raises(TaskError, match=message.replace("[", r"\[").replace("]", r"\]")):
        parse(f"{ALOHA}\n[[oracle]]\n{step}\n")


def test_two_hands_need_two_arms() -> None:
    offsets = "left_offset = [0, 0, 0]\nright_offset = [0, 0, 0]\nheight = 0.1"
    step = f'\n[[oracle]]\ndo = "lift_together"\nobject = "cube"\n{offsets}\n'
    with pytest.raises(TaskError, match="lift_together needs a robot with two arms"):
        parse(GOOD + step)


def test_an_unknown_task_is_told_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"there is no task 'panda_cube_in_bow'.*did you mean 'panda_cube_in_bowl'"):
        find_task("panda_cube_in_bow")
    with pytest.raises(TaskError, match=r"gone\.toml: cannot be read"):
        find_task(str(tmp_path / "gone.toml"))


@pytest.mark.parametrize("name", ["..toml", ".hidden.toml", "-x.toml"])
def test_a_file_whose_name_makes_no_folder_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(GOOD)
    with pytest.raises(TaskError, match="must begin with a letter or a digit"):
        load_task(tmp_path / name)


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    path = tmp_path / "noise.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TaskError, match="cannot be read"):
        load_task(path)


def test_shipped_tasks_are_found_by_name() -> None:
    assert all(find_task(name).name == name for name in task_names())


def test_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """Results are kept by the task's name: one of them would hide the other."""
    paths = [
        tmp_path / folder / f"{name}.toml" for folder, name in (("a", "tidy"), ("b", "tidy"), ("a", task_names()[0]))
    ]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(GOOD)
    tidy, other, shipped = map(str, paths)
    assert [task.name for task in own_tasks([tidy, tidy])] == ["tidy"]
    with pytest.raises(TaskError, match=r"a/tidy.toml is called 'tidy' as well: rename the file"):
        own_tasks([tidy, other])
    with pytest.raises(TaskError, match=r"a shipped task is called .* as well: rename the file"):
        own_tasks([shipped])
