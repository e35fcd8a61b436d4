"""Transforms and poses of entities lead to where MuJoCo has the bodies."""

from pathlib import Path
from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.convert.robots import SceneChanged
from urlab.ros2.convert.transforms import EntityPoses, SceneTransforms, static_transforms
from urlab.ros2.frames import WORLD, SceneFrames
from urlab_client import URLabClient
from urlab_wire.stream_messages import StateFull

ODD = """<mujoco model="odd">
  <compiler angle="radian"/>
  <worldbody>
    <body name="arm" pos=".1 .2 .3" euler=".3 .5 .7">
      <joint name="a" axis="1 0 1" pos=".05 0 .02" ref=".4"/>
      <joint name="b" type="slide" axis="0 1 1" ref=".1" pos="1 2 3"/>
      <joint name="c" axis="0 1 0" pos="0 .1 0"/>
      <geom size=".03"/>
      <body name="fore" pos="0 0 .3" euler="1 0 0"><joint name="ball" type="ball" pos="0 0 -.1"/><geom size=".02"/>
        <body name="tip" pos=".1 0 0"><geom size=".02"/><body name="claw" pos="0 .1 0">
          <joint name="d" type="slide" axis="1 0 0"/><geom size=".02"/></body></body></body>
    </body>
    <body name="post" pos="-1 0 0" euler="0 0 1"><geom size=".02"/></body>
    <body name="loose" pos="0 0 1"><freejoint name="fly"/><geom size=".02"/>
      <body name="tail" pos="0 0 .1"><joint name="wag" pos="0 0 .03" ref="-.2"/><geom size=".01"/></body></body>
  </worldbody>
</mujoco>"""


def state_of(reply: dict[str, Any]) -> StateFull:
    return msgspec.convert({key: reply[key] for key in StateFull.__struct_fields__} | {"op": "state_full"}, StateFull)


def scramble(client: URLabClient, rng: np.random.Generator) -> StateFull:
    """Put every joint of every robot somewhere, and let the rest move by one step."""
    wanted = {
        prefix: {name: rng.uniform(-1, 1, joint.qpos_dim).tolist() for name, joint in robot.joints.items()}
        for prefix, robot in client.articulations.items()
    }
    client.reset(per_articulation_qpos=wanted)
    return state_of(client.step(1))


def truth(client: URLabClient) -> Any:
    """MuJoCo's kinematics of the server's newest state."""
    data = mujoco.MjData(client.model)
    data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = (
        client.data.qpos,
        client.data.mocap_pos,
        client.data.mocap_quat,
    )
    mujoco.mj_kinematics(client.model, data)
    return data


def composed(messages: list[Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """World position and rotation matrix of every frame, by multiplying matrices up the tree."""
    edges = {}
    for one in (transform for message in messages for transform in message.transforms):
        t, r = one.transform.translation, one.transform.rotation
        matrix = np.empty(9)
        mujoco.mju_quat2Mat(matrix, [r.w, r.x, r.y, r.z])
        assert one.child_frame_id not in edges, f"{one.child_frame_id} has two parents"
        edges[one.child_frame_id] = (one.header.frame_id, np.array([t.x, t.y, t.z]), matrix.reshape(3, 3))

    def pose(frame: str) -> tuple[np.ndarray, np.ndarray]:
        if frame == WORLD:
            return np.zeros(3), np.eye(3)
        parent, offset, rotation = edges[frame]
        position, outer = pose(parent)
        return position + outer @ offset, outer @ rotation

    return {frame: pose(frame) for frame in edges}


def assert_tf_is_right(client: URLabClient, frames: SceneFrames, state: StateFull) -> None:
    poses = composed([static_transforms(frames, state.sim_time), SceneTransforms(frames, client).convert(state)])
    data, bodies = truth(client), {}
    for prefix, robot in frames.robots.items():
        bodies |= robot.bodies
        root = client.articulations[prefix].body_id
        np.testing.assert_allclose(poses[robot.base][0], data.xpos[root], atol=1e-9)
    bodies |= {client.entities[name].body_id: one.frame_id for name, one in frames.entities.items()}
    del bodies[0]
    for body, frame in bodies.items():
        np.testing.assert_allclose(poses[frame][0], data.xpos[body], atol=1e-9, err_msg=frame)
        np.testing.assert_allclose(poses[frame][1].ravel(), data.xmat[body], atol=1e-9, err_msg=frame)
    assert len(bodies) == client.model.nbody - 1


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("odd")
    (folder / "odd.xml").write_text(ODD)
    with urlab.launch(folder / "odd.xml", project=folder / "project") as client:
        yield client


@pytest.mark.parametrize("seed", range(5))
def test_every_body_of_the_demo_is_where_mujoco_has_it(demo, seed):
    state = scramble(demo, np.random.default_rng(seed))
    assert_tf_is_right(demo, SceneFrames(demo), state)


@pytest.mark.parametrize("seed", range(5))
def test_refs_anchors_and_several_joints_of_a_body_come_out_right(odd, seed):
    state = scramble(odd, np.random.default_rng(seed))
    assert_tf_is_right(odd, SceneFrames(odd), state)


def test_every_quaternion_has_length_one(odd):
    frames = SceneFrames(odd)
    state = scramble(odd, np.random.default_rng(3))
    state.per_articulation["odd"].qpos = [7.0 * one for one in state.per_articulation["odd"].qpos]
    made = SceneTransforms(frames, odd).convert(state).transforms
    turns = [one.transform.rotation for one in made]
    np.testing.assert_allclose([r.x**2 + r.y**2 + r.z**2 + r.w**2 for r in turns], 1.0, atol=1e-12)


def test_all_transforms_have_the_stamp_of_the_state(demo):
    frames, state = SceneFrames(demo), state_of(demo.step(7))
    stamps = {
        (one.header.stamp.sec, one.header.stamp.nanosec)
        for one in SceneTransforms(frames, demo).convert(state).transforms
    }
    assert stamps == {divmod(round(demo.sim_time * 1e9), 10**9)}


def test_what_never_moves_is_only_in_tf_static(demo):
    frames, state = SceneFrames(demo), state_of(demo.step(1))
    moving = {one.child_frame_id for one in SceneTransforms(frames, demo).convert(state).transforms}
    static = {one.child_frame_id for one in static_transforms(frames, state.sim_time).transforms}
    assert not moving & static
    assert {"table", "floor", "panda/hand", "panda/base_link", "quadruped/imu"} <= static
    assert {"box", "target", "quadruped/base_link", "panda/finger1"} <= moving


def test_a_moved_mocap_body_moves_its_frame(demo):
    demo.runtime.set_mocap_pose("target", pos=(0.1, -0.2, 0.9), quat=(0.0, 0.0, 0.0, 2.0))
    state = state_of(demo.step(1))
    made = SceneTransforms(SceneFrames(demo), demo).convert(state).transforms
    target = next(one.transform for one in made if one.child_frame_id == "target")
    assert (target.translation.x, target.translation.y, target.translation.z) == (0.1, -0.2, 0.9)
    assert (target.rotation.z, target.rotation.w) == (1.0, 0.0)


def test_a_state_of_another_scene_is_refused(demo, odd):
    converter = SceneTransforms(SceneFrames(odd), odd)
    with pytest.raises(SceneChanged, match="no robot 'odd'; the state has panda, quadruped"):
        converter.convert(state_of(demo.step(1)))
    state = state_of(odd.step(1))
    state.per_articulation["odd"].qpos.pop()
    with pytest.raises(SceneChanged, match="15 qpos"):
        converter.convert(state)


TRAY = """<mujoco model="tray"><worldbody><body name="tray" pos="0 0 1" euler="10 20 30"><freejoint/><geom size=".1"/>
  <body name="rim" pos="0 1 0" euler="0 90 0"><geom size=".1"/></body></body>
  <body name="wall" pos="3 0 0" euler="0 0 45"><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def tray(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("tray")
    (folder / "tray.xml").write_text(TRAY)
    with urlab.launch(folder / "tray.xml", project=folder / "project") as client:
        yield client


@pytest.mark.parametrize("name", ["tray_tray", "tray_rim", "tray_wall"])
def test_a_pose_is_that_of_the_state_and_not_of_the_step_before(tray, name):
    state = state_of(tray.step(20))
    message = EntityPoses(SceneFrames(tray)).convert(state, name)
    data = mujoco.MjData(tray.model)
    data.qpos[:] = tray.data.qpos
    mujoco.mj_kinematics(tray.model, data)
    position, turn = message.pose.position, message.pose.orientation
    body = tray.model.body(name).id
    np.testing.assert_allclose([position.x, position.y, position.z], data.xpos[body], atol=1e-12)
    quat = np.array([turn.w, turn.x, turn.y, turn.z])
    np.testing.assert_allclose(quat * np.sign(quat @ data.xquat[body]), data.xquat[body], atol=1e-12)
    assert message.header.frame_id == WORLD
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (state.sim_time.sec, state.sim_time.nsec)


def test_the_wire_itself_is_a_step_late(tray):
    state = state_of(tray.step(1))
    falling = state.entities["tray_tray"]
    assert falling.xpos[2] > falling.qpos[2], "else poses could be taken from xpos, and the module says they cannot"


def test_a_state_without_the_entity_is_refused(tray):
    state = state_of(tray.step(1))
    del state.entities["tray_tray"]
    with pytest.raises(SceneChanged, match="no entity 'tray_tray'; the state has tray_rim, tray_wall"):
        EntityPoses(SceneFrames(tray)).convert(state, "tray_rim")
