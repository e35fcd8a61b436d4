"""The bridge between a real server, sockets and all, and a ROS graph within this process."""

import contextlib
import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.ros2 import convert, messages
from urlab.ros2.backend import OnMessage, Serve, ServicesUnavailable
from urlab.ros2.bridge import Bridge, Settings
from urlab.ros2.qos import LATCHED, RELIABLE, Qos
from urlab.ros2.topics import Choice
from urlab_client import URLabClient
from urlab_wire.ops.stepping import split_s

PATIENCE_S = 10.0
ROVER = """<mujoco model="rover"><compiler angle="radian"/>
  <worldbody><body name="hull" pos="0 0 1" euler="0 0 .5"><freejoint name="root"/>
    <geom type="box" size=".2 .1 .05" mass="4"/><site name="imu" pos=".1 0 0"/>
    <camera name="eye" resolution="32 24" fovy="60"/>
    <body name="mast" pos="0 0 .1"><joint name="turn" axis="0 0 1" damping=".1"/><geom size=".03" pos=".1 0 0"/></body>
  </body></worldbody>
  <actuator><position name="turner" joint="turn" kp="5"/></actuator>
  <sensor><accelerometer name="acc" site="imu"/><gyro name="gyro" site="imu"/><jointpos name="angle" joint="turn"/>
  </sensor></mujoco>"""
POST = """<mujoco model="post">
  <worldbody><body name="pole"><joint name="swing" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/>
    <camera name="deep" resolution="16 12" output="depth"/></body></worldbody>
  <actuator><motor name="push" joint="swing"/></actuator></mujoco>"""
LEVELS = {"lab": ["rover"], "duo": ["rover", "post"], "yard": ["post"]}


class Publication:
    def __init__(self, graph: "Graph", topic: str, qos: Qos) -> None:
        self._graph, self.topic, self.qos = graph, topic, qos
        self.kept: bytes | None = None

    def publish(self, cdr: bytes | memoryview) -> None:
        self._graph.deliver(self, bytes(cdr))

    @property
    def subscribers(self) -> int:
        return len(self._graph.heard[self.topic]) if self in self._graph.offered else 0

    def close(self) -> None:
        self._graph.offered.discard(self)


class Hearing:
    def __init__(self, graph: "Graph", topic: str, on_message: OnMessage) -> None:
        self._graph, self.topic, self.on_message = graph, topic, on_message

    def close(self) -> None:
        self._graph.heard[self.topic].discard(self)


class Graph:
    """A ROS graph within this process: a backend that delivers at once, on the publisher's thread."""

    name = "memory"

    def __init__(self) -> None:
        self.offered: set[Publication] = set()
        self.heard: dict[str, set[Hearing]] = defaultdict(set)

    def publisher(self, topic: str, type_name: str, qos: Qos) -> Publication:
        assert messages.knows(type_name)
        publication = Publication(self, topic, qos)
        self.offered.add(publication)
        return publication

    def subscription(self, topic: str, type_name: str, qos: Qos, on_message: OnMessage) -> Hearing:
        assert messages.knows(type_name)
        hearing = Hearing(self, topic, on_message)
        self.heard[topic].add(hearing)
        kept = [one.kept for one in list(self.offered) if one.topic == topic and one.kept and qos.transient_local]
        for cdr in kept:
            on_message(cdr)
        return hearing

    def service(self, name: str, type_name: str, serve: Serve) -> Any:
        raise ServicesUnavailable(f"{name} {type_name} {serve}")

    def deliver(self, by: Publication, cdr: bytes) -> None:
        if by not in self.offered:
            return
        by.kept = cdr if by.qos.transient_local else None
        for one in list(self.heard[by.topic]):
            one.on_message(cdr)

    def close(self) -> None:
        self.offered.clear()
        self.heard.clear()

    @property
    def topics(self) -> set[str]:
        return {one.topic for one in list(self.offered)}


class Ear:
    """Somebody who listens to a topic, and remembers."""

    def __init__(self, graph: Graph, topic: str, type_name: str, qos: Qos = RELIABLE) -> None:
        self.messages: list[Any] = []
        self._more = threading.Condition()
        self._type_name = type_name
        self._hearing = graph.subscription(topic, type_name, qos, self._take)

    def _take(self, cdr: bytes) -> None:
        with self._more:
            self.messages.append(messages.deserialise(cdr, self._type_name))
            self._more.notify_all()

    def first(self, fits: Callable[[Any], object] = bool) -> Any:
        """The first message that fits; it is waited for."""
        with self._more:
            found: list[Any] = []

            def there() -> bool:
                found[:] = [one for one in self.messages if fits(one)][:1]
                return bool(found)

            assert self._more.wait_for(there, PATIENCE_S), f"{len(self.messages)} messages, and none fits"
            return found[0]

    def after(self, moment: int | None = None) -> Any:
        """A message that comes later than so many others, or than now."""
        with self._more:
            count = len(self.messages) if moment is None else moment
            assert self._more.wait_for(lambda: len(self.messages) > count, PATIENCE_S), "no more messages"
            return self.messages[-1]

    def close(self) -> None:
        self._hearing.close()


def until(holds: Callable[[], object]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < give_up_s, "it did not happen"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("project")
    levels = project / "Levels"
    levels.mkdir()
    for name, text in {"rover": ROVER, "post": POST}.items():
        (levels / f"{name}.xml").write_text(text)
    for name, robots in LEVELS.items():
        actors = [
            f'[[actors]]\nblueprint = "{robot}.xml"\nname = "{robot}"\nactor_id = "{robot}_0"\nlocation = [{at}, 0, 0]'
            for at, robot in enumerate(robots)
        ]
        (levels / f"{name}.toml").write_text("\n".join(["version = 1", f'name = "{name}"', *actors]) + "\n")
    return project


Serving = Callable[..., Server]


@pytest.fixture
def serve(project: Path) -> Iterator[Serving]:
    with contextlib.ExitStack() as stack:

        def make(level: str = "lab", **options: Any) -> Server:
            server = Server(ServerConfig(**{"project": project, "ports": Ports.any(), **options}), [level])
            stack.callback(server.close)
            server.begin()
            server.open_sockets()
            return server

        yield make


@pytest.fixture
def server(serve: Serving) -> Server:
    return serve()


def port(server: Server, name: str = "step") -> int:
    return int(server.endpoints()[name].rpartition(":")[2])


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def run() -> Iterator[Callable[[Graph, Settings], Bridge]]:
    """Runs bridges; each ends with the test."""
    running: list[tuple[Bridge, threading.Thread]] = []

    def start(graph: Graph, settings: Settings) -> Bridge:
        bridge = Bridge(graph, settings)
        thread = threading.Thread(target=bridge.run)
        thread.start()
        running.append((bridge, thread))
        return bridge

    yield start
    for bridge, thread in running:
        bridge.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


Run = Callable[..., Bridge]


@pytest.fixture
def bridged(run: Run, graph: Graph) -> Run:
    """A bridge to a server, once it is ready."""

    def start(server: Server, **choice: Any) -> Bridge:
        bridge = run(graph, Settings(step_port=port(server), choice=Choice(**choice)))
        until(lambda: bridge.is_ready)
        return bridge

    return start


@pytest.fixture
def driver(server: Server) -> Iterator[URLabClient]:
    """Whoever steps the server, in direct mode."""
    with URLabClient("tcp://127.0.0.1", step_port=port(server), step_mode="direct", camera_streams=False) as client:
        client.discover()
        yield client


def stamp_of(seconds: float) -> tuple[int, int]:
    return split_s(seconds)


def stamped(message: Any, seconds: float) -> bool:
    return (message.header.stamp.sec, message.header.stamp.nanosec) == stamp_of(seconds)


def truth(server: Server) -> tuple[Any, Any]:
    """The model, and a copy of the server's data."""
    engine = server.play.manager.engine
    with engine.locked():
        data = mujoco.MjData(engine.model)
        mujoco.mj_copyData(data, engine.model, engine.data)
    return engine.model, data


# -- what is said -------------------------------------------------------------------------------------------------


def test_what_is_said_is_what_the_server_computed_at_that_stamp(
    server: Server, driver: URLabClient, bridged: Run, graph: Graph
):
    joints = Ear(graph, "/rover/joint_states", "sensor_msgs/msg/JointState")
    odometry = Ear(graph, "/rover/odom", "nav_msgs/msg/Odometry")
    imu = Ear(graph, "/rover/imu", "sensor_msgs/msg/Imu")
    sensors = Ear(graph, "/rover/sensor_data", "std_msgs/msg/Float64MultiArray")
    tf = Ear(graph, "/tf", "tf2_msgs/msg/TFMessage")
    bridged(server)
    driver.articulations["rover"].ctrl_array[:] = 0.7
    driver.step(n_steps=60)
    _, data = truth(server)

    joint = joints.first(lambda one: stamped(one, data.time))
    assert joint.name == ["turn"]
    assert joint.position == pytest.approx(data.qpos[7:])
    assert joint.velocity == pytest.approx(data.qvel[6:])
    odom = odometry.first(lambda one: stamped(one, data.time))
    at = odom.pose.pose.position
    assert (at.x, at.y, at.z) == pytest.approx(tuple(data.qpos[:3]))
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
    speed = odom.twist.twist.linear
    assert (speed.x, speed.y, speed.z) == pytest.approx(tuple(rotation.reshape(3, 3).T @ data.qvel[:3]))
    felt = imu.first(lambda one: stamped(one, data.time))
    acceleration, rate = felt.linear_acceleration, felt.angular_velocity
    assert (acceleration.x, acceleration.y, acceleration.z) == pytest.approx(tuple(data.sensordata[:3]))
    assert (rate.x, rate.y, rate.z) == pytest.approx(tuple(data.sensordata[3:6]))
    assert sensors.first(lambda one: one.data[6] == data.sensordata[6]).data == pytest.approx(data.sensordata)
    moved = tf.first(lambda one: any(stamped(each, data.time) for each in one.transforms)).transforms
    base = next(one for one in moved if one.child_frame_id == "rover/base_link").transform
    assert (base.translation.x, base.translation.z) == pytest.approx((data.qpos[0], data.qpos[2]))
    assert (base.rotation.w, base.rotation.z) == pytest.approx((data.qpos[3], data.qpos[6]))


def test_the_clock_is_simulation_time(server: Server, driver: URLabClient, bridged: Run, graph: Graph):
    clock = Ear(graph, "/clock", "rosgraph_msgs/msg/Clock")
    bridged(server)
    driver.step(n_steps=33)
    _, data = truth(server)
    clock.first(lambda one: (one.clock.sec, one.clock.nanosec) == stamp_of(data.time))


def test_a_slow_converter_and_pictures_delay_the_clock_by_nothing(
    server: Server, bridged: Run, graph: Graph, monkeypatch: pytest.MonkeyPatch
):
    is_slow = threading.Event()
    quick = convert.JointStates.convert

    def slow(self: Any, state: Any) -> Any:
        is_slow.set()
        time.sleep(1.0)
        return quick(self, state)

    monkeypatch.setattr(convert.JointStates, "convert", slow)
    joints = Ear(graph, "/rover/joint_states", "sensor_msgs/msg/JointState")
    pictures = Ear(graph, "/rover/camera/eye/image_raw", "sensor_msgs/msg/Image")
    bridged(server)
    pictures.after()
    clock = Ear(graph, "/clock", "rosgraph_msgs/msg/Clock")
    is_slow.clear()
    assert is_slow.wait(PATIENCE_S)
    pictures_before, joints_before = len(pictures.messages), len(joints.messages)
    clock.after(len(clock.messages) + 100)
    assert len(joints.messages) - joints_before <= 1
    assert len(pictures.messages) > pictures_before
    times = [one.clock.sec * 10**9 + one.clock.nanosec for one in clock.messages]
    assert times == sorted(times)


def test_a_converter_that_fails_is_logged_once_and_silences_nothing_else(
    server: Server, bridged: Run, graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def fail(self: Any, state: Any) -> Any:
        raise ZeroDivisionError("of the test")

    monkeypatch.setattr(convert.JointStates, "convert", fail)
    Ear(graph, "/rover/joint_states", "sensor_msgs/msg/JointState")
    odometry = Ear(graph, "/rover/odom", "nav_msgs/msg/Odometry")
    bridge = bridged(server)
    odometry.after(20)
    told = [one for one in caplog.records if "/rover/joint_states" in one.getMessage()]
    assert len(told) == 1
    assert told[0].levelno == logging.ERROR
    assert bridge.is_ready


def test_states_are_limited_to_the_rate_and_the_clock_is_not(server: Server, run: Run, graph: Graph):
    clock = Ear(graph, "/clock", "rosgraph_msgs/msg/Clock")
    joints = Ear(graph, "/rover/joint_states", "sensor_msgs/msg/JointState")
    run(graph, Settings(step_port=port(server), rate_hz=10.0))
    joints.after(0)
    begin, clock_before, joints_before = time.monotonic(), len(clock.messages), len(joints.messages)
    clock.after(clock_before + 200)
    passed_s = time.monotonic() - begin
    assert len(joints.messages) - joints_before <= 10 * passed_s + 2
    assert len(clock.messages) - clock_before >= 200


# -- cameras ------------------------------------------------------------------------------------------------------


def drawn(server: Server) -> int:
    """How many pictures the server has sent, of all its cameras."""
    with URLabClient("tcp://127.0.0.1", step_port=port(server), observer=True, camera_streams=False) as client:
        client.discover()
        return sum(one["sent"] for one in client.streams["counters"]["cameras"].values())


def test_a_picture_and_its_lens_share_stamp_and_frame(server: Server, bridged: Run, graph: Graph):
    infos = Ear(graph, "/rover/camera/eye/camera_info", "sensor_msgs/msg/CameraInfo")
    pictures = Ear(graph, "/camera/image_raw", "sensor_msgs/msg/Image")
    bridged(server)
    picture = pictures.after(2)
    info = infos.first(lambda one: one.header.stamp == picture.header.stamp)
    assert info.header.frame_id == picture.header.frame_id == "rover/eye_optical_frame"
    assert (info.width, info.height) == (picture.width, picture.height) == (32, 24)
    focal = 12 / math.tan(math.radians(30))
    assert info.k == pytest.approx([focal, 0, 15.5, 0, focal, 11.5, 0, 0, 1])
    assert len(picture.data) == 32 * 24 * 3


def test_a_camera_is_drawn_only_while_somebody_subscribes(server: Server, bridged: Run, graph: Graph):
    clock = Ear(graph, "/clock", "rosgraph_msgs/msg/Clock")
    bridged(server)
    clock.after(200)
    assert drawn(server) == 0
    pictures = Ear(graph, "/rover/camera/eye/image_raw/compressed", "sensor_msgs/msg/CompressedImage")
    assert bytes(pictures.after(3).data[:2]) == b"\xff\xd8"
    pictures.close()
    until(lambda: "urlab-ros2-eye" not in {one.name for one in threading.enumerate()})
    before = drawn(server)
    clock.after()
    clock.after(len(clock.messages) + 200)
    assert drawn(server) <= before + 1


def test_depth_is_compressed_as_depth(serve: Serving, bridged: Run, graph: Graph):
    server = serve("yard")
    pictures = Ear(graph, "/post/camera/deep/image_raw/compressedDepth", "sensor_msgs/msg/CompressedImage")
    bridged(server)
    picture = pictures.after(0)
    assert picture.format == "16UC1; compressedDepth png"
    assert bytes(picture.data[12:16]) == b"\x89PNG"
    assert "/post/camera/deep/image_raw/compressed" not in graph.topics


# -- what is heard ------------------------------------------------------------------------------------------------


def say(graph: Graph, topic: str, type_name: str, **fields: Any) -> None:
    utter(graph, topic, messages.serialise(messages.make(type_name, **fields), type_name))


def utter(graph: Graph, topic: str, cdr: bytes) -> None:
    mouth = graph.publisher(topic, "std_msgs/msg/String", RELIABLE)
    mouth.publish(cdr)
    mouth.close()


def turned(server: Server) -> float:
    return float(truth(server)[1].qpos[7])


JOINT, ARRAY, TWIST = "sensor_msgs/msg/JointState", "std_msgs/msg/Float64MultiArray", "geometry_msgs/msg/Twist"


def is_connected(server: Server, graph: Graph) -> bool:
    """Whether commands arrive: those of the first moments may be lost."""
    say(graph, "/rover/control", ARRAY, data=[0.0])
    return server_counters(server)["received"] > 0


def test_commands_move_the_robot(server: Server, bridged: Run, graph: Graph):
    bridge = bridged(server)
    until(lambda: is_connected(server, graph))
    say(graph, "/rover/joint_command", JOINT, name=["turn"], position=[0.5])
    until(lambda: turned(server) > 0.3)
    say(graph, "/control", ARRAY, data=[-0.5])
    until(lambda: turned(server) < -0.3)
    linear = messages.make("geometry_msgs/msg/Vector3", x=0.3)
    say(graph, "/cmd_vel", TWIST, linear=linear, angular=messages.make("geometry_msgs/msg/Vector3", z=-0.2))
    twist = server.play.manager.articulations["rover"].twist
    until(lambda: "0.3" in str(vars(twist)) and "-0.2" in str(vars(twist)))
    assert bridge.look()["/cmd_vel"].messages == 1
    assert bridge.look()["/cmd_vel"].refused == 0


BAD = [
    ("/rover/joint_command", JOINT, {"name": ["turn"], "position": [math.nan]}, "finite"),
    ("/rover/joint_command", JOINT, {"name": ["turn"], "position": [0.1, 0.2]}, "2 numbers of position"),
    ("/rover/joint_command", JOINT, {"name": ["elbow"], "position": [0.5]}, "nothing drives 'elbow'"),
    ("/rover/joint_command", JOINT, {}, "names no joint"),
    ("/rover/control", ARRAY, {"data": [0.5, 0.5]}, "2 numbers"),
    ("/rover/control", ARRAY, {"data": [math.inf]}, "finite"),
    ("/rover/cmd_vel", TWIST, {"linear": messages.make("geometry_msgs/msg/Vector3", y=math.nan)}, "finite"),
]


@pytest.fixture(scope="module")
def shared_bridge(project: Path) -> Iterator[tuple[Server, Graph, Bridge]]:
    """One server and one bridge for tests that change nothing."""
    server = Server(ServerConfig(project=project, ports=Ports.any()), ["lab"])
    server.begin()
    server.open_sockets()
    graph = Graph()
    bridge = Bridge(graph, Settings(step_port=port(server)))
    thread = threading.Thread(target=bridge.run)
    thread.start()
    until(lambda: bridge.is_ready)
    yield server, graph, bridge
    bridge.stop()
    thread.join(PATIENCE_S)
    server.close()


def is_settled(server: Server) -> bool:
    """Whether no command is on its way."""
    before = server_counters(server)["received"]
    return server_counters(server)["received"] == before


def unchanged(server: Server) -> Any:
    robot = server.play.manager.articulations["rover"]
    received = server_counters(server)["received"]
    return vars(robot.twist).copy(), received


def server_counters(server: Server) -> dict[str, int]:
    with URLabClient("tcp://127.0.0.1", step_port=port(server), observer=True, camera_streams=False) as client:
        client.discover()
        counters: dict[str, int] = client.streams["counters"]["control"]
        return counters


@pytest.mark.parametrize(("topic", "type_name", "fields", "why"), BAD, ids=[f"{one[0]} {one[3]}" for one in BAD])
def test_a_bad_command_is_refused_logged_and_counted(
    shared_bridge: tuple[Server, Graph, Bridge],
    caplog: pytest.LogCaptureFixture,
    topic: str,
    type_name: str,
    fields: dict[str, Any],
    why: str,
):
    server, graph, bridge = shared_bridge
    say(graph, topic, type_name, **GOOD[topic])  # a good one in between: the first bad one of a series is logged
    until(lambda: is_settled(server))
    refused, before = bridge.look()[topic].refused, unchanged(server)
    say(graph, topic, type_name, **fields)
    assert bridge.look()[topic].refused == refused + 1
    told = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(told) == 1
    assert topic in told[0]
    assert why in told[0]
    assert unchanged(server) == before


GOOD: dict[str, dict[str, Any]] = {
    "/rover/joint_command": {"name": ["turn"], "position": [0.0]},
    "/rover/control": {"data": [0.0]},
    "/rover/cmd_vel": {},
}


def test_garbage_is_refused_and_a_flood_of_it_is_logged_sparingly(
    shared_bridge: tuple[Server, Graph, Bridge], caplog: pytest.LogCaptureFixture
):
    _, graph, bridge = shared_bridge
    say(graph, "/control", ARRAY, data=[0.0])
    before = bridge.look()["/control"].refused
    for cdr in [b"", b"\0\1", b"\0\1\0\0" + b"\xff" * 40] * 50:
        utter(graph, "/control", cdr)
    assert bridge.look()["/control"].refused == before + 150
    assert 1 <= len([one for one in caplog.records if "/control" in one.getMessage()]) <= 2


# -- names --------------------------------------------------------------------------------------------------------


def test_with_one_robot_there_are_plain_names_too(shared_bridge: tuple[Server, Graph, Bridge]):
    _, graph, _ = shared_bridge
    for name in ("joint_states", "odom", "imu", "sensor_data", "robot_description"):
        assert {f"/{name}", f"/rover/{name}"} <= graph.topics
    assert {"/camera/image_raw", "/camera/camera_info", "/camera/image_raw/compressed"} <= graph.topics
    assert {"/control", "/rover/control", "/cmd_vel"} <= {topic for topic, heard in graph.heard.items() if heard}


def test_with_two_robots_there_are_none(serve: Serving, bridged: Run, graph: Graph):
    bridged(serve("duo"))
    assert {"/rover/joint_states", "/post/joint_states", "/tf", "/clock"} <= graph.topics
    assert not {"/joint_states", "/camera/image_raw", "/robot_description"} & graph.topics
    assert not graph.heard["/joint_command"]
    assert graph.heard["/post/joint_command"]


def test_robots_and_cameras_may_be_chosen(serve: Serving, bridged: Run, graph: Graph, caplog: pytest.LogCaptureFixture):
    bridged(serve("duo"), robots=("post", "dog"), cameras=())
    assert {"/post/joint_states", "/joint_states"} <= graph.topics
    assert not [topic for topic in graph.topics if topic.startswith("/rover") or "camera" in topic]
    assert "there is no robot 'dog' to bridge; there are: rover, post" in caplog.text


def test_a_late_joiner_hears_the_description(shared_bridge: tuple[Server, Graph, Bridge]):
    _, graph, _ = shared_bridge
    description = Ear(graph, "/robot_description", "std_msgs/msg/String", LATCHED)
    assert "<robot" in description.first().data
    assert "turn" in description.first().data
    still = Ear(graph, "/tf_static", "tf2_msgs/msg/TFMessage", LATCHED)
    assert "rover/eye_optical_frame" in {one.child_frame_id for one in still.first().transforms}


# -- a server that comes, goes and changes -------------------------------------------------------------------------


def test_another_level_brings_other_topics(server: Server, driver: URLabClient, bridged: Run, graph: Graph):
    bridged(server)
    driver.sim.start(level_path="/Game/Levels/yard")
    until(lambda: "/post/joint_states" in graph.topics)
    assert not [topic for topic in graph.topics if topic.startswith("/rover")]
    assert not graph.heard["/rover/control"]
    joints = Ear(graph, "/joint_states", JOINT)
    assert joints.after(0).name == ["swing"]


def test_a_play_that_stops_is_waited_for(
    server: Server, driver: URLabClient, bridged: Run, graph: Graph, caplog: pytest.LogCaptureFixture
):
    bridge = bridged(server)
    offered = set(graph.offered)
    driver.sim.stop()
    until(lambda: not bridge.is_ready)
    assert bridge.problem == "the server plays nothing"
    driver.sim.start()
    until(lambda: bridge.is_ready)
    joints = Ear(graph, "/rover/joint_states", JOINT)
    driver.step()
    joints.after(0)
    assert set(graph.offered) == offered
    assert caplog.text.count("waiting:") == 1


def test_a_reset_keeps_topics_streams_and_session(server: Server, driver: URLabClient, bridged: Run, graph: Graph):
    joints = Ear(graph, "/rover/joint_states", JOINT)
    bridge = bridged(server)
    listening = {one.ident for one in threading.enumerate()}
    offered = set(graph.offered)
    for _ in range(5):
        driver.step(n_steps=20)
        driver.reset()
        driver.step()
    _, data = truth(server)
    joints.first(lambda one: stamped(one, data.time))
    assert bridge.is_ready
    assert set(graph.offered) == offered
    assert listening <= {one.ident for one in threading.enumerate()}


def test_a_server_that_is_restarted_is_found_again(serve: Serving, bridged: Run, graph: Graph):
    server = serve()
    ports = Ports(*(port(server, name) for name in ("step", "state", "control", "info")), camera=0)
    bridge = bridged(server)
    server.close()
    until(lambda: not bridge.is_ready)
    serve("duo", ports=ports)
    until(lambda: bridge.is_ready and "/post/joint_states" in graph.topics)
    Ear(graph, "/rover/joint_states", JOINT).after(0)


def test_a_server_that_is_not_there_yet_is_waited_for(
    serve: Serving, run: Run, graph: Graph, caplog: pytest.LogCaptureFixture
):
    gone = serve()
    ports = Ports(*(port(gone, name) for name in ("step", "state", "control", "info")), camera=0)
    gone.close()
    bridge = run(graph, Settings(step_port=ports.step))
    until(lambda: "waiting:" in caplog.text)
    assert not bridge.is_ready
    assert not graph.topics
    serve(ports=ports)
    until(lambda: bridge.is_ready)
    Ear(graph, "/joint_states", JOINT).after(0)


def test_whoever_drives_is_not_disturbed(serve: Serving, bridged: Run, graph: Graph):
    server = serve()
    with URLabClient("tcp://127.0.0.1", step_port=port(server), step_mode="live", camera_streams=False) as policy:
        policy.discover()
        session = policy.session_id
        bridged(server)
        Ear(graph, "/rover/joint_states", JOINT).after(0)
        Ear(graph, "/rover/camera/eye/image_raw", "sensor_msgs/msg/Image").after(0)
        times = [policy.step()["time"] for _ in range(20)]
        assert policy.session_id == session
        assert policy.sim.status().mode == "live"
        assert times == sorted(times)


def test_many_plays_leave_nothing_behind(server: Server, driver: URLabClient, bridged: Run, graph: Graph):
    bridge = bridged(server)
    pictures = [Ear(graph, f"/{name}/image_raw", "sensor_msgs/msg/Image") for name in ("rover/camera/eye", "camera")]
    pictures[0].after(0)

    def play(level: str, topic: str) -> None:
        driver.sim.start(level_path=f"/Game/Levels/{level}")
        until(lambda: bridge.is_ready and topic in graph.topics)

    play("yard", "/post/joint_states")
    play("lab", "/rover/joint_states")
    pictures[0].after()
    files, threads, sockets = used()
    for _ in range(2):
        play("yard", "/post/joint_states")
        play("lab", "/rover/joint_states")
    pictures[0].after()
    until(lambda: used() <= (files + 2, threads, sockets))


def used() -> tuple[int, int, int]:
    names = [one.name for one in threading.enumerate()]
    return len(list(Path("/proc/self/fd").iterdir())), len(names), sum(name.startswith("urlab-ros2") for name in names)


def test_stopping_is_quick_and_leaves_no_thread_and_no_topic(server: Server, graph: Graph):
    before = {one.ident for one in threading.enumerate()}
    bridge = Bridge(graph, Settings(step_port=port(server)))
    thread = threading.Thread(target=bridge.run)
    thread.start()
    Ear(graph, "/rover/camera/eye/image_raw", "sensor_msgs/msg/Image").after(0)
    begin = time.monotonic()
    bridge.stop()
    thread.join(PATIENCE_S)
    assert time.monotonic() - begin < 1.0
    assert not graph.topics
    ours = [one.name for one in threading.enumerate() if one.name.startswith("urlab-ros2") and one.ident not in before]
    assert not ours
    assert not any(heard for topic, heard in graph.heard.items() if "command" in topic)
