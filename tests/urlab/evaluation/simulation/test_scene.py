"""The scene of a task: its actors, its physics and its cameras."""

import tempfile
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from urlab.cameras.projection import camera_projection
from urlab.evaluation.embodiments import FRANKA_PANDA, TABLE_TOP_Z_M
from urlab.evaluation.simulation.scene import ROBOT, build_scene, room_mjcf, table_mjcf
from urlab.evaluation.tasks.objects import TABLE_POSE_W, TABLE_SIZE_M
from urlab.robots import model_path


@pytest.fixture(scope="module")
def scene(task, embodiment):
    return build_scene(task, embodiment, cameras=True)


def test_there_is_an_actor_for_the_robot_the_room_and_every_object(scene, task):
    names = [one.actor.name for one in scene.placed]
    assert names == ["robot", "floor", "table", "cameras", *task.objects]


def test_the_robot_stands_where_its_embodiment_says(scene, embodiment):
    root = scene.model.body(scene.placed[0].body_names[0])
    np.testing.assert_allclose(root.pos, embodiment.base_pos_w)
    for joint in embodiment.joints:
        assert scene.model.joint(f"{ROBOT}_{joint}").id >= 0


def test_physics_runs_at_480_hertz_with_options_that_hold_a_grasp(scene):
    options = scene.model.opt
    assert options.timestep == 1 / 480
    assert (int(options.integrator), int(options.cone), options.impratio) == (3, 1, 30.0)
    assert (options.iterations, options.ls_iterations, options.noslip_iterations) == (100, 50, 0)


def test_the_robot_does_not_sag(every_simulation, embodiment):
    np.testing.assert_allclose(every_simulation.joints, embodiment.home, atol=1e-4)


def test_cameras_have_the_intrinsics_of_their_mounts(scene, embodiment):
    slots = {one.short: one for one in (*scene.articulation(ROBOT).cameras, *scene.global_cameras)}
    for mount in embodiment.cameras:
        slot = slots[mount.name]
        assert slot.resolution == (mount.width, mount.height)
        seen = camera_projection(scene.model, slot.id, slot.resolution)
        assert (seen.fx, seen.fy, seen.cx, seen.cy) == pytest.approx((mount.fx, mount.fy, mount.cx, mount.cy), rel=1e-6)


def test_without_cameras_the_scene_has_none_of_the_mounts(task, embodiment):
    model = build_scene(task, embodiment, cameras=False).model
    names = {model.camera(index).name for index in range(model.ncam)}
    assert not {name for name in names for mount in embodiment.cameras if name.endswith(mount.name)}


def test_nothing_is_left_on_disk(task, embodiment, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scene = build_scene(task, embodiment, cameras=True)
    assert list(tmp_path.iterdir()) == []
    assert scene.model.nbody > 10


def test_a_camera_on_a_body_that_the_robot_does_not_have_is_refused(panda_task):
    mount = replace(FRANKA_PANDA.cameras[-1], body="tail")
    with pytest.raises(ValueError, match="camera 'realsense' is mounted on 'tail', which the robot does not have"):
        build_scene(panda_task, replace(FRANKA_PANDA, cameras=(mount,)), cameras=True)


def test_the_shipped_models_are_not_changed(embodiment, task):
    before = model_path(embodiment.model).read_bytes()
    build_scene(task, embodiment, cameras=True)
    assert model_path(embodiment.model).read_bytes() == before


def test_the_table_is_where_goals_and_layouts_expect_it():
    model = mujoco.MjModel.from_xml_string(table_mjcf())
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    top = data.geom("top").xpos
    assert top == pytest.approx(TABLE_POSE_W.pos)
    assert 2 * model.geom("top").size == pytest.approx(TABLE_SIZE_M)
    assert top[2] + model.geom("top").size[2] == pytest.approx(TABLE_TOP_Z_M)
    assert model.njnt == 0


def test_legs_and_walls_are_for_the_eye_only():
    for text, solid in ((table_mjcf(), {"top"}), (room_mjcf(), {"plane"})):
        model = mujoco.MjModel.from_xml_string(text)
        colliding = {model.geom(index).name for index in range(model.ngeom) if model.geom_contype[index]}
        assert colliding == solid


def test_the_legs_stand_on_the_floor_and_carry_the_top():
    model = mujoco.MjModel.from_xml_string(table_mjcf())
    for number in range(1, 5):
        leg = model.geom(f"leg_{number}")
        assert leg.pos[2] - leg.size[2] == pytest.approx(0.0)
        assert leg.pos[2] + leg.size[2] == pytest.approx(TABLE_TOP_Z_M - TABLE_SIZE_M[2])
