"""`urlab ros2`, `urlab serve` and a participant of another vendor's DDS: three processes, as their users see them.

All tests share them. In order: what is discovered, rates under load and with readers that hang, commands, contents
(with the simulation paused, so that all of them are of one moment), and last a server that dies and a bridge that ends.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.ros2 import messages
from urlab.ros2.qos import LATCHED, PICTURES, RELIABLE, TF, Qos
from urlab_client import URLabClient
from urlab_wire.ops.stepping import split_s

JOINT_STATE, CLOCK_TYPE, TRANSFORMS = "sensor_msgs/msg/JointState", "rosgraph_msgs/msg/Clock", "tf2_msgs/msg/TFMessage"
IMAGE, CAMERA_INFO, STRING = "sensor_msgs/msg/Image", "sensor_msgs/msg/CameraInfo", "std_msgs/msg/String"
TWIST, ARRAY = "geometry_msgs/msg/Twist", "std_msgs/msg/Float64MultiArray"
CAMERA = "panda/camera/overhead"
PICTURE_TOPIC = f"{CAMERA}/image_raw"
WATCHED_S = 1.0
WRITTEN = {
    "clock": (CLOCK_TYPE, RELIABLE),
    "tf": (TRANSFORMS, TF),
    "tf_static": (TRANSFORMS, LATCHED),
    "joint_states": (JOINT_STATE, RELIABLE),
    "panda/joint_states": (JOINT_STATE, RELIABLE),
    "robot_description": (STRING, LATCHED),
    f"{CAMERA}/image_raw": (IMAGE, PICTURES),
    f"{CAMERA}/camera_info": (CAMERA_INFO, PICTURES),
    "camera/image_raw": (IMAGE, PICTURES),
    "panda/sensor_data": (ARRAY, RELIABLE),
    "sensor_data": (ARRAY, replace(RELIABLE, reliable=False)),
}
READ = {"panda/joint_command": JOINT_STATE, "joint_command": JOINT_STATE, "control": ARRAY, "cmd_vel": TWIST}


def dds_type(type_name: str) -> str:
    package, kind, name = type_name.split("/")
    return f"{package}::{kind}::dds_::{name}_"


def words(qos: Qos) -> tuple[str, str, int, str]:
    durability = "transient_local" if qos.transient_local else "volatile"
    return "reliable" if qos.reliable else "best_effort", durability, qos.depth, "-"


@pytest.fixture(scope="module")
def world(start_world: Any) -> Any:
    """One robot in live mode, and somebody who counts what is said of it, pictures included."""
    world = start_world("panda", bridge=("--qos", "/sensor_data=best_effort"))
    for name, topic, type_name, qos in (
        ("clock", "clock", CLOCK_TYPE, RELIABLE),
        ("joints", "joint_states", JOINT_STATE, RELIABLE),
        ("pictures", PICTURE_TOPIC, IMAGE, PICTURES),
    ):
        world.peer.do("count", name, f"rt/{topic}", dds_type(type_name), *words(qos))
        world.peer.event("matched", name, "1")
    return world


@pytest.fixture
def advertise(world: Any) -> Callable[..., Any]:
    """Makes writers of the peer's; what it returns writes a message.

    Nothing tells when a reader of the bridge's has matched the writer: what is said at first may be lost.
    """

    def advertise(topic: str, type_name: str) -> Callable[..., None]:
        writer = topic.replace("/", "-")
        if not world.peer.has_said("advertised", writer):
            world.peer.do("advertise", writer, f"rt/{topic}", dds_type(type_name), *words(RELIABLE))
            world.peer.event("matched", writer, "1")

        def say(**fields: Any) -> None:
            world.peer.write(writer, messages.serialise(messages.make(type_name, **fields), type_name))

        return say

    return advertise


def until(holds: Callable[[], object], limit_s: float = 30.0) -> None:
    give_up_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < give_up_s, "it did not happen"
        time.sleep(0.01)


# -- discovery --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", WRITTEN)
def test_topics_are_found_under_their_ros_names_with_type_and_quality(world: Any, topic: str) -> None:
    type_name, qos = WRITTEN[topic]
    found = world.peer.event("writer", "alive", None, f"rt/{topic}")
    assert found[4] == dds_type(type_name)
    assert bytes.fromhex(found[5]).decode() == f"typehash={messages.type_hash(type_name)};"
    assert found[6:] == list(words(qos)[:2])


@pytest.mark.parametrize("topic", READ)
def test_commands_are_awaited_under_their_ros_names(world: Any, topic: str) -> None:
    found = world.peer.event("reader", "alive", None, f"rt/{topic}")
    assert found[4] == dds_type(READ[topic])
    assert found[6:] == list(words(RELIABLE)[:2])


# -- load and hung readers ------------------------------------------------------------------------------------------


def rates(world: Any) -> dict[str, Any]:
    """What the peer counts, all at once."""
    names = ("clock", "joints", "pictures")
    found: dict[str, Any] = {}
    threads = [
        threading.Thread(target=lambda name=name: found.update({name: world.peer.counted(name, WATCHED_S)}))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def check_that_all_goes_on(world: Any) -> None:
    """Clock, states and pictures come, and no reader is waited for, which would take 100 ms a message: ten a second.

    A busy machine is watched until it has been quick enough for a moment; `pytest-timeout` is the limit. How many come
    is for `make bench ARGS=ros2`.
    """
    while True:
        found = rates(world)
        rate_hz = min(found["clock"].rate_hz, found["joints"].rate_hz)
        silence_s = max(found["clock"].silence_s, found["joints"].silence_s)
        if rate_hz > 20 and silence_s < 0.8 * WATCHED_S:
            break
    wait_for_pictures(world.peer)


def wait_for_pictures(peer: Any) -> None:
    """Until one comes that was not there before; `pytest-timeout` is the limit."""
    while peer.counted("pictures", 0.1).samples == 0:
        pass


def test_pictures_starve_neither_clock_nor_states(world: Any) -> None:
    check_that_all_goes_on(world)


def test_a_reader_that_never_takes_pictures_stalls_no_other(world: Any, start_peer: Any, tmp_path: Path) -> None:
    other = start_peer(world.domain, tmp_path)
    try:
        other.do("stall", "idle", f"rt/{PICTURE_TOPIC}", dds_type(IMAGE))
        other.event("matched", "idle", "1")
        check_that_all_goes_on(world)
    finally:
        other.close()


def test_a_process_that_hangs_stalls_no_other(world: Any, start_peer: Any, halt: Any, tmp_path: Path) -> None:
    other = start_peer(world.domain, tmp_path)
    try:
        for name, topic, type_name, qos in (
            ("pictures", PICTURE_TOPIC, IMAGE, PICTURES),
            ("joints", "joint_states", JOINT_STATE, RELIABLE),
            ("clock", "clock", CLOCK_TYPE, RELIABLE),
            ("sensors", "panda/sensor_data", ARRAY, RELIABLE),
        ):
            other.do("count", name, f"rt/{topic}", dds_type(type_name), *words(qos))
            other.event("matched", name, "1")
        wait_for_pictures(other)
        halt(other.process.pid)
        check_that_all_goes_on(world)
        other.process.send_signal(signal.SIGCONT)
        other.counted("pictures", 0.2)  # what had waited
        wait_for_pictures(other)
    finally:
        other.close()


# -- commands -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def looker(world: Any) -> Iterator[URLabClient]:
    """Somebody who asks the server itself."""
    with URLabClient("tcp://127.0.0.1", step_port=world.step_port, observer=True, camera_streams=False) as client:
        client.discover()
        yield client


def received(client: URLabClient) -> int:
    """How many commands have reached the server."""
    client.discover()
    return int(client.streams["counters"]["control"]["received"])


@pytest.mark.parametrize("target", [0.6, -0.4])
def test_a_joint_command_brings_the_joint_to_its_target(world: Any, advertise: Any, target: float) -> None:
    say = advertise("panda/joint_command", JOINT_STATE)
    world.peer.do("subscribe", f"to{target}", "rt/joint_states", dds_type(JOINT_STATE), *words(RELIABLE))
    number, reached = 0, math.inf
    while abs(reached - target) > 0.01:
        assert number < 1500, f"it is at {reached}"
        say(name=["joint1"], position=[target])
        heard = messages.deserialise(world.peer.sample(f"to{target}", after=number), JOINT_STATE)
        reached, number = heard.position[0], number + 20
    assert heard.name[0] == "joint1"


BAD = [
    ("panda/joint_command", JOINT_STATE, {"name": ["joint1"], "position": [math.nan]}, "must be finite"),
    ("joint_command", JOINT_STATE, {"name": ["joint1"], "position": [0.1, 0.2]}, "1 names and 2 numbers of position"),
    ("panda/joint_command", JOINT_STATE, {"name": ["elbow"], "position": [0.5]}, "nothing drives 'elbow'"),
    ("control", ARRAY, {"data": [0.5, 0.5]}, "has 2 numbers; it has 8 actuators"),
    ("cmd_vel", TWIST, {"linear": messages.make("geometry_msgs/msg/Vector3", y=math.inf)}, "must be finite"),
]
GOOD: dict[str, dict[str, Any]] = {
    JOINT_STATE: {"name": ["joint1"], "position": [0.0]},
    ARRAY: {"data": [0.0] * 8},
    TWIST: {},
}


@pytest.mark.parametrize(("topic", "type_name", "fields", "why"), BAD, ids=[f"{one[0]} {one[3]}" for one in BAD])
def test_a_bad_command_is_refused_and_the_log_says_whose_it_was(
    world: Any, looker: URLabClient, advertise: Any, topic: str, type_name: str, fields: dict[str, Any], why: str
) -> None:
    say = advertise(topic, type_name)
    before = received(looker)
    while received(looker) == before:  # the first bad command after a good one is logged
        say(**GOOD[type_name])
    guid = bytes.fromhex(world.peer.event("advertised", topic.replace("/", "-"))[2])
    told = len(world.bridge.said)
    say(**fields)
    expected = f"a command on /{topic} by the publisher {guid.hex('.')} is refused: "
    until(lambda: why in world.bridge.said[told:].partition(expected)[2])
    until(lambda: received(looker) == received(looker))  # of the good ones some may be on their way yet
    before = received(looker)
    say(**fields)
    say(**GOOD[type_name])
    until(lambda: received(looker) > before)
    assert received(looker) == before + 1, "bad commands do not reach the server"


# -- contents, while paused -------------------------------------------------------------------------------------------


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
        reader = "now-" + topic.replace("/", "-")
        world.peer.do("subscribe", reader, f"rt/{topic}", dds_type(type_name), *words(qos))
        for number in range(1000):
            message = messages.deserialise(world.peer.sample(reader, after=number), type_name)
            if fits(message):
                return message
        raise AssertionError(f"nothing on {topic} fits")

    return hear


def headed(message: Any) -> list[Any]:
    return list(message.transforms) if hasattr(message, "transforms") else [message]


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


# -- a server that dies, a bridge that ends; last, since the others want the world as it was --------------------------


def test_a_server_that_is_killed_and_comes_back_is_bridged_again(world: Any, driver: Any, advertise: Any) -> None:
    driver.runtime.set_paused(False)
    until(lambda: world.peer.counted("joints", 0.2).samples > 0)
    world.kill_server()
    until(lambda: "waiting: " in world.bridge.said)
    assert world.peer.counted("joints", 0.3).samples == 0
    world.start_server_again()
    until(lambda: "the server is back" in world.bridge.said.partition("waiting: ")[2])
    assert world.bridge.process.poll() is None
    for name in ("clock", "joints", "pictures"):
        until(lambda name=name: world.peer.counted(name, 0.2).samples > 0)
    assert not world.peer.has_said("writer", "gone", None, "rt/joint_states"), "topics were never withdrawn"
    with URLabClient("tcp://127.0.0.1", step_port=world.step_port, observer=True, camera_streams=False) as client:
        client.discover()
        say = advertise("panda/joint_command", JOINT_STATE)
        until(lambda: say(name=["joint1"], position=[0.3]) or received(client) > 0)


def test_a_bridge_that_is_asked_to_end_leaves_the_graph_and_no_ready_file(world: Any) -> None:
    assert world.bridge.ready_file.exists()
    world.bridge.process.send_signal(signal.SIGTERM)
    assert world.bridge.process.wait(60) == 0, world.bridge.said
    assert not world.bridge.ready_file.exists()
    world.peer.event("writer", "gone", None, "rt/joint_states")
    assert "Traceback" not in world.bridge.said
