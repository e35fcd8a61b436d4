"""Projections, compared with the frustum that MuJoCo itself would use."""

from typing import Any

import mujoco
import pytest

from urlab.cameras.projection import Projection, camera_projection, depth_range

CAMERAS = {
    "plain": 'fovy="60"',
    "narrow": 'fovy="20"',
    "off_centre": 'sensorsize="0.0064 0.0048" focal="0.005 0.006" principal="0.001 -0.0005" resolution="640 480"',
    "in_pixels": 'sensorsize="0.0064 0.0048" focalpixel="500 600" principalpixel="-70 35" resolution="640 480"',
    "flat": 'projection="orthographic" fovy="2"',
}
WORLD = "".join(f'<camera name="{name}" pos="0 -3 0" {said}/>' for name, said in CAMERAS.items())
MODEL = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><geom size='.1'/>{WORLD}</worldbody></mujoco>")


def projection(name: str, resolution: tuple[int, int] = (640, 480)) -> Projection:
    return camera_projection(MODEL, MODEL.camera(name).id, resolution)


def mujoco_eye(name: str) -> Any:
    data, camera = mujoco.MjData(MODEL), mujoco.MjvCamera()
    mujoco.mj_forward(MODEL, data)
    camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, MODEL.camera(name).id
    scene = mujoco.MjvScene(MODEL, maxgeom=10)
    mujoco.mjv_updateScene(MODEL, data, mujoco.MjvOption(), None, camera, mujoco.mjtCatBit.mjCAT_ALL.value, scene)
    return scene.camera[0]


def slopes(eye: Any, aspect: float) -> list[float]:
    """Left, right, bottom, top of what is seen, one metre ahead."""
    reach = 1.0 if eye.orthographic else eye.frustum_near
    width = eye.frustum_width or (eye.frustum_top - eye.frustum_bottom) / 2 * aspect
    edges = (eye.frustum_center - width, eye.frustum_center + width, eye.frustum_bottom, eye.frustum_top)
    return [edge / reach for edge in edges]


@pytest.mark.parametrize("name", CAMERAS)
@pytest.mark.parametrize("resolution", [(640, 480), (100, 200)])
def test_a_projection_shows_what_mujoco_would_show(name: str, resolution: tuple[int, int]) -> None:
    made = mujoco.MjvGLCamera()
    theirs = mujoco_eye(name)
    made.orthographic = theirs.orthographic
    projection(name, resolution).set_frustum([made])
    aspect = resolution[0] / resolution[1]
    assert slopes(made, aspect) == pytest.approx(slopes(theirs, aspect), rel=1e-5)


@pytest.mark.parametrize("name", CAMERAS)
def test_the_edges_of_what_is_seen_are_the_edges_of_the_picture(name: str) -> None:
    one = projection(name)
    left, right, bottom, top = slopes(mujoco_eye(name), 640 / 480)
    assert one.fx * left + one.cx == pytest.approx(0, abs=1e-3)
    assert one.fx * right + one.cx == pytest.approx(640, abs=1e-3)
    assert one.cy - one.fy * top == pytest.approx(0, abs=1e-3)
    assert one.cy - one.fy * bottom == pytest.approx(480, abs=1e-3)


def test_the_matrix_has_the_focal_lengths_and_the_principal_point() -> None:
    one = projection("in_pixels")
    assert one.matrix == pytest.approx((500, 0, 390, 0, 600, 205, 0, 0, 1), abs=1e-3)
    half = projection("in_pixels", (320, 240))
    assert half.matrix == pytest.approx((250, 0, 195, 0, 300, 102.5, 0, 0, 1), abs=1e-3)


def visual(extent: float, said: str = "") -> Any:
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><statistic extent='{extent}'/><visual><map {said}/></visual><worldbody/></mujoco>"
    )


@pytest.mark.parametrize(
    ("extent", "said", "near_m", "far_m"),
    [
        (1, "", 0.01, 100),
        (30, "", 0.01, 1500),
        (0.1, "", 0.001, 100),
        (30, "znear='0.002' zfar='80'", 0.01, 2400),
        (2, "znear='0.05' zfar='4'", 0.1, 8),
    ],
)
def test_a_hand_and_a_hall_are_seen_unless_the_author_wants_less(
    extent: float, said: str, near_m: float, far_m: float
) -> None:
    assert depth_range(visual(extent, said)) == pytest.approx((near_m, far_m), rel=1e-6)
