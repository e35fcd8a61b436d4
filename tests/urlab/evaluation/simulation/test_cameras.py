"""Pictures against geometry: what is drawn is where the poses, the intrinsics and the depths say."""

import itertools

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab.cameras.renderer import SceneRenderer
from urlab.config import RenderProfile
from urlab.evaluation.simulation.scene import mujoco_quat, protocol_quat
from urlab.evaluation.simulation.simulation import Simulation

HALF_M = 0.025


@pytest.fixture(scope="module")
def simulation(task, embodiment, layout):
    simulation = Simulation(task, embodiment, cameras=True)
    simulation.reset(layout)
    yield simulation
    simulation.close()


@pytest.fixture(scope="module")
def views(simulation):
    return simulation.render()


def axes(quat):
    """Columns: forward, left, up, in the world."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quat, dtype=np.float64))
    return matrix.reshape(3, 3)


def project(view, points_w):
    """Pixel coordinates (u, v) and depths of points in the world, by the numbers that a client gets."""
    ahead, left, up = ((points_w - view["p"]) @ axes(view["q"])).T
    in_camera = np.stack([-left, -up, ahead])
    u, v, w = view["intrinsics_matrix"] @ in_camera
    return np.stack([u / w, v / w], axis=1), ahead


def unproject(view, rows, columns):
    """The points in the world that pixels show, by the numbers that a client gets."""
    pixels = np.stack([columns + 0.5, rows + 0.5, np.ones(len(rows))])
    right, down, ahead = np.linalg.inv(view["intrinsics_matrix"]) @ pixels * view["depth"][rows, columns]
    return np.stack([ahead, -right, -down], axis=1) @ axes(view["q"]).T + view["p"]


def red_pixels(view):
    red, green, blue = (view["rgb"][..., channel].astype(int) for channel in range(3))
    return np.nonzero((red > 40) & (red > 2 * green) & (red > 2 * blue))


def corners_of(pose):
    return np.array(pose.pos) + HALF_M * np.array(list(itertools.product((-1, 1), repeat=3))) @ axes(pose.quat_wxyz).T


def test_every_camera_gives_pictures_of_the_stated_kind(views, embodiment):
    assert list(views) == [mount.name for mount in embodiment.cameras]
    for mount in embodiment.cameras:
        view = views[mount.name]
        assert (view["rgb"].shape, view["rgb"].dtype) == ((mount.height, mount.width, 3), np.uint8)
        assert (view["depth"].shape, view["depth"].dtype) == ((mount.height, mount.width), np.float32)
        expected = [[mount.fx, 0, mount.cx], [0, mount.fy, mount.cy], [0, 0, 1]]
        assert view["intrinsics_matrix"].tolist() == expected
        assert np.linalg.norm(view["q"]) == pytest.approx(1.0)


def test_a_camera_of_the_world_is_where_its_mount_says(views, embodiment):
    for mount in embodiment.cameras:
        if mount.body is None:
            np.testing.assert_allclose(views[mount.name]["p"], mount.pos_m, atol=1e-6)
            np.testing.assert_allclose(axes(views[mount.name]["q"]), axes(mount.quat_wxyz), atol=1e-6)


def test_a_mounted_camera_rides_on_its_body(views, embodiment, simulation):
    data = simulation._engine.data
    mujoco.mj_kinematics(simulation._engine.model, data)
    for mount in embodiment.cameras:
        if mount.body is not None:
            body = data.body(f"robot_{mount.body}")
            rotation = body.xmat.reshape(3, 3)
            np.testing.assert_allclose(views[mount.name]["p"], body.xpos + rotation @ mount.pos_m, atol=1e-6)
            np.testing.assert_allclose(axes(views[mount.name]["q"]), rotation @ axes(mount.quat_wxyz), atol=1e-6)


def test_a_block_is_drawn_where_its_corners_are_projected(views, simulation):
    seen = 0
    for view in views.values():
        points, ahead = project(view, corners_of(simulation.objects["block"]))
        height, width = view["depth"].shape
        if (ahead <= 0).any() or points.min() < 2 or (points.max(axis=0) > (width - 2, height - 2)).any():
            continue
        rows, columns = red_pixels(view)
        if len(rows) == 0:
            continue
        drawn = [columns.min(), columns.max() + 1, rows.min(), rows.max() + 1]
        expected = [points[:, 0].min(), points[:, 0].max(), points[:, 1].min(), points[:, 1].max()]
        np.testing.assert_allclose(drawn, expected, atol=1.01)
        seen += 1
    assert seen >= 1


def test_the_depths_of_a_block_s_pixels_lie_on_its_surface(views, simulation):
    pose, seen = simulation.objects["block"], 0
    for view in views.values():
        points = (unproject(view, *red_pixels(view)) - pose.pos) @ axes(pose.quat_wxyz)
        seen += len(points) > 100
        np.testing.assert_allclose(np.abs(points).max(axis=1), HALF_M, atol=1e-3)
    assert seen >= 1


def test_the_table_s_depths_lie_in_its_plane(views):
    """Most of what the cameras see is the table: heights of all pixels have their peak at its top."""
    for view in views.values():
        rows, columns = (
            grid.ravel() for grid in np.mgrid[0 : view["depth"].shape[0] : 4, 0 : view["depth"].shape[1] : 4]
        )
        heights = unproject(view, rows, columns)[:, 2]
        assert np.mean(np.abs(heights - 1.0) < 1e-3) > 0.05


def test_robot_table_and_objects_are_well_visible(views):
    """Neither dark nor blown out, and not of one colour."""
    for view in views.values():
        brightness = view["rgb"].mean(axis=2)
        assert 60 < brightness.mean() < 220
        assert np.mean(brightness > 250) < 0.05
        assert brightness.std() > 15


def test_two_pictures_of_one_state_are_the_same(simulation, views, layout, task, embodiment):
    other = Simulation(task, embodiment, cameras=True)
    other.reset(layout)
    for name, view in other.render().items():
        assert np.array_equal(view["rgb"], views[name]["rgb"])
        assert np.array_equal(view["depth"], views[name]["depth"])
        assert np.array_equal(view["p"], views[name]["p"])
    other.close()


part = st.floats(-1.0, 1.0)
quats = st.tuples(part, part, part, part).filter(lambda quat: np.linalg.norm(quat) > 0.1)


def quat_axes(quat):
    """The turned quat_axes, as rows."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.array(quat) / np.linalg.norm(quat))
    return matrix.reshape(3, 3).T


@given(quats)
def test_forward_left_and_up_are_the_same_directions_in_both_conventions(quat):
    forward, left, up = quat_axes(quat)
    right_m, up_m, backward_m = quat_axes(mujoco_quat(quat))
    np.testing.assert_allclose([-backward_m, -right_m, up_m], [forward, left, up], atol=1e-9)


@given(quats)
def test_there_and_back_is_the_same_rotation(quat):
    back = protocol_quat(mujoco_quat(quat))
    assert back[0] >= 0
    np.testing.assert_allclose(quat_axes(back), quat_axes(quat), atol=1e-9)


def test_pictures_are_of_the_same_profile_where_a_gpu_draws(simulation, monkeypatch):
    monkeypatch.setattr(SceneRenderer, "gl_name", "NVIDIA GeForce RTX 4090/PCIe/SSE2")
    assert simulation._rig._renderer.profile is RenderProfile.FAST
