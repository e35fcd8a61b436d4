"""Topics over DDS, as another vendor's implementation sees them."""

import signal
import time
from typing import Any

import numpy as np
import pytest

from urlab.ros2 import messages
from urlab.ros2.dds import DdsBackend
from urlab.ros2.qos import LATCHED, RELIABLE, TF, Qos

JOINT_STATE, IMAGE, STRING = "sensor_msgs/msg/JointState", "sensor_msgs/msg/Image", "std_msgs/msg/String"
CLOCK_TYPE, TRANSFORMS, TWIST = "rosgraph_msgs/msg/Clock", "tf2_msgs/msg/TFMessage", "geometry_msgs/msg/Twist"
STAMP = messages.make("builtin_interfaces/msg/Time", sec=12, nanosec=345)
HEADER = messages.make("std_msgs/msg/Header", stamp=STAMP, frame_id="base")
PIXELS = np.random.default_rng(7).integers(0, 256, 640 * 480 * 3, np.uint8)

SAMPLES = {
    JOINT_STATE: messages.make(
        JOINT_STATE, header=HEADER, name=["a", "bc", "def"], position=[1.5, -2.25, 3.0], velocity=[0.5] * 3
    ),
    CLOCK_TYPE: messages.make(CLOCK_TYPE, clock=STAMP),
    TRANSFORMS: messages.make(
        TRANSFORMS,
        transforms=[
            messages.make("geometry_msgs/msg/TransformStamped", header=HEADER, child_frame_id=name) for name in "xyz"
        ],
    ),
    IMAGE: messages.make(IMAGE, header=HEADER, width=640, height=480, encoding="rgb8", step=1920, data=PIXELS),
}
BEST_EFFORT = Qos(reliable=False, transient_local=False, depth=5)
PROFILES = {JOINT_STATE: RELIABLE, CLOCK_TYPE: RELIABLE, TRANSFORMS: TF, IMAGE: RELIABLE}


def dds_type(type_name: str) -> str:
    package, kind, name = type_name.split("/")
    return f"{package}::{kind}::dds_::{name}_"


def words(qos: Qos) -> tuple[str, str, int]:
    return (
        "reliable" if qos.reliable else "best_effort",
        "transient_local" if qos.transient_local else "volatile",
        qos.depth,
    )


def said(text: str) -> bytes:
    return bytes(messages.serialise(messages.make(STRING, data=text), STRING))


def text_of(payload: bytes) -> str:
    return str(messages.deserialise(payload, STRING).data)


@pytest.fixture
def listen(peer: Any, backend: DdsBackend, wait_until: Any) -> Any:
    """A publisher of ours with a reader of the peer's, matched on both sides."""

    def listen(topic: str, type_name: str, qos: Qos, asks: Qos | None = None) -> Any:
        peer.do("subscribe", topic, f"rt/{topic}", dds_type(type_name), *words(asks or qos), "-")
        publisher = backend.publisher(f"/{topic}", type_name, qos)
        peer.event("matched", topic, "1")
        wait_until(lambda: publisher.subscribers == 1)
        return publisher

    return listen


def test_others_find_our_endpoints_under_their_dds_names(peer: Any, backend: DdsBackend) -> None:
    publisher = backend.publisher("/panda/joint_states", JOINT_STATE, LATCHED)
    subscription = backend.subscription("/panda/cmd_vel", TWIST, BEST_EFFORT, lambda _cdr: None)
    written = peer.event("writer", "alive", None, "rt/panda/joint_states")
    assert written[4] == "sensor_msgs::msg::dds_::JointState_"
    assert bytes.fromhex(written[5]).decode() == f"typehash={messages.type_hash(JOINT_STATE)};"
    assert written[6:] == ["reliable", "transient_local"]
    read = peer.event("reader", "alive", None, "rt/panda/cmd_vel")
    assert read[4] == "geometry_msgs::msg::dds_::Twist_"
    assert bytes.fromhex(read[5]).decode() == f"typehash={messages.type_hash(TWIST)};"
    assert read[6:] == ["best_effort", "volatile"]
    publisher.close()
    subscription.close()


def test_a_participant_of_ours_has_ros_s_user_data(peer: Any, backend: DdsBackend) -> None:
    assert bytes.fromhex(peer.event("participant", "alive")[3]) == b"enclave=/;"


@pytest.mark.parametrize("type_name", SAMPLES)
def test_others_receive_the_bytes_that_we_publish(listen: Any, peer: Any, type_name: str) -> None:
    publisher = listen("data", type_name, PROFILES[type_name])
    sent = bytes(messages.serialise(SAMPLES[type_name], type_name))
    publisher.publish(sent)
    received = peer.sample("data")
    assert received[: len(sent)] == sent
    assert received[len(sent) :] == bytes(-len(sent) % 4)
    again = messages.deserialise(received, type_name)
    assert messages.serialise(again, type_name) == sent


def test_a_picture_arrives_with_the_pixels_that_it_had(listen: Any, peer: Any) -> None:
    listen("image", IMAGE, RELIABLE).publish(messages.serialise(SAMPLES[IMAGE], IMAGE))
    picture = messages.deserialise(peer.sample("image"), IMAGE)
    assert (picture.width, picture.height, picture.encoding, picture.header.frame_id) == (640, 480, "rgb8", "base")
    assert np.array_equal(picture.data, PIXELS)


def test_a_view_of_a_message_is_published_like_its_bytes(listen: Any, peer: Any) -> None:
    listen("chat", STRING, RELIABLE).publish(memoryview(b"padding" + said("four")).toreadonly()[7:])
    assert text_of(peer.sample("chat")) == "four"


def test_messages_of_every_length_arrive_whole_and_in_order(listen: Any, peer: Any) -> None:
    publisher = listen("chat", STRING, RELIABLE)
    for length in range(9):
        publisher.publish(said("x" * length))
    assert [text_of(peer.sample("chat", after=length)) for length in range(9)] == ["x" * length for length in range(9)]


def test_our_subscription_hears_what_others_publish(peer: Any, backend: DdsBackend) -> None:
    heard: list[bytes] = []
    backend.subscription("/cmd_vel", TWIST, RELIABLE, heard.append)
    peer.do("advertise", "drive", "rt/cmd_vel", dds_type(TWIST), "reliable", "volatile", 10, "-")
    peer.event("matched", "drive", "1")
    twist = messages.make(TWIST, linear=messages.make("geometry_msgs/msg/Vector3", x=0.5, z=-1.25))
    peer.write_until(lambda: heard, "drive", messages.serialise(twist, TWIST))
    assert messages.deserialise(heard[0], TWIST) == twist


def test_a_late_joiner_gets_the_last_latched_message(peer: Any, backend: DdsBackend) -> None:
    publisher = backend.publisher("/robot_description", STRING, LATCHED)
    publisher.publish(said("old"))
    publisher.publish(said("new"))
    peer.do("subscribe", "late", "rt/robot_description", dds_type(STRING), *words(LATCHED), "-")
    assert text_of(peer.sample("late")) == "new"
    publisher.publish(said("newer"))
    assert text_of(peer.sample("late", after=1)) == "newer"


def test_a_latched_message_of_others_reaches_our_late_subscription(
    peer: Any, backend: DdsBackend, wait_until: Any
) -> None:
    peer.do("advertise", "map", "rt/map", dds_type(STRING), *words(LATCHED), "-")
    peer.event("participant", "alive")
    peer.write("map", said("here be dragons"))
    heard: list[bytes] = []
    backend.subscription("/map", STRING, LATCHED, heard.append)
    wait_until(lambda: heard)
    assert text_of(heard[0]) == "here be dragons"


def test_a_reliable_reader_never_hears_a_best_effort_writer(peer: Any, backend: DdsBackend) -> None:
    publisher = backend.publisher("/scan", STRING, BEST_EFFORT)
    peer.do("subscribe", "strict", "rt/scan", dds_type(STRING), *words(RELIABLE), "-")
    peer.event("incompatible", "strict")
    assert publisher.subscribers == 0
    assert not peer.has_said("matched", "strict")


def test_a_best_effort_reader_hears_a_reliable_writer(listen: Any, peer: Any) -> None:
    listen("chat", STRING, RELIABLE, asks=BEST_EFFORT).publish(said("hello"))
    assert text_of(peer.sample("chat")) == "hello"


def test_a_volatile_writer_is_no_match_for_a_transient_local_reader(peer: Any, backend: DdsBackend) -> None:
    backend.publisher("/chat", STRING, RELIABLE)
    peer.do("subscribe", "late", "rt/chat", dds_type(STRING), *words(LATCHED), "-")
    peer.event("incompatible", "late")


def test_readers_are_counted_as_they_come_and_go(listen: Any, peer: Any, wait_until: Any) -> None:
    publisher = listen("chat", STRING, RELIABLE)
    peer.do("subscribe", "second", "rt/chat", dds_type(STRING), *words(RELIABLE), "-")
    wait_until(lambda: publisher.subscribers == 2)
    peer.close()
    wait_until(lambda: publisher.subscribers == 0)


@pytest.mark.parametrize("type_name", [JOINT_STATE, IMAGE])
def test_a_reader_that_never_takes_does_not_hold_us_up(
    peer: Any, backend: DdsBackend, wait_until: Any, type_name: str
) -> None:
    publisher = backend.publisher("/data", type_name, RELIABLE)
    peer.do("stall", "idle", "rt/data", dds_type(type_name))
    peer.event("matched", "idle", "1")
    wait_until(lambda: publisher.subscribers == 1)
    assert time_of_publishing(publisher, type_name) < WAITED_S


@pytest.mark.parametrize("type_name", [JOINT_STATE, IMAGE])
def test_a_process_that_hangs_does_not_hold_us_up(listen: Any, peer: Any, type_name: str) -> None:
    publisher = listen("data", type_name, RELIABLE)
    peer.process.send_signal(signal.SIGSTOP)
    try:
        assert time_of_publishing(publisher, type_name) < WAITED_S
    finally:
        peer.process.send_signal(signal.SIGCONT)


COUNT, WAITED_S = 200, 10.0
"""So many messages, and what they would take at least if a reader were waited for: DDS waits for 100 ms by default."""


def time_of_publishing(publisher: Any, type_name: str) -> float:
    payload = messages.serialise(SAMPLES[type_name], type_name)
    begin = time.perf_counter()
    for _ in range(COUNT):
        publisher.publish(payload)
    return time.perf_counter() - begin


LAST = 399


def test_the_newest_messages_survive_a_hang(listen: Any, peer: Any) -> None:
    # The reader has room for more than the three that our side keeps: what it drops itself is no matter of ours.
    kept, room = (Qos(reliable=True, transient_local=False, depth=depth) for depth in (3, 2 * LAST))
    publisher = listen("chat", STRING, kept, asks=room)
    peer.process.send_signal(signal.SIGSTOP)
    for number in range(LAST + 1):
        publisher.publish(said(f"{number:03}" + "." * 20000))
    peer.process.send_signal(signal.SIGCONT)
    got: list[int] = []
    while not got or got[-1] != LAST:
        got.append(int(text_of(peer.sample("chat", after=len(got)))[:3]))
    assert got[-3:] == [LAST - 2, LAST - 1, LAST]
    assert got == sorted(got)
