"""Poses of entities in the world."""

from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest

import urlab
from urlab.ros2.convert import EntityPoses, SceneChanged
from urlab.ros2.frames import WORLD, SceneFrames
from urlab_wire.stream_messages import StateFull

TRAY = """<mujoco model="tray"><worldbody><body name="tray" pos="0 0 1" euler="10 20 30"><freejoint/><geom size=".1"/>
  <body name="rim" pos="0 1 0" euler="0 90 0"><geom size=".1"/></body></body>
  <body name="wall" pos="3 0 0" euler="0 0 45"><geom size=".1"/></body></worldbody></mujoco>"""


def state_of(reply: dict[str, Any]) -> StateFull:
    return msgspec.convert({key: reply[key] for key in StateFull.__struct_fields__} | {"op": "state_full"}, StateFull)


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
