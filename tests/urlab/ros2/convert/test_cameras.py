"""Pictures: pixels, intrinsics and optical frames fit together, and with the scene that was drawn."""

import io
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

import urlab
from urlab.ros2.convert.cameras import (
    BadPicture,
    Picture,
    camera_info,
    camera_transform,
    compressed,
    compression_name,
    image,
)
from urlab.ros2.frames import WORLD, SceneFrames
from urlab_client import CameraMode

WIDTH, HEIGHT = 160, 120
BALL_W, RADIUS_M = np.array([1.3, 0.25, 0.4]), 0.12
SCENE = f"""<mujoco model="eye"><visual><map znear=".01" zfar="20"/></visual><statistic extent="1"/><worldbody>
  <light pos="0 0 3"/>
  <geom name="ball" type="sphere" size="{RADIUS_M}" pos="{BALL_W[0]} {BALL_W[1]} {BALL_W[2]}" rgba="1 .1 .1 1"/>
  <body name="head" pos="0 0 .5" euler="0 10 5"><joint name="pan"/><geom size=".01" rgba="0 0 0 0"/>
    <camera name="cam" pos=".05 .02 0" euler="0 -90 -90" fovy="60" resolution="{WIDTH} {HEIGHT}"/>
    <camera name="chase" mode="targetbody" target="head" pos=".4 .3 .2" resolution="{WIDTH} {HEIGHT}"/>
  </body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def eye(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("eye")
    (folder / "eye.xml").write_text(SCENE)
    with urlab.launch(folder / "eye.xml", project=folder / "project") as client:
        client.reset(per_articulation_qpos={"eye": {"pan": 0.1}})
        yield client


def taken(client: Any, mode: str, camera: str = "cam") -> tuple[Picture, Any]:
    """A picture as it travels, and the client's view of it."""
    client.runtime.set_camera_mode(f"eye/{camera}", mode)
    reply = client.step(1, include_cameras={camera: "sync"})
    payload = dict(reply["cameras"][camera])
    return Picture.of_wire(payload.pop("data"), payload), client.articulations["eye"].cameras[camera].latest


def optical_in_world(client: Any, frame: str) -> tuple[np.ndarray, np.ndarray]:
    """Origin and axes (columns) of a static optical frame, with MuJoCo's pose of the body that it is fixed to."""
    edge = next(one for one in SceneFrames(client).static if one.child == frame)
    data, turn = mujoco.MjData(client.model), np.empty(9)
    data.qpos[:] = client.data.qpos
    mujoco.mj_kinematics(client.model, data)
    mujoco.mju_quat2Mat(turn, edge.pose.quat_wxyz)
    body = data.body(edge.parent.replace("/", "_"))
    outer = body.xmat.reshape(3, 3)
    return body.xpos + outer @ edge.pose.pos, outer @ turn.reshape(3, 3)


def off_the_ball(client: Any, depth: np.ndarray, k: np.ndarray) -> float:
    """How far the points that a reader makes of integer pixels are off the ball at most, metres."""
    v, u = np.nonzero(np.isfinite(depth))
    assert len(u) > 200
    rays = np.stack([(u - k[0, 2]) / k[0, 0], (v - k[1, 2]) / k[1, 1], np.ones(len(u))])
    origin, axes = optical_in_world(client, "eye/cam_optical_frame")
    points = origin[:, None] + axes @ (rays * depth[v, u])
    return float(np.abs(np.linalg.norm(points - BALL_W[:, None], axis=0) - RADIUS_M).max())


def grid(message: Any, dtype: Any, channels: int) -> np.ndarray:
    assert message.step == message.width * channels * np.dtype(dtype).itemsize
    shape = (message.height, message.width, channels) if channels > 1 else (message.height, message.width)
    return message.data.view(dtype).reshape(shape)


def test_every_pixel_of_a_depth_image_is_a_point_on_the_ball(eye):
    picture, _ = taken(eye, "depth")
    message, info = image(picture, "eye/cam_optical_frame"), camera_info(picture, "eye/cam_optical_frame")
    depth = grid(message, np.float32, 1)
    assert off_the_ball(eye, depth, info.k.reshape(3, 3)) < 1.5e-3, "MuJoCo's ball has facets of about a millimetre"
    assert off_the_ball(eye, depth, picture.K) > 2.5e-3, "else half a pixel more or less would not be noticed"
    assert (message.encoding, message.is_bigendian) == ("32FC1", 0)
    assert np.isposinf(depth[~np.isfinite(depth)]).all()


def test_a_known_point_is_projected_to_where_it_is_drawn(eye):
    picture, _ = taken(eye, "real")
    pixels = grid(image(picture, "f"), np.uint8, 3).astype(int)
    v, u = np.nonzero(pixels[..., 2] > pixels[..., 0] + 15)  # red, in bgr8
    origin, axes = optical_in_world(eye, "eye/cam_optical_frame")
    in_camera = axes.T @ (BALL_W - origin)
    projected = camera_info(picture, "f").k.reshape(3, 3) @ in_camera / in_camera[2]
    np.testing.assert_allclose([u.mean(), v.mean()], projected[:2], atol=0.7)
    assert in_camera[2] > 0
    assert not (projected[0] == pytest.approx(WIDTH / 2, abs=10) and projected[1] == pytest.approx(HEIGHT / 2, abs=10))


def test_the_wire_and_the_clients_view_give_the_same_colours(eye):
    picture, view = taken(eye, "real")
    message = image(picture, "f")
    assert message.encoding == "bgr8"
    np.testing.assert_array_equal(grid(message, np.uint8, 3)[..., ::-1], view.pixels[..., :3])


@pytest.mark.parametrize("mode", ["semantic", "instance"])
def test_segmentation_is_rgb_in_the_colours_of_the_table(eye, mode):
    message = image(taken(eye, mode)[0], "f")
    known = {one.color for one in eye.segmentation[mode]} | {(0, 0, 0)}
    assert message.encoding == "rgb8"
    assert {tuple(one) for one in grid(message, np.uint8, 3).reshape(-1, 3).tolist()} <= known
    assert message.data.any()


def test_image_and_info_have_one_stamp_and_frame_and_it_is_that_of_the_state_drawn(eye):
    picture, _ = taken(eye, "real")
    message, info = image(picture, "eye/cam_optical_frame"), camera_info(picture, "eye/cam_optical_frame")
    assert message.header == info.header
    assert info.header.frame_id == "eye/cam_optical_frame"
    assert (info.header.stamp.sec, info.header.stamp.nanosec) == (eye.sim_time_sec, eye.sim_time_nsec)


def test_the_intrinsics_are_those_of_a_pinhole(eye):
    info = camera_info(taken(eye, "real")[0], "f")
    focal = 0.5 * HEIGHT / np.tan(np.radians(30))
    k = np.array([[focal, 0, (WIDTH - 1) / 2], [0, focal, (HEIGHT - 1) / 2], [0, 0, 1]])
    np.testing.assert_allclose(info.k.reshape(3, 3), k)
    np.testing.assert_allclose(info.p.reshape(3, 4), np.hstack([k, np.zeros((3, 1))]))
    np.testing.assert_array_equal(info.r.reshape(3, 3), np.eye(3))
    assert (info.distortion_model, info.d.tolist()) == ("plumb_bob", [0.0] * 5)
    assert (info.width, info.height) == (WIDTH, HEIGHT)


def test_a_camera_that_follows_something_is_told_with_its_picture(eye):
    picture, _ = taken(eye, "real", "chase")
    frame = "eye/chase_optical_frame"
    assert SceneFrames(eye).following == {frame}
    message, data, turn = camera_transform(picture, frame), mujoco.MjData(eye.model), np.empty(9)
    data.qpos[:] = eye.data.qpos
    mujoco.mj_forward(eye.model, data)
    t, r = message.transform.translation, message.transform.rotation
    mujoco.mju_quat2Mat(turn, [r.w, r.x, r.y, r.z])
    right, up, back = data.camera("eye_chase").xmat.reshape(3, 3).T
    np.testing.assert_allclose([t.x, t.y, t.z], data.camera("eye_chase").xpos, atol=1e-6)
    np.testing.assert_allclose(turn.reshape(3, 3).T, [right, -up, -back], atol=1e-6)
    assert (message.header.frame_id, message.child_frame_id) == (WORLD, frame)


def test_a_real_picture_is_compressed_as_jpeg(eye):
    picture, view = taken(eye, "real")
    message = compressed(picture, "f")
    assert message.format == "bgr8; jpeg compressed bgr8"
    opened = np.array(Image.open(io.BytesIO(message.data.tobytes())))
    assert np.abs(opened.astype(int) - view.pixels[..., :3].astype(int)).mean() < 3.0
    assert message.header == image(picture, "f").header


def test_segmentation_is_compressed_without_loss(eye):
    picture, _ = taken(eye, "instance")
    message = compressed(picture, "f")
    assert message.format == "rgb8; png compressed bgr8"
    opened = np.array(Image.open(io.BytesIO(message.data.tobytes())))
    np.testing.assert_array_equal(opened, grid(image(picture, "f"), np.uint8, 3))


def test_depth_is_compressed_as_millimetres(eye):
    picture, _ = taken(eye, "depth")
    message = compressed(picture, "f")
    assert message.format == "16UC1; compressedDepth png"
    opened = np.array(Image.open(io.BytesIO(message.data.tobytes()[12:])))
    assert opened.dtype == np.uint16
    seen = np.isfinite(picture.pixels)
    np.testing.assert_allclose(opened[seen], picture.pixels[seen] * 1000, atol=0.51)
    assert not opened[~seen].any()


def test_what_is_too_far_or_no_number_is_nothing_in_millimetres():
    depths = np.array([[1.0, 70.0, np.nan, np.inf, -np.inf, 65.535]], np.float32)
    meta = {"mode": "depth", "width": 6, "height": 1, "K": np.eye(3).ravel().tolist(), "sim_time": 0.0}
    picture = Picture.of_wire(depths.tobytes(), meta)
    opened = np.array(Image.open(io.BytesIO(compressed(picture, "f").data.tobytes()[12:])))
    assert opened.tolist() == [[1000, 0, 0, 0, 0, 65535]]
    assert image(picture, "f").data.tobytes() == depths.tobytes(), "32FC1 keeps them as they are"


def test_each_kind_of_compression_has_the_name_that_ros_gives_it():
    assert compression_name(CameraMode.DEPTH) == "compressedDepth"
    assert {compression_name(one) for one in CameraMode if one is not CameraMode.DEPTH} == {"compressed"}


@pytest.mark.parametrize(
    "change", [{"width": 3}, {"mode": "thermal"}, {"K": [1.0]}, {"sim_time": None}, {"height": None}], ids=str
)
def test_a_picture_that_does_not_fit_its_description_is_refused(change):
    meta = {"mode": "real", "width": 2, "height": 1, "K": [1.0] * 9, "sim_time": 0.5}
    assert Picture.of_wire(bytes(8), meta).sim_time == 0.5
    with pytest.raises(BadPicture, match="8 bytes do not fit"):
        Picture.of_wire(bytes(8), meta | change)


def test_a_picture_without_a_pose_has_no_transform():
    meta = {"mode": "real", "width": 2, "height": 1, "K": [1.0] * 9, "sim_time": 0.5}
    with pytest.raises(BadPicture, match="no pose"):
        camera_transform(Picture.of_wire(bytes(8), meta), "f")
