"""`urlab ros2` with a server that dies, readers that hang, and commands of another vendor's DDS: all are processes."""

import itertools
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from urlab.ros2 import messages
from urlab.ros2.qos import CLOCK, PICTURES, RELIABLE, Qos
from urlab_client import URLabClient

JOINT_STATE, ARRAY, TWIST = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray", "geometry_msgs/msg/Twist"
IMAGE, ODOMETRY, CLOCK_TYPE = "sensor_msgs/msg/Image", "nav_msgs/msg/Odometry", "rosgraph_msgs/msg/Clock"
PICTURE_TOPIC = "panda/camera/overhead/image_raw"
WATCHED_S = 1.0
CART = """<mujoco model="cart">
  <worldbody><geom type="plane" size="5 5 .1" friction="1"/>
    <body name="hull" pos="0 0 .1"><freejoint name="root"/><geom type="box" size=".2 .1 .03" mass="4"/>
      <geom name="caster" size=".05" pos="-.15 0 -.05" friction="0" mass=".1"/>
      <body name="left" pos=".1 .15 0"><joint name="left" axis="0 1 0"/>
        <geom type="cylinder" size=".1 .02" euler="90 0 0" mass=".3"/></body>
      <body name="right" pos=".1 -.15 0"><joint name="right" axis="0 1 0"/>
        <geom type="cylinder" size=".1 .02" euler="90 0 0" mass=".3"/></body>
    </body></worldbody>
  <actuator><velocity name="left" joint="left" kv="2"/><velocity name="right" joint="right" kv="2"/></actuator>
</mujoco>"""
RADIUS, HALF_TRACK = 0.1, 0.15


def dds_type(type_name: str) -> str:
    package, kind, name = type_name.split("/")
    return f"{package}::{kind}::dds_::{name}_"


def words(qos: Qos) -> tuple[str, str, int, str]:
    return "reliable" if qos.reliable else "best_effort", "volatile", qos.depth, "-"


@pytest.fixture(scope="module")
def world(start_world: Any) -> Any:
    """One robot in live mode, and somebody who counts what is said of it, pictures included."""
    world = start_world("panda")
    for name, topic, type_name, qos in (
        ("clock", "clock", CLOCK_TYPE, CLOCK),
        ("joints", "joint_states", JOINT_STATE, RELIABLE),
        ("pictures", PICTURE_TOPIC, IMAGE, PICTURES),
    ):
        world.peer.do("count", name, f"rt/{topic}", dds_type(type_name), *words(qos))
        world.peer.event("matched", name, "1")
    return world


@pytest.fixture
def advertise(world: Any) -> Callable[..., Any]:
    return advertiser(world)


def advertiser(world: Any) -> Callable[..., Any]:
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


def until(holds: Callable[[], object], limit_s: float = 10.0) -> None:
    give_up_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < give_up_s, "it did not happen"
        time.sleep(0.01)


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


def check(found: dict[str, Any]) -> None:
    """Rates of whoever waits for nobody, on a machine that runs other things as well: a reader that is waited for takes
    100 ms a message. `make bench ARGS=ros2` is for the full ones.
    """
    assert found["clock"].rate_hz > 50, found
    assert found["joints"].rate_hz > 30, found
    assert found["pictures"].rate_hz > 2, found
    assert max(found["clock"].silence_s, found["joints"].silence_s) < 0.8 * WATCHED_S, found


def test_pictures_starve_neither_clock_nor_states(world: Any) -> None:
    check(rates(world))


def test_a_reader_that_never_takes_pictures_stalls_nobody(world: Any, start_peer: Any, tmp_path: Path) -> None:
    other = start_peer(world.domain, tmp_path)
    try:
        other.do("stall", "idle", f"rt/{PICTURE_TOPIC}", dds_type(IMAGE))
        other.event("matched", "idle", "1")
        check(rates(world))
    finally:
        other.close()


def test_a_process_that_hangs_stalls_nobody(world: Any, start_peer: Any, tmp_path: Path) -> None:
    other = start_peer(world.domain, tmp_path)
    try:
        for name, topic, type_name, qos in (
            ("pictures", PICTURE_TOPIC, IMAGE, PICTURES),
            ("joints", "joint_states", JOINT_STATE, RELIABLE),
        ):
            other.do("count", name, f"rt/{topic}", dds_type(type_name), *words(qos))
            other.event("matched", name, "1")
        assert other.counted("pictures", 0.3).samples > 0
        other.process.send_signal(signal.SIGSTOP)
        check(rates(world))
        other.process.send_signal(signal.SIGCONT)
        other.counted("pictures", 0.2)  # what had waited
        assert other.counted("pictures", 0.5).samples > 2, "it goes on where it is again"
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
    before = received(looker)
    say(**fields)
    say(**GOOD[type_name])
    until(lambda: received(looker) > before)
    assert received(looker) == before + 1, "bad commands do not reach the server"


def test_a_twist_drives_a_robot_through_whoever_follows_it(start_world: Any, tmp_path: Path) -> None:
    """The server keeps a twist for a policy. This one turns it into speeds of two wheels, in live mode."""
    model = tmp_path / "cart.xml"
    model.write_text(CART)
    world = start_world(str(model))
    say = advertiser(world)("cart/cmd_vel", TWIST)
    policy = world.connect(camera_streams=False)
    cart = policy.articulations["cart"]

    def follow(reached: Callable[[], bool], **twist: Any) -> None:
        until_s = time.monotonic() + 10
        for number in itertools.count():
            if reached():
                return
            assert time.monotonic() < until_s, f"it is at {cart.qpos_array}"
            if number % 50 == 0:
                say(**twist)
            vx, yaw_rate = cart.twist_linear[0], cart.twist_angular[2]
            cart.set_ctrl(
                {"left": (vx - yaw_rate * HALF_TRACK) / RADIUS, "right": (vx + yaw_rate * HALF_TRACK) / RADIUS}
            )
            policy.step()

    assert abs(cart.qpos_array[0]) < 0.05
    follow(lambda: cart.qpos_array[0] > 0.4, linear=messages.make("geometry_msgs/msg/Vector3", x=0.8))
    assert abs(cart.qpos_array[1]) < 0.1, "straight on"
    turn = messages.make("geometry_msgs/msg/Vector3", z=-1.5)
    follow(lambda: yaw(cart.qpos_array[3:7]) < -0.5, angular=turn)
    policy.runtime.set_paused(True)
    policy.step()
    world.peer.do("subscribe", "odom", "rt/odom", dds_type(ODOMETRY), *words(RELIABLE))
    heard = messages.deserialise(world.peer.sample("odom", after=1), ODOMETRY).pose.pose
    place, facing = heard.position, heard.orientation
    assert (place.x, place.y, place.z) == tuple(cart.qpos_array[:3])
    assert (facing.w, facing.x, facing.y, facing.z) == pytest.approx(tuple(cart.qpos_array[3:7]))


def yaw(quat_wxyz: Any) -> float:
    w, x, y, z = quat_wxyz
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


# -- a server that dies; the last test, since the others want the world as it was ------------------------------------


def test_a_server_that_is_killed_and_comes_back_is_bridged_again(world: Any, advertise: Any) -> None:
    assert world.peer.counted("joints", 0.2).samples > 10
    world.kill_server()
    until(lambda: "waiting: " in world.bridge.said)
    assert world.peer.counted("joints", 0.3).samples == 0
    world.start_server_again()
    until(lambda: "the server is back" in world.bridge.said.partition("waiting: ")[2])
    assert world.bridge.process.poll() is None
    until(lambda: all(world.peer.counted(name, 0.2).samples > 2 for name in ("clock", "joints", "pictures")))
    assert not world.peer.has_said("writer", "gone", None, "rt/joint_states"), "topics were never withdrawn"
    with URLabClient("tcp://127.0.0.1", step_port=world.step_port, observer=True, camera_streams=False) as client:
        client.discover()
        say = advertise("panda/joint_command", JOINT_STATE)
        until(lambda: say(name=["joint1"], position=[0.3]) or received(client) > 0)
