"""Layouts: the same everywhere, within their ranges, apart, and never done already."""

import hashlib
import json
import math

import numpy as np
import pytest

from urlab.evaluation.goals.scoring import sample_layout
from urlab.evaluation.tasks.layout import GAP_M, Layout, Outline, RandomStream, outline_of
from urlab.evaluation.tasks.task import TaskError, find_task, parse_task, task_names
from urlab.geometry import Pose, wxyz_from_axis_angle

TEXT = """
embodiment = "franka_panda"
title = "t"
category = "c"
num_steps = 600
instructions = ["Put the {cube} on the {plate}."]
goal = { object = "cube", relation = "on", target = "plate" }
[objects.plate]
shape = "plate"
radius = 0.08
labels = ["dish"]
x = [0, 0.1]
y = [-0.1, 0.1]
[objects.cube]
shape = "box"
size = [0.04, 0.04, 0.04]
labels = ["cube", "block"]
x = [-0.2, 0.1]
y = [-0.2, 0.2]
yaw_deg = [10, 80]
"""


ON = """
[objects.cabinet]
shape = "drawer_cabinet"
size = [0.2, 0.2, 0.1]
travel = 0.15
fixed = true
x = [0.2, 0.2]
y = [0.5, 0.5]
yaw_deg = [90, 90]
joints = { drawer = [0.1, 0.15] }
[objects.coin]
shape = "cylinder"
radius = 0.015
height = 0.01
on = "cabinet/drawer"
x = [-0.05, -0.05]
y = [0.02, 0.02]
[objects.pea]
shape = "sphere"
radius = 0.01
on = "plate"
x = [0, 0]
y = [0.03, 0.03]
"""
GOLDEN = [
    {
        "instruction": "Put the block on the dish.",
        "poses": {
            "plate": [0.077994, 0.087837, 1.006, 1.0, 0.0, 0.0, 0.0],
            "cube": [0.092862, -0.13534, 1.02, 0.901398, 0.0, 0.0, 0.432991],
            "cabinet": [0.2, 0.5, 1.05, 0.707107, 0.0, 0.0, 0.707107],
            "coin": [0.18, 0.336172, 1.024, 0.707107, 0.0, 0.0, 0.707107],
            "pea": [0.077994, 0.117837, 1.022, 1.0, 0.0, 0.0, 0.0],
        },
        "joints": {"cabinet": {"drawer": 0.113828}},
    },
    {
        "instruction": "Put the cube on the dish.",
        "poses": {
            "plate": [0.02199, -0.057518, 1.006, 1.0, 0.0, 0.0, 0.0],
            "cube": [0.034315, 0.166628, 1.02, 0.884694, 0.0, 0.0, 0.466172],
            "cabinet": [0.2, 0.5, 1.05, 0.707107, 0.0, 0.0, 0.707107],
            "coin": [0.18, 0.337114, 1.024, 0.707107, 0.0, 0.0, 0.707107],
            "pea": [0.02199, -0.027518, 1.022, 1.0, 0.0, 0.0, 0.0],
        },
        "joints": {"cabinet": {"drawer": 0.112886}},
    },
    {
        "instruction": "Put the block on the dish.",
        "poses": {
            "plate": [0.014808, -0.005065, 1.006, 1.0, 0.0, 0.0, 0.0],
            "cube": [-0.089388, -0.160736, 1.02, 0.81504, 0.0, 0.0, 0.579405],
            "cabinet": [0.2, 0.5, 1.05, 0.707107, 0.0, 0.0, 0.707107],
            "coin": [0.18, 0.326511, 1.024, 0.707107, 0.0, 0.0, 0.707107],
            "pea": [0.014808, 0.024935, 1.022, 1.0, 0.0, 0.0, 0.0],
        },
        "joints": {"cabinet": {"drawer": 0.123489}},
    },
]


def task_of(text: str, name: str = "t"):
    return parse_task(text, name=name, source="t.toml")


def as_data(layout: Layout) -> dict[str, object]:
    return {
        "instruction": layout.instruction,
        "poses": {name: [*pose.pos, *pose.quat_wxyz] for name, pose in layout.poses.items()},
        "joints": layout.joints,
    }


def yaw_deg(pose: Pose) -> float:
    return math.degrees(2 * math.atan2(pose.quat_wxyz[3], pose.quat_wxyz[0]))


def test_the_stream_of_chance_is_the_raw_output_of_pcg64() -> None:
    stream = RandomStream("t/0")
    seed = int.from_bytes(hashlib.sha256(b"t/0").digest(), "big")
    expected = np.random.Generator(np.random.PCG64(seed)).random(1000)
    assert [stream.unit() for _ in range(1000)] == expected.tolist()
    assert expected[:3].tolist() == [0.5386692627623666, 0.20526935818317904, 0.8885562186735734]


@pytest.mark.parametrize("seed", range(3))
def test_seeds_give_the_layouts_that_they_gave_when_they_were_stored(seed: int) -> None:
    assert as_data(sample_layout(task_of(TEXT + ON), seed)) == GOLDEN[seed]


def test_every_seed_and_every_task_has_its_own_chance() -> None:
    task = task_of(TEXT)
    layouts = [as_data(sample_layout(task, seed))["poses"] for seed in range(20)]
    assert len({json.dumps(one) for one in layouts}) == 20
    assert as_data(sample_layout(task, 3)) == as_data(sample_layout(task, 3))
    assert as_data(sample_layout(task_of(TEXT, "other"), 3)) != as_data(sample_layout(task, 3))


def test_poses_are_rounded_and_within_their_ranges() -> None:
    task = task_of(TEXT)
    for seed in range(100):
        pose = sample_layout(task, seed).poses["cube"]
        assert -0.2 <= pose.pos[0] <= 0.1
        assert -0.2 <= pose.pos[1] <= 0.2
        assert pose.pos[2] == 1.02
        assert 10 - 1e-3 <= yaw_deg(pose) <= 80 + 1e-3
        assert all(number == round(number, 6) for number in (*pose.pos, *pose.quat_wxyz))


def test_ranges_are_used_from_end_to_end() -> None:
    free = TEXT.replace("x = [0, 0.1]\ny = [-0.1, 0.1]", "x = [0.5, 0.5]\ny = [0.7, 0.7]")
    xs = np.array([sample_layout(task_of(free), seed).poses["cube"].pos[0] for seed in range(400)])
    assert xs.min() < -0.195
    assert xs.max() > 0.095
    assert xs.mean() == pytest.approx(-0.05, abs=0.02)


def test_objects_are_apart() -> None:
    task = task_of(TEXT)
    for seed in range(100):
        plate, cube = (np.array(sample_layout(task, seed).poses[name].pos) for name in ("plate", "cube"))
        assert np.linalg.norm((cube - plate)[:2]) > 0.08 + 0.02 + GAP_M - 1e-6


def test_the_instruction_is_one_of_the_templates_with_one_of_the_labels() -> None:
    task = task_of(TEXT)
    said = {sample_layout(task, seed).instruction for seed in range(20)}
    assert said == {"Put the cube on the dish.", "Put the block on the dish."}


def test_a_layout_is_never_done_already() -> None:
    near = TEXT.replace('relation = "on"', 'relation = "left"')
    task = task_of(near)
    for seed in range(100):
        poses = sample_layout(task, seed).poses
        cube, plate = poses["cube"].pos, poses["plate"].pos
        is_left = abs(cube[0] - plate[0]) < 0.08 and plate[1] - 0.23 < cube[1] < plate[1] - 0.11
        assert not is_left


def test_ranges_that_leave_no_room_are_told() -> None:
    task = task_of(TEXT.replace("x = [-0.2, 0.1]\ny = [-0.2, 0.2]", "x = [0.02, 0.08]\ny = [-0.05, 0.05]"))
    with pytest.raises(TaskError, match=r"task t: no layout for seed 5: .*too tight.*0.05 m apart"):
        sample_layout(task, 5)


def test_a_goal_that_is_always_reached_is_told() -> None:
    task = task_of(
        TEXT.replace(
            '{ object = "cube", relation = "on", target = "plate" }',
            '{ object = "cube", relation = "on", target = "table" }',
        )
    )
    with pytest.raises(TaskError, match="the first stage of the goal is reached wherever the objects are"):
        sample_layout(task, 0)


def test_things_can_begin_on_and_in_others() -> None:
    layout = sample_layout(task_of(TEXT + ON), 0)
    opening = layout.joints["cabinet"]["drawer"]
    assert 0.1 <= opening <= 0.15
    floor = 1.0 + 0.01 + 0.003 + 0.006
    assert layout.poses["coin"].pos == pytest.approx((0.2 - 0.02, 0.5 - 0.05 - opening, floor + 0.005), abs=2e-6)
    plate = layout.poses["plate"].pos
    assert layout.poses["pea"].pos == pytest.approx((plate[0], plate[1] + 0.03, 1.012 + 0.01), abs=2e-6)


def test_an_outline_covers_an_open_drawer() -> None:
    spec = task_of(TEXT + ON).objects["cabinet"]
    outline = outline_of(spec, Pose((0.0, 0.0, 1.05), wxyz_from_axis_angle((0.0, 0.0, 1.0), math.pi)), {"drawer": 0.15})
    assert max(x for x, _ in outline.corners) == pytest.approx(0.1 + 0.05 + 0.014 + 0.15)
    assert min(x for x, _ in outline.corners) == pytest.approx(-0.1)


@pytest.mark.parametrize(("x", "expected"), [(0.149, True), (0.151, False)])
def test_outlines_keep_a_gap(x: float, expected: bool) -> None:
    square = ((-0.05, -0.05), (0.05, -0.05), (0.05, 0.05), (-0.05, 0.05))
    moved = tuple((px + x, py) for px, py in square)
    assert Outline(square).is_within(0.05, Outline(moved)) is expected
    assert Outline(moved).is_within(0.05, Outline(square)) is expected


@pytest.mark.parametrize("name", task_names())
def test_a_hundred_seeds_of_every_task_have_a_layout(name: str) -> None:
    task = find_task(name)
    for seed in range(100):
        layout = sample_layout(task, seed)
        assert layout.poses.keys() == task.objects.keys()
        assert "{" not in layout.instruction
