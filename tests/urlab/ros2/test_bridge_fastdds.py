"""`urlab ros2` and `urlab serve` as processes, as another vendor's DDS sees them, and as a client of the server does.

The simulation is paused while contents are compared, so that all of them are of one moment.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.ros2 import messages
from urlab.ros2.qos import CLOCK, LATCHED, PICTURES, RELIABLE, SENSOR_DATA, TF, Qos
from urlab_wire.ops.stepping import split_s

JOINT_STATE, CLOCK_TYPE, TRANSFORMS = "sensor_msgs/msg/JointState", "rosgraph_msgs/msg/Clock", "tf2_msgs/msg/TFMessage"
IMAGE, CAMERA_INFO, STRING = "sensor_msgs/msg/Image", "sensor_msgs/msg/CameraInfo", "std_msgs/msg/String"
TWIST, ARRAY = "geometry_msgs/msg/Twist", "std_msgs/msg/Float64MultiArray"
CAMERA = "panda/camera/overhead"
WRITTEN = {
    "clock": (CLOCK_TYPE, CLOCK),
    "tf": (TRANSFORMS, TF),
    "tf_static": (TRANSFORMS, LATCHED),
    "joint_states": (JOINT_STATE, RELIABLE),
    "panda/joint_states": (JOINT_STATE, RELIABLE),
    "robot_description": (STRING, LATCHED),
    f"{CAMERA}/image_raw": (IMAGE, PICTURES),
    f"{CAMERA}/camera_info": (CAMERA_INFO, PICTURES),
    "camera/image_raw": (IMAGE, PICTURES),
    "sensor_data": (ARRAY, replace(SENSOR_DATA, reliable=True)),
}
READ = {"panda/joint_command": JOINT_STATE, "joint_command": JOINT_STATE, "control": ARRAY, "cmd_vel": TWIST}


def dds_type(type_name: str) -> str:
    package, kind, name = type_name.split("/")
    return f"{package}::{kind}::dds_::{name}_"


def words(qos: Qos) -> list[str]:
    return ["reliable" if qos.reliable else "best_effort", "transient_local" if qos.transient_local else "volatile"]


@pytest.fixture(scope="module")
def world(start_world: Any) -> Any:
    return start_world("panda", bridge=("--qos", "/sensor_data=reliable"))


@pytest.fixture(scope="module")
def driver(world: Any) -> Any:
    """A client that has moved the arm from where it began, and paused; its state is that of the pause."""
    driver = world.connect()
    arm = driver.articulations["panda"]
    arm.set_ctrl(dict.fromkeys(list(arm.actuators)[:3], 0.3))
    while abs(arm.get_qpos()["joint1"]) < 0.05:
        driver.step()
    driver.runtime.set_paused(True)
    driver.step()
    assert driver.data.time == driver.sim.status().sim_time
    return driver


@pytest.fixture(scope="module")
def hear(world: Any, driver: Any) -> Callable[..., Any]:
    """The first message on a topic that is of the pause, or that fits otherwise."""
    now = split_s(driver.data.time)

    def is_now(message: Any) -> bool:
        stamps = [message.clock] if hasattr(message, "clock") else [one.header.stamp for one in headed(message)]
        return all((one.sec, one.nanosec) == now for one in stamps)

    def hear(topic: str, fits: Callable[[Any], bool] = is_now) -> Any:
        type_name, qos = WRITTEN[topic]
        reader = topic.replace("/", "-")
        world.peer.do("subscribe", reader, f"rt/{topic}", dds_type(type_name), *words(qos), qos.depth, "-")
        for number in range(1000):
            message = messages.deserialise(world.peer.sample(reader, after=number), type_name)
            if fits(message):
                return message
        raise AssertionError(f"nothing on {topic} fits")

    return hear


def headed(message: Any) -> list[Any]:
    return list(message.transforms) if hasattr(message, "transforms") else [message]


@pytest.mark.parametrize("topic", WRITTEN)
def test_topics_are_found_under_their_ros_names_with_type_and_quality(world: Any, topic: str) -> None:
    type_name, qos = WRITTEN[topic]
    found = world.peer.event("writer", "alive", None, f"rt/{topic}")
    assert found[4] == dds_type(type_name)
    assert bytes.fromhex(found[5]).decode() == f"typehash={messages.type_hash(type_name)};"
    assert found[6:] == words(qos)


@pytest.mark.parametrize("topic", READ)
def test_commands_are_awaited_under_their_ros_names(world: Any, topic: str) -> None:
    found = world.peer.event("reader", "alive", None, f"rt/{topic}")
    assert found[4] == dds_type(READ[topic])
    assert found[6:] == words(RELIABLE)


@pytest.mark.parametrize("topic", ["joint_states", "panda/joint_states"])
def test_joint_states_are_those_of_the_client_at_that_stamp(driver: Any, hear: Any, topic: str) -> None:
    heard, arm = hear(topic), driver.articulations["panda"]
    assert heard.name == list(arm.joints)
    assert heard.position.tolist() == arm.qpos_array.tolist()
    assert heard.velocity.tolist() == arm.qvel_array.tolist()
    assert abs(heard.position[0]) >= 0.05, "it has moved"


def test_the_clock_stands_where_the_server_does(hear: Any) -> None:
    hear("clock")


def test_transforms_lead_to_where_mujoco_has_the_bodies(driver: Any, hear: Any) -> None:
    moving, fixed = hear("tf"), hear("tf_static", lambda one: len(one.transforms) > 0)
    edges = {one.child_frame_id: one for one in (*fixed.transforms, *moving.transforms)}
    data = mujoco.MjData(driver.model)
    data.qpos[:] = driver.data.qpos
    mujoco.mj_kinematics(driver.model, data)
    for name in ("link1", "link4", "link7", "hand", "finger1"):
        body = data.body(f"panda_{name}")
        place, turn = world_pose(f"panda/{name}", edges)
        assert place == pytest.approx(body.xpos, abs=1e-9)
        assert turn == pytest.approx(body.xmat.reshape(3, 3), abs=1e-9)


def world_pose(frame: str, edges: dict[str, Any]) -> tuple[Any, Any]:
    """Where a frame is in the world, (3,) and (3, 3), along the transforms that lead to it."""
    place, turn = np.zeros(3), np.eye(3)
    while frame != "world":
        edge = edges[frame]
        by, at = edge.transform.rotation, edge.transform.translation
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, np.array([by.w, by.x, by.y, by.z]))
        place = np.array([at.x, at.y, at.z]) + rotation.reshape(3, 3) @ place
        turn = rotation.reshape(3, 3) @ turn
        frame = edge.header.frame_id
    return place, turn


def test_a_picture_has_the_pixels_and_the_stamp_that_the_client_gets(driver: Any, hear: Any) -> None:
    view = driver.articulations["panda"].cameras["overhead"]
    while view.sim_time != driver.data.time:
        view.wait_for_frame()
    heard = hear(f"{CAMERA}/image_raw")
    assert (heard.width, heard.height, heard.step, heard.encoding) == (640, 480, 1920, "bgr8")
    pixels = heard.data.reshape(480, 640, 3)[..., ::-1]
    assert np.array_equal(pixels, view.latest_frame[..., :3])
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 100, "it shows something"
    info = hear(f"{CAMERA}/camera_info")
    assert info.header == heard.header
    assert (info.k[0], info.k[2]) == pytest.approx((view.intrinsics[0, 0], view.intrinsics[0, 2] - 0.5))


def test_a_late_joiner_gets_the_description_of_the_robot(hear: Any) -> None:
    assert 'name="joint7"' in hear("robot_description", lambda _: True).data
