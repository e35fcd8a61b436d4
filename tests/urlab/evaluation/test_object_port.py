"""Objects are put where a layout says, and read back from there."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from urlab.evaluation.embodiments import FRANKA_PANDA
from urlab.evaluation.object_port import ObjectPort
from urlab.evaluation.scene import build_scene
from urlab.geometry import Pose


@pytest.fixture(scope="module")
def scene(panda_task):
    return build_scene(panda_task, FRANKA_PANDA, cameras=False)


@pytest.fixture
def data(scene):
    return mujoco.MjData(scene.model)


@pytest.fixture
def port(scene, panda_task):
    return ObjectPort(scene, panda_task.objects)


def test_what_is_put_somewhere_is_there(port, data, layout):
    port.put(data, layout)
    for name, pose in port.poses(data).items():
        np.testing.assert_allclose(pose.pos, layout.poses[name].pos)
        np.testing.assert_allclose(pose.quat_wxyz, layout.poses[name].quat_wxyz, atol=1e-7)
    assert port.joints(data) == {"cabinet": {"drawer": 0.06}}


def test_mujoco_sees_the_objects_where_they_are_said_to_be(scene, port, data, layout):
    port.put(data, layout)
    mujoco.mj_kinematics(scene.model, data)
    for body, name in (("block", "block"), ("tin", "tin"), ("cabinet_cabinet", "cabinet")):
        np.testing.assert_allclose(data.body(body).xpos, layout.poses[name].pos, atol=1e-9)
        np.testing.assert_allclose(data.body(body).xquat, layout.poses[name].quat_wxyz, atol=1e-7)
    drawer, cabinet = data.body("cabinet_drawer"), data.body("cabinet_cabinet")
    np.testing.assert_allclose(drawer.xpos - cabinet.xpos, -0.06 * cabinet.xmat.reshape(3, 3)[:, 0], atol=1e-9)


def test_a_fixed_object_can_be_put_elsewhere_in_the_next_episode(port, data, layout):
    port.put(data, layout)
    moved = Pose((0.2, 0.2, 1.07))
    port.put(data, replace(layout, poses={**layout.poses, "cabinet": moved}))
    assert port.poses(data)["cabinet"] == moved


def test_a_layout_of_other_objects_is_refused(port, data, layout):
    with pytest.raises(ValueError, match="the layout has block; the scene has block, cabinet, tin"):
        port.put(data, replace(layout, poses={"block": Pose()}))
