"""A real server, sockets and all, and a ROS graph within this process, with a bridge between them."""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.ros2 import messages
from urlab.ros2.backend import BackendError, OnMessage, Serve
from urlab.ros2.bridge import Bridge, BridgeSettings
from urlab.ros2.qos import RELIABLE, Qos
from urlab.ros2.topics import TopicChoice
from urlab_client import URLabClient

PATIENCE_S = 30.0
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
CART = """<mujoco model="cart">
  <worldbody><geom type="plane" size="5 5 .1" friction="1"/>
    <body name="hull" pos="0 0 .1"><freejoint name="root"/><geom type="box" size=".2 .1 .03" mass="4"/>
      <geom name="caster" size=".05" pos="-.15 0 -.05" condim="1" priority="1" mass=".1"/>
      <body name="left" pos=".1 .15 0"><joint name="left" axis="0 1 0"/>
        <geom size=".1" mass=".3"/></body>
      <body name="right" pos=".1 -.15 0"><joint name="right" axis="0 1 0"/>
        <geom size=".1" mass=".3"/></body>
    </body></worldbody>
  <actuator><velocity name="left" joint="left" kv=".4"/><velocity name="right" joint="right" kv=".4"/></actuator>
</mujoco>"""
LEVELS = {"lab": ["rover"], "duo": ["rover", "post"], "yard": ["post"], "track": ["cart"]}


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
        raise BackendError(f"{name} {type_name} {serve}")

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

    def ear(self, topic: str, type_name: str, qos: Qos = RELIABLE) -> "Ear":
        """Somebody who listens from now on."""
        return Ear(self, topic, type_name, qos)

    def say(self, topic: str, type_name: str, **fields: Any) -> None:
        """Publish a message once."""
        self.utter(topic, messages.serialise(messages.make(type_name, **fields), type_name))

    def utter(self, topic: str, cdr: bytes | memoryview) -> None:
        """Publish bytes once."""
        mouth = self.publisher(topic, "std_msgs/msg/String", RELIABLE)
        mouth.publish(cdr)
        mouth.close()


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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("project")
    levels = project / "Levels"
    levels.mkdir()
    for name, text in {"rover": ROVER, "post": POST, "cart": CART}.items():
        (levels / f"{name}.xml").write_text(text)
    for name, robots in LEVELS.items():
        actors = [
            f'[[actors]]\nblueprint = "{robot}.xml"\nname = "{robot}"\nactor_id = "{robot}_0"\nlocation = [{at}, 0, 0]'
            for at, robot in enumerate(robots)
        ]
        (levels / f"{name}.toml").write_text("\n".join(["version = 1", f'name = "{name}"', *actors]) + "\n")
    return project


class Lab(Server):
    """A server of one of the levels."""

    @property
    def port(self) -> int:
        return int(self.endpoints()["step"].rpartition(":")[2])

    def truth(self) -> tuple[Any, Any]:
        """The model, and a copy of the server's data."""
        engine = self.play.manager.engine
        with engine.locked():
            data = mujoco.MjData(engine.model)
            mujoco.mj_copyData(data, engine.model, engine.data)
        return engine.model, data

    def counters(self) -> Any:
        """What the server counted of its streams."""
        with URLabClient("tcp://127.0.0.1", step_port=self.port, observer=True, camera_streams=False) as client:
            client.discover()
            return client.streams["counters"]


Serving = Callable[..., Lab]


@pytest.fixture
def serve(project: Path) -> Iterator[Serving]:
    with contextlib.ExitStack() as stack:

        def make(level: str = "lab", **options: Any) -> Lab:
            server = Lab(ServerConfig(**{"project": project, "ports": Ports.any(), **options}), [level])
            stack.callback(server.close)
            server.begin()
            server.open_sockets()
            return server

        yield make


@pytest.fixture
def ports(lasting_port: Callable[[], int]) -> Ports:
    """Of a server that ends, and of another one that is taken for it."""
    return Ports(*(lasting_port() for _ in range(4)), camera=0)


@pytest.fixture
def server(serve: Serving) -> Lab:
    return serve()


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def run() -> Iterator[Callable[[Graph, BridgeSettings], Bridge]]:
    """Runs bridges; each ends with the test."""
    running: list[tuple[Bridge, threading.Thread]] = []

    def start(graph: Graph, settings: BridgeSettings) -> Bridge:
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
def bridged(run: Run, graph: Graph, wait_until: Callable[..., None]) -> Run:
    """A bridge to a server, once it is ready."""

    def start(server: Lab, **choice: Any) -> Bridge:
        settings = BridgeSettings(step_port=server.port, choice=TopicChoice(**choice), poll_s=0.1, timeout_ms=300)
        bridge = run(graph, settings)
        wait_until(lambda: bridge.is_ready)
        return bridge

    return start


@pytest.fixture
def driver(server: Lab) -> Iterator[URLabClient]:
    """Whoever steps the server, in direct mode."""
    with URLabClient("tcp://127.0.0.1", step_port=server.port, step_mode="direct", camera_streams=False) as client:
        client.discover()
        yield client


@pytest.fixture(scope="module")
def shared_bridge(project: Path, wait_until: Callable[..., None]) -> Iterator[tuple[Lab, Graph, Bridge]]:
    """One server and one bridge for tests that change nothing."""
    server = Lab(ServerConfig(project=project, ports=Ports.any()), ["lab"])
    server.begin()
    server.open_sockets()
    graph = Graph()
    bridge = Bridge(graph, BridgeSettings(step_port=server.port))
    thread = threading.Thread(target=bridge.run)
    thread.start()
    wait_until(lambda: bridge.is_ready)
    yield server, graph, bridge
    bridge.stop()
    thread.join(PATIENCE_S)
    server.close()
