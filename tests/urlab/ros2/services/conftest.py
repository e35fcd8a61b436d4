"""The services of simulation_interfaces: a real server, real backends, and clients who know only the graph."""

import contextlib
import importlib
import importlib.util
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.ros2 import messages, names
from urlab.ros2.backend import Backend
from urlab.ros2.bridge import Bridge, BridgeSettings
from urlab.ros2.dds import DdsBackend
from urlab.ros2.dds.endpoints import DdsReader, DdsWriter
from urlab.ros2.qos import RELIABLE, Qos
from urlab.ros2.rclpy_backend import RclpyBackend
from urlab.ros2.services import SERVICES, SimulationServices
from urlab.ros2.services.messages import GENERATION, PACKAGE
from urlab_client import URLabClient

PATIENCE_S = 20.0
OK = 1
TYPES = {one.name: one.type_name for one in SERVICES}
HAS_ROS = importlib.util.find_spec("rclpy") is not None

ROVER = """<mujoco model="rover"><worldbody>
  <body name="hull" pos="0 0 1" euler="0 0 30"><freejoint name="root"/><geom type="box" size=".2 .1 .05" mass="4"/>
    <body name="mast" pos="0 0 .1"><joint name="turn" axis="0 0 1" damping=".1"/><geom size=".03" pos=".1 0 0"/></body>
  </body></worldbody><actuator><position name="turner" joint="turn" kp="5"/></actuator></mujoco>"""
POST = """<mujoco model="post"><worldbody>
  <body name="pole" pos="0 0 .2" euler="0 0 90"><joint name="swing" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/></body>
  </worldbody><actuator><motor name="push" joint="swing"/></actuator></mujoco>"""
CRATE = """<mujoco model="crate"><worldbody><body name="box" pos="0 0 .1" euler="0 0 45"><freejoint name="free"/>
  <geom type="box" size=".1 .2 .3" mass="2"/></body></worldbody></mujoco>"""
GOAL = """<mujoco model="goal"><worldbody><body name="mark" mocap="true"><geom size=".05" contype="0" conaffinity="0"/>
  </body></worldbody></mujoco>"""
SLAB = """<mujoco model="slab"><worldbody><body name="stone"><geom type="box" size="1 1 .1"/></body></worldbody>
  </mujoco>"""
MODELS = {"rover": ROVER, "post": POST, "crate": CRATE, "goal": GOAL, "slab": SLAB}
PLACES = {"rover": (0, 0, 0), "crate": (3, 0, 5), "goal": (0, 3, 1), "slab": (0, 0, -5)}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    levels = tmp_path_factory.mktemp("project") / "Levels"
    levels.mkdir()
    for name, text in MODELS.items():
        (levels / f"{name}.xml").write_text(text)
    actors = [
        f'[[actors]]\nblueprint = "{name}.xml"\nname = "{name}"\nactor_id = "{name}_0"\nlocation = {list(at)}'
        for name, at in PLACES.items()
    ]
    (levels / "lab.toml").write_text("\n".join(["version = 1", 'name = "lab"', *actors]) + "\n")
    return levels.parent


class Lab(Server):
    """A server of the level lab; ``places`` are those of its actors."""

    places = PLACES

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


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Lab]]:
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> Lab:
            server = Lab(ServerConfig(**{"project": project, "ports": Ports.any(), **options}), ["lab"])
            stack.callback(server.close)
            server.begin()
            server.open_sockets()
            return server

        yield start


@pytest.fixture
def server(start: Callable[..., Lab]) -> Lab:
    return start()


@pytest.fixture
def driver(server: Lab) -> Iterator[URLabClient]:
    """Whoever steps the server, in direct mode."""
    with URLabClient("tcp://127.0.0.1", step_port=server.port, step_mode="direct", camera_streams=False) as client:
        client.discover()
        yield client


class CycloneClient:
    """Calls services as a node on rmw_cyclonedds_cpp does: {client, sequence number} before the message."""

    def __init__(self, domain: int) -> None:
        self._backend = DdsBackend(domain=domain, node="caller")
        self._ends: dict[str, tuple[DdsWriter, DdsReader]] = {}
        self._listening: list[Any] = []
        self._number = 0

    def exchange(self, name: str, cdr: bytes) -> bytes:
        writer, reader = self._ends.get(name) or self._join(name)
        self._number += 1
        header = struct.pack("<Qq", 0xC0FFEE, self._number)
        writer.publish(cdr[:4] + header + cdr[4:])
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            for payload, _ in reader.take():
                if payload[4:20] == header:
                    return payload[:4] + payload[20:]
            time.sleep(0.001)
        raise AssertionError(f"/{name} gave no reply")

    def listen(self, topic: str, type_name: str, qos: Qos) -> list[Any]:
        """What is heard on a topic, each with the time (monotonic, s) at which it came."""
        heard: list[Any] = []

        def take(cdr: bytes) -> None:
            heard.append((time.monotonic(), messages.deserialise(cdr, type_name)))

        self._listening.append(self._backend.subscription(topic, type_name, qos, take))
        return heard

    def _join(self, name: str) -> tuple[DdsWriter, DdsReader]:
        participant, who = self._backend._participant, f"clientid=c0.ff.ee.{len(self._ends):x};"
        request, reply = (f"{TYPES[name]}_{half}" for half in ("Request", "Response"))
        reader = DdsReader(participant, names.reply_to_dds(f"/{name}"), reply, RELIABLE, who)
        writer = DdsWriter(participant, names.request_to_dds(f"/{name}"), request, RELIABLE, who)
        until_s = time.monotonic() + PATIENCE_S
        while not writer.subscribers and time.monotonic() < until_s:
            time.sleep(0.002)
        self._ends[name] = writer, reader
        return writer, reader

    def close(self) -> None:
        for writer, reader in self._ends.values():
            writer.close()
            reader.close()
        self._backend.close()


class RclpyClient:
    """Calls services with rclpy."""

    def __init__(self, domain: int) -> None:
        rclpy = importlib.import_module("rclpy")
        self._kinds = importlib.import_module(f"{PACKAGE}.srv")
        self._serialization = importlib.import_module("rclpy.serialization")
        self._context = rclpy.context.Context()
        rclpy.init(args=[], context=self._context, domain_id=domain)
        self._node = rclpy.create_node("caller", context=self._context)
        self._executor = rclpy.executors.MultiThreadedExecutor(1, context=self._context)
        self._executor.add_node(self._node)

    def exchange(self, name: str, cdr: bytes) -> bytes:
        kind = getattr(self._kinds, TYPES[name].rpartition("/")[2])
        client = self._node.create_client(kind, f"/{name}")
        until_s = time.monotonic() + PATIENCE_S
        while not client.service_is_ready() and time.monotonic() < until_s:
            time.sleep(0.002)
        future = client.call_async(self._serialization.deserialize_message(cdr, kind.Request))
        self._executor.spin_until_future_complete(future, timeout_sec=PATIENCE_S)
        assert future.done(), f"/{name} gave no reply"
        return bytes(self._serialization.serialize_message(future.result()))

    def close(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()


class Build:
    """Messages of requests, and numbers of responses."""

    @staticmethod
    def message(name: str, **fields: Any) -> Any:
        return messages.make(f"{PACKAGE}/msg/{name}", **fields)

    @staticmethod
    def vector(kind: str, *values: float) -> Any:
        return messages.make(f"geometry_msgs/msg/{kind}", **dict(zip("xyzw", values, strict=False)))

    @staticmethod
    def pose(pos: Any, xyzw: Any = (0, 0, 0, 1)) -> Any:
        position, orientation = Build.vector("Point", *map(float, pos)), Build.vector("Quaternion", *map(float, xyzw))
        return messages.make("geometry_msgs/msg/Pose", position=position, orientation=orientation)

    @staticmethod
    def stamped(pos: Any, xyzw: Any = (0, 0, 0, 1), frame: str = "") -> Any:
        header = messages.make("std_msgs/msg/Header", frame_id=frame)
        return messages.make("geometry_msgs/msg/PoseStamped", header=header, pose=Build.pose(pos, xyzw))

    @staticmethod
    def new_state(
        pos: Any, xyzw: Any = (0, 0, 0, 1), linear: Any = (0, 0, 0), angular: Any = (0, 0, 0), frame: str = ""
    ) -> Any:
        twist = messages.make(
            "geometry_msgs/msg/Twist",
            linear=Build.vector("Vector3", *map(float, linear)),
            angular=Build.vector("Vector3", *map(float, angular)),
        )
        header = messages.make("std_msgs/msg/Header", frame_id=frame)
        return Build.message("EntityState", header=header, pose=Build.pose(pos, xyzw), twist=twist)

    @staticmethod
    def numbers(one: Any) -> tuple[float, ...]:
        return tuple(float(getattr(one, name)) for name in "xyzw" if hasattr(one, name))

    @staticmethod
    def spawn_fields(uri: str, name: str = "", **fields: Any) -> dict[str, Any]:
        resource = {"entity_resource": Build.message("Resource", uri=uri)} if GENERATION.has_resource else {"uri": uri}
        return {"name": name, **resource, **fields}


class Graph(Build):
    """The services as somebody in the graph sees them."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def call(self, service: str, /, **fields: Any) -> Any:
        """The response to a request."""
        kind = TYPES[service]
        if service == "set_entity_state" and GENERATION.has_flags:
            fields = {"set_pose": True, "set_twist": True, **fields}
        cdr = bytes(messages.serialise(messages.make(f"{kind}_Request", **fields), f"{kind}_Request"))
        return messages.deserialise(self.node.exchange(service, cdr), f"{kind}_Response")

    def ok(self, service: str, /, **fields: Any) -> Any:
        """The response to a request that must succeed."""
        response = self.call(service, **fields)
        assert response.result.result == OK, response.result
        return response

    def refused(self, service: str, /, **fields: Any) -> tuple[int, str]:
        """Code and message of a request that must fail."""
        told = self.call(service, **fields).result
        assert told.result != OK
        assert told.error_message
        return int(told.result), str(told.error_message)

    def state(self) -> int:
        return int(self.ok("get_simulation_state").state.state)

    def set_state(self, state: int) -> Any:
        return self.call("set_simulation_state", state=self.message("SimulationState", state=state)).result

    def entities(self, **filters: Any) -> list[str]:
        return list(self.ok("get_entities", filters=self.message("EntityFilters", **filters)).entities)

    def where(self, entity: str) -> Any:
        return self.ok("get_entity_state", entity=entity).state

    def uri_of(self, word: str) -> str:
        """That of something that can be spawned."""
        found = {one.description: one for one in self.ok("get_spawnables").spawnables}
        one = found[word]
        return str(one.entity_resource.uri if GENERATION.has_resource else one.uri)


Offer = Callable[..., Graph]
ROS = pytest.param("rclpy", marks=pytest.mark.skipif(not HAS_ROS, reason="ROS 2 is not sourced"))


@contextlib.contextmanager
def offering(over: str, domain: int) -> Iterator[Offer]:
    """Opens the services of the server at a port; what it returns is a client of theirs."""
    with contextlib.ExitStack() as stack:

        def open_services(step_port: int, **options: Any) -> Graph:
            backend: Backend = DdsBackend(domain=domain) if over == "dds" else RclpyBackend(domain=domain)
            stack.callback(backend.close)
            services = SimulationServices(backend, "tcp://127.0.0.1", step_port, **options)
            stack.callback(services.close)
            node: Any = CycloneClient(domain) if over == "dds" else RclpyClient(domain)
            stack.callback(node.close)
            return Graph(node)

        yield open_services


@pytest.fixture
def offer(domain: int) -> Iterator[Offer]:
    """Opens services over DDS."""
    with offering("dds", domain) as offer:
        yield offer


@pytest.fixture
def graph(offer: Offer, server: Lab) -> Graph:
    """A client of the services of the server, over DDS."""
    return offer(server.port)


@pytest.fixture(params=["dds", ROS])
def every_graph(request: pytest.FixtureRequest, domain: int, server: Lab) -> Iterator[Graph]:
    """The same over every backend."""
    with offering(request.param, domain) as offer:
        yield offer(server.port)


@pytest.fixture
def bridged(server: Lab, domain: int, wait_until: Callable[..., None]) -> Iterator[tuple[Bridge, Graph]]:
    """A whole bridge to the server, once it is ready, and somebody else in the graph."""
    backend, node = DdsBackend(domain=domain), CycloneClient(domain)
    bridge = Bridge(backend, BridgeSettings(step_port=server.port))
    thread = threading.Thread(target=bridge.run)
    thread.start()
    wait_until(lambda: bridge.is_ready)
    yield bridge, Graph(node)
    bridge.stop()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    node.close()
    backend.close()
