"""Skins and flexes as the browser is sent them, against MuJoCo's own places of their vertices."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import urlab
from urlab.editor.soft_bodies import SoftBodies

CLOTH = """<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <flexcomp name="cloth" type="grid" count="4 4 1" spacing="0.1 0.1 0.1" pos="0 0 1" dim="2" mass="1" radius="0.01"
            rgba="0.2 0.4 0.8 1"><edge equality="true"/></flexcomp>
  <flexcomp name="rope" type="grid" count="5 1 1" spacing="0.1 0.1 0.1" pos="1 0 1" dim="1" mass="1" radius="0.01">
    <edge equality="true"/></flexcomp>
  <flexcomp name="jelly" type="grid" count="3 3 3" spacing="0.1 0.1 0.1" pos="2 0 1" dim="3" mass="1" radius="0.01">
    <edge equality="true"/></flexcomp>
</worldbody></mujoco>"""


SKIN = """<mujoco model="sleeve"><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
  <light pos="-2 0 4" dir="0.5 0 -1"/>
  <body name="upper" pos="0 0.6 0.6"><geom type="sphere" size="0.02" mass="1"/>
    <body name="lower" pos="0 0 0.4"><joint name="elbow" axis="1 0 0" range="-3 3" damping="1"/>
      <geom type="sphere" size="0.02" mass="1"/></body></body></worldbody>
  <deformable><skin name="sleeve" rgba="0.9 0.1 0.8 1" vertex="0 0.4 0.6  0 0.8 0.6  0 0.8 1.2  0 0.4 1.2"
    face="0 1 2  0 2 3"><bone body="upper" bindpos="0 0.6 0.6" bindquat="1 0 0 0" vertid="0 1" vertweight="1 1"/>
    <bone body="lower" bindpos="0 0.6 1" bindquat="1 0 0 0" vertid="2 3" vertweight="1 1"/></skin></deformable>
</mujoco>"""
"""A quad whose upper corners follow a joint."""


class Sent:
    """Stands in for viser's scene: keeps what a browser would be told."""

    def __init__(self) -> None:
        self.scene = self
        self.nodes: dict[str, Any] = {}

    def add_mesh_simple(self, name: str, vertices: Any, faces: Any, **look: Any) -> Any:
        return self._add(name, vertices=vertices, faces=faces, **look)

    def add_line_segments(self, name: str, points: Any, **look: Any) -> Any:
        return self._add(name, points=points, **look)

    def _add(self, name: str, **fields: Any) -> Any:
        node = type("Node", (), {**fields, "remove": lambda _self: self.nodes.pop(name)})()
        self.nodes[name] = node
        return node


class Shown:
    def __init__(self, model: Any, data: Any) -> None:
        self.model, self.data = model, data


@pytest.fixture
def falling() -> Any:
    model = mujoco.MjModel.from_xml_string(CLOTH)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return Shown(model, data)


def vertices_of(shown: Any, flex: int) -> Any:
    first, count = shown.model.flex_vertadr[flex], shown.model.flex_vertnum[flex]
    return shown.data.flexvert_xpos[first : first + count]


def test_vertices_are_where_mujoco_has_them_and_follow_its_steps(falling: Any):
    sent = Sent()
    soft = SoftBodies(sent)  # type: ignore[arg-type]
    for _ in range(2):
        soft.update(falling)
        cloth, jelly = sent.nodes["/soft/flex-0"], sent.nodes["/soft/flex-2"]
        assert np.asarray(cloth.vertices) == pytest.approx(vertices_of(falling, 0), abs=1e-5)
        assert np.asarray(jelly.vertices) == pytest.approx(vertices_of(falling, 2), abs=1e-5)
        rope = np.asarray(sent.nodes["/soft/flex-1"].points)
        assert rope.shape == (4, 2, 3)
        assert np.linalg.norm(rope[:, 1] - rope[:, 0], axis=1) == pytest.approx(np.full(4, 0.1), abs=1e-2)
        mujoco.mj_step(falling.model, falling.data, 20)
        mujoco.mj_kinematics(falling.model, falling.data)
        mujoco.mj_flex(falling.model, falling.data)


def test_faces_cover_the_cloth_once_and_the_jelly_from_all_sides(falling: Any):
    sent = Sent()
    SoftBodies(sent).update(falling)  # type: ignore[arg-type]
    cloth, jelly = sent.nodes["/soft/flex-0"], sent.nodes["/soft/flex-2"]
    corners = np.asarray(cloth.vertices)[np.asarray(cloth.faces)]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    assert areas.sum() == pytest.approx(0.3 * 0.3, rel=1e-3)
    assert len(jelly.faces) == 4 * falling.model.flex_elemnum[2]
    assert cloth.color == (51, 102, 204)


def test_corners_of_a_skin_follow_their_bodies():
    model = mujoco.MjModel.from_xml_string(SKIN)
    shown: Any = Shown(model, mujoco.MjData(model))
    sent = Sent()
    soft = SoftBodies(sent)  # type: ignore[arg-type]
    for turn in (0.0, np.pi / 2):
        shown.data.qpos[0] = turn
        mujoco.mj_kinematics(model, shown.data)
        soft.update(shown)
        upper = [(0, 0.8, 1.2), (0, 0.4, 1.2)] if turn == 0 else [(0, 0.4, 1.2), (0, 0.4, 0.8)]
        expected = np.array([(0, 0.4, 0.6), (0, 0.8, 0.6), *upper])
        assert np.asarray(sent.nodes["/soft/skin-0"].vertices) == pytest.approx(expected, abs=1e-5)
    assert sent.nodes["/soft/skin-0"].color == (229, 25, 204)


def is_magenta(red: Any, green: Any, blue: Any) -> Any:
    return (red > 90) & (blue > 90) & (green < 60)


@pytest.mark.page
def test_a_skin_is_seen_and_moves_with_its_bones(tmp_path: Path, browser: Any, open_page: Callable[..., Any]):
    (tmp_path / "sleeve.xml").write_text(SKIN)
    with urlab.launch(str(tmp_path / "sleeve.xml"), step_mode="live", web=True, web_port=0, project=tmp_path) as client:
        client.viewport.set_camera((-2.5, 0.0, 1.2), rotation_euler=(0, 10, 0), fov=70)
        page = open_page(url=client.viewport.editor_url())
        page.close_notices()
        _, before = page.until(lambda: page.middle_of(is_magenta))
        client.runtime.set_paused(True)
        client.runtime.set_qpos("sleeve", [np.pi], by_name=True)
        page.until(lambda: (seen := page.middle_of(is_magenta)) and seen[1] > before + 20)
        page.tab.end()


def test_another_model_takes_the_place_of_the_one_before(falling: Any):
    sent = Sent()
    soft = SoftBodies(sent)  # type: ignore[arg-type]
    soft.update(falling)
    empty = mujoco.MjModel.from_xml_string("<mujoco/>")
    soft.update(Shown(empty, mujoco.MjData(empty)))  # type: ignore[arg-type]
    assert sent.nodes == {}
