"""Frame names, and how frames hang together."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.frames import WORLD, SceneFrames
from urlab_client import URLabClient


def launched(tmp_path: Path, xml: str) -> URLabClient:
    file = tmp_path / "model.xml"
    file.write_text(xml)
    return urlab.launch(file, project=tmp_path / "project")


def edges(frames: SceneFrames) -> dict[str, str]:
    """Every frame's parent: those that never move, those of moving links, those of entities."""
    static = [(one.child, one.parent) for one in frames.static]
    moving = [frames.robots[name].ends(link)[::-1] for name in frames.robots for link in frames.robots[name].links]
    free = [(one.frame_id, WORLD) for one in frames.entities.values() if one.moves and not one.is_robots]
    found = dict([*static, *moving, *free])
    assert len({child for child, _ in static}) == len(static), "a frame has two static parents"
    return found


def line(parents: dict[str, str], frame: str) -> list[str]:
    chain = [frame]
    while chain[-1] in parents:
        chain.append(parents[chain[-1]])
    return chain


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


def test_every_frame_of_the_demo_hangs_on_the_world(demo):
    parents = edges(SceneFrames(demo))
    assert all(line(parents, frame)[-1] == WORLD for frame in parents)
    assert WORLD not in parents


def test_a_free_robot_has_the_chain_of_rep_105(demo):
    frames = SceneFrames(demo)
    chain = line(edges(frames), "quadruped/trunk")
    assert chain == ["quadruped/trunk", "quadruped/base_link", "quadruped/odom", "quadruped/map", WORLD]
    assert (frames.robots["quadruped"].base, frames.robots["quadruped"].odom) == (chain[1], chain[2])


def test_a_fixed_robot_stands_in_the_world(demo):
    frames = SceneFrames(demo)
    assert line(edges(frames), "panda/link0") == ["panda/link0", "panda/base_link", WORLD]
    assert frames.robots["panda"].odom is None


def test_names_of_entities_and_cameras_are_legal_and_bound_to_their_bodies(demo):
    frames = SceneFrames(demo)
    assert frames.entities["box-2"].frame_id == frames.entities["box-2"].topic_name == "box_2"
    assert frames.cameras == {
        "panda/overhead": "panda/overhead_optical_frame",
        "panda/wrist": "panda/wrist_optical_frame",
        "quadruped/front": "quadruped/front_optical_frame",
    }
    assert edges(frames)["panda/wrist_optical_frame"] == "panda/hand"


def test_an_optical_frame_looks_ahead_along_z_and_down_along_y(demo):
    frames, model, data = SceneFrames(demo), demo.model, mujoco.MjData(demo.model)
    mujoco.mj_forward(model, data)
    edge = next(one for one in frames.static if one.child == "panda/wrist_optical_frame")
    camera, body = model.camera("panda_wrist").id, model.body("panda_hand").id
    in_body, turn = np.empty(9), np.empty(9)
    mujoco.mju_quat2Mat(turn, edge.pose.quat_wxyz)
    in_body = data.xmat[body].reshape(3, 3) @ turn.reshape(3, 3)
    right, up, back = data.cam_xmat[camera].reshape(3, 3).T
    np.testing.assert_allclose(in_body.T, [right, -up, -back], atol=1e-12)
    origin = data.xpos[body] + data.xmat[body].reshape(3, 3) @ edge.pose.pos
    np.testing.assert_allclose(origin, data.cam_xpos[camera], atol=1e-12)


def test_sites_with_sensors_are_where_mujoco_has_them(demo):
    frames, model, data = SceneFrames(demo), demo.model, mujoco.MjData(demo.model)
    mujoco.mj_forward(model, data)
    site, body = model.site("panda_ee").id, model.body("panda_hand").id
    edge = next(one for one in frames.static if one.child == frames.robots["panda"].sites[site])
    rotation = data.xmat[body].reshape(3, 3)
    np.testing.assert_allclose(data.xpos[body] + rotation @ edge.pose.pos, data.site_xpos[site], atol=1e-12)
    assert edge.child == "panda/ee"


def test_the_root_of_a_jointed_robot_is_its_mount(tmp_path):
    xml = """<mujoco model="cart"><worldbody><body name="cart" pos="1 2 3"><joint name="x" type="slide" axis="1 0 0"/>
      <geom size=".1"/></body></worldbody></mujoco>"""
    with launched(tmp_path, xml) as client:
        frames = SceneFrames(client)
    assert line(edges(frames), "cart/base_link") == ["cart/base_link", "cart/cart", "cart/mount", WORLD]
    assert frames.robots["cart"].root == "mount"
    mount = next(one for one in frames.static if one.child == "cart/mount")
    np.testing.assert_array_equal(mount.pose.pos, [1, 2, 3])


def test_a_robot_that_has_a_base_link_gets_no_second_one(tmp_path):
    xml = """<mujoco model="rover"><worldbody><body name="base_footprint"><freejoint/><geom size=".1"/>
      <body name="base_link"><geom size=".1"/><body name="odom"><joint name="j"/><geom size=".1"/></body></body>
      </body></worldbody></mujoco>"""
    with launched(tmp_path, xml) as client:
        frames = SceneFrames(client)
    chain = ["rover/base_link", "rover/base_footprint", "rover/odom", "rover/map", WORLD]
    assert line(edges(frames), "rover/base_link") == chain
    assert frames.robots["rover"].base == "rover/base_footprint"
    assert edges(frames)["rover/odom_2"] == "rover/base_link", "a body that is called odom makes room for the real one"


def test_loose_bodies_cameras_and_mocap_bodies_of_a_robot(tmp_path):
    xml = """<mujoco model="kit"><worldbody>
      <camera name="chase" mode="targetbody" target="arm" pos="1 1 1"/><camera name="wall" pos="0 0 2"/>
      <body name="hand_of_god" mocap="true"><geom size=".1"/></body>
      <body name="arm"><joint name="j"/><geom size=".1"/></body>
      <body name="ball" pos="0 0 1"><freejoint name="fly"/><geom size=".1"/></body></worldbody></mujoco>"""
    with launched(tmp_path, xml) as client:
        frames = SceneFrames(client)
    ball = frames.entities["kit_ball"]
    assert (ball.frame_id, ball.is_robots, ball.moves) == ("kit/ball", True, True)
    parents = edges(frames)
    assert parents["kit/ball"] == WORLD
    assert "kit/hand_of_god" not in parents, "no state tells where it is"
    assert frames.robots["kit"].root == "mount", "a body that is moved from outside carries no robot"
    assert parents["kit/wall_optical_frame"] == WORLD
    assert frames.following == {"kit/chase_optical_frame"}


def test_a_camera_of_a_thing_is_fixed_to_it_and_a_part_to_its_carrier(tmp_path):
    xml = """<mujoco model="tray"><worldbody><body name="tray" pos="0 0 1"><freejoint/><geom size=".1"/>
      <body name="rim" pos="0 1 0"><geom size=".1"/><body name="knob" pos="0 1 0" euler="0 0 90"><geom size=".1"/>
      <camera name="eye"/></body></body></body></worldbody></mujoco>"""
    with launched(tmp_path, xml) as client:
        frames = SceneFrames(client)
    parents = edges(frames)
    assert parents["tray_knob"] == parents["tray_rim"] == "tray_tray"
    assert parents["tray_eye_optical_frame"] == "tray_knob"
    np.testing.assert_allclose(frames.entities["tray_knob"].place.pos, [0, 2, 0])


def test_a_client_without_a_model_is_refused():
    with pytest.raises(ValueError, match="local_model=True"):
        SceneFrames(URLabClient())
