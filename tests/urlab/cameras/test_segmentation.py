"""The table of labels, and its colours."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from urlab.cameras import segmentation_table
from urlab.cameras.segmentation import BLACK, distinct_colors
from urlab.compile import CompiledScene

Compose = Callable[..., CompiledScene]

CUBE = '<mujoco><worldbody><body name="cube"><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
ARM = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/><body name="base"><geom size=".1"/>
<body name="hand"><joint/><geom size=".1"/></body></body></worldbody></mujoco>"""
SHELF = """<mujoco><worldbody><body name="frame"><geom size=".1"/><body name="board"><geom size=".1"/></body></body>
</worldbody></mujoco>"""
GROUND = '<mujoco><worldbody><geom type="plane" size="1 1 1"/></worldbody></mujoco>'


def names(scene: CompiledScene) -> dict[str, list[str]]:
    return {mode: [row["name"] for row in rows] for mode, rows in segmentation_table(scene).items()}


def test_a_robot_is_one_thing_and_a_class_and_everything_else_is_bodies(compose: Compose) -> None:
    scene = compose({"arm": ARM, "cube": CUBE, "shelf": SHELF, "ground": GROUND}, twins={"arm-2": "arm", "box": "cube"})
    assert names(scene) == {
        "semantic": ["background", "arm", "cube", "shelf", "ground", "world"],
        "instance": [
            *("background", "arm", "cube", "shelf_frame", "shelf_board", "ground", "arm-2", "box", "world"),
        ],
    }


def test_a_sidecar_names_the_class_of_all_and_of_single_bodies(compose: Compose) -> None:
    sidecars = {
        "arm": '[semantic]\nclass = "robot"\nbodies = {hand = "gripper", world = "floor"}',
        "cube": '[semantic]\nbodies = {cube = "toy"}',
        "ground": '[semantic]\nbodies = {world = "lawn"}',
    }
    scene = compose({"arm": ARM, "cube": CUBE, "ground": GROUND}, sidecars)
    assert names(scene)["semantic"] == ["background", "robot", "gripper", "toy", "lawn", "floor"]
    assert names(scene)["instance"] == ["background", "arm", "cube", "ground", "world"]


def test_rows_are_numbered_and_no_two_have_the_same_colour(compose: Compose) -> None:
    table = segmentation_table(compose({"cube": CUBE}, twins={f"cube-{n}": "cube" for n in range(2, 400)}))
    for rows in table.values():
        assert [row["id"] for row in rows] == list(range(len(rows)))
        assert rows[0] == {"id": 0, "color": [0, 0, 0], "name": "background"}
        assert len({tuple(row["color"]) for row in rows}) == len(rows)
    assert (len(table["semantic"]), len(table["instance"])) == (2, 400)


def test_a_free_body_in_a_robots_file_is_a_thing_with_all_that_hangs_on_it(compose: Compose) -> None:
    robot = """<mujoco><worldbody><body name="arm"><joint/><geom size=".1"/></body>
    <body name="box"><freejoint/><geom size=".1"/><body name="lid"><joint/><geom size=".1"/></body></body>
    </worldbody></mujoco>"""
    assert names(compose({"robot": robot}))["instance"] == ["background", "robot", "robot_box"]


def test_an_empty_scene_has_only_a_background(compose: Compose) -> None:
    assert names(compose({})) == {"semantic": ["background"], "instance": ["background"]}


_ELSEWHERE = """
import sys
from urlab.cameras import segmentation_table
from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.scene.level import Actor
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Level
actors = tuple(Actor(name, path) for name, path in zip(sys.argv[1::2], sys.argv[2::2]))
print(segmentation_table(compile_scene(Level("level", actors), Library(file_record))))
"""


def test_another_process_makes_the_same_table(compose: Compose, tmp_path: Any) -> None:
    scene = compose({"arm": ARM, "cube": CUBE})
    paths = [word for name in ("arm", "cube") for word in (name, str(tmp_path / f"{name}.xml"))]
    done = subprocess.run([sys.executable, "-c", _ELSEWHERE, *paths], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(segmentation_table(scene))


@pytest.mark.parametrize("wanted", [0, 1, 20_000])
def test_there_are_as_many_as_wanted_all_different_and_none_black(wanted: int) -> None:
    colors = distinct_colors(wanted)
    assert len(colors) == len(set(colors)) == wanted
    assert BLACK not in colors
    assert all(0 <= part <= 255 for color in colors for part in color)


def test_the_first_ones_are_always_the_same() -> None:
    assert distinct_colors(3) == distinct_colors(9)[:3] == [(255, 0, 0), (33, 71, 162), (148, 196, 81)]


def test_the_first_few_can_be_told_apart_by_people() -> None:
    colors = distinct_colors(8)
    gaps = [
        max(abs(a - b) for a, b in zip(one, other, strict=True)) for one in colors for other in colors if one != other
    ]
    assert min(gaps) >= 32
