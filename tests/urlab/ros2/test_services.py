"""The services of simulation_interfaces: a real server, real backends, and clients who know only the graph."""

import contextlib
import importlib
import importlib.util
import math
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import mujoco
import numpy as np
import pytest

from urlab.app import Server
from urlab.cli.ros2.listing import listing
from urlab.config import Ports, ServerConfig
from urlab.ros2 import messages, names
from urlab.ros2.backend import Backend
from urlab.ros2.bridge import Bridge, Settings
from urlab.ros2.dds import DdsBackend
from urlab.ros2.dds.reader import Reader
from urlab.ros2.dds.writer import Writer
from urlab.ros2.qos import CLOCK, RELIABLE
from urlab.ros2.rclpy_backend import RclpyBackend
from urlab.ros2.services import SERVICES, SimulationServices, entities
from urlab.ros2.services.operating import OperatorClient
from urlab.ros2.services.restarting import change_scene
from urlab.ros2.services.results import Refused
from urlab.ros2.simulation_messages import GENERATION, PACKAGE, Generation, definitions
from urlab.ros2.topics import Choice
from urlab_client import URLabClient, URLabRPCError
from urlab_wire import CATALOGUE

PATIENCE_S = 20.0
UNSUPPORTED, OK, NOT_FOUND, INCORRECT_STATE, FAILED = range(5)
STOPPED, PLAYING, PAUSED, QUITTING = range(4)
TYPES = {one.name: one.type_name for one in SERVICES}
HAS_ROS = importlib.util.find_spec("rclpy") is not None
STAND_IN = Path(__file__).parent / "rclpy_stand_in.py"

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


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Server]]:
    with contextlib.ExitStack() as stack:

        def start(**options: Any) -> Server:
            server = Server(ServerConfig(**{"project": project, "ports": Ports.any(), **options}), ["lab"])
            stack.callback(server.close)
            server.begin()
            server.open_sockets()
            return server

        yield start


@pytest.fixture
def server(start: Any) -> Server:
    made: Server = start()
    return made


def port(server: Server) -> int:
    return int(server.endpoints()["step"].rpartition(":")[2])


def truth(server: Server) -> tuple[Any, Any]:
    """The model, and a copy of the server's data."""
    engine = server.play.manager.engine
    with engine.locked():
        data = mujoco.MjData(engine.model)
        mujoco.mj_copyData(data, engine.model, engine.data)
    return engine.model, data


@pytest.fixture
def driver(server: Server) -> Iterator[URLabClient]:
    with URLabClient("tcp://127.0.0.1", step_port=port(server), step_mode="direct", camera_streams=False) as client:
        client.discover()
        yield client


# -- clients ------------------------------------------------------------------------------------------------------


class CycloneClient:
    """Calls services as a node on rmw_cyclonedds_cpp does: {client, sequence number} before the message."""

    def __init__(self, domain: int) -> None:
        self._backend = DdsBackend(domain=domain, node="caller")
        self._ends: dict[str, tuple[Writer, Reader]] = {}
        self._number = 0

    def exchange(self, name: str, cdr: bytes) -> bytes:
        writer, reader = self._ends.get(name) or self._join(name)
        self._number += 1
        header = struct.pack("<Qq", 0xC0FFEE, self._number)
        writer.write(cdr[:4] + header + cdr[4:])
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            for payload, _ in reader.take():
                if payload[4:20] == header:
                    return payload[:4] + payload[20:]
            time.sleep(0.001)
        raise AssertionError(f"/{name} gave no reply")

    def listen(self, topic: str, type_name: str, heard: list[Any]) -> None:
        take = lambda cdr: heard.append(messages.deserialise(cdr, type_name))  # noqa: E731
        self._listening = self._backend.subscription(topic, type_name, CLOCK, take)

    def _join(self, name: str) -> tuple[Writer, Reader]:
        participant, who = self._backend._participant, f"clientid=c0.ff.ee.{len(self._ends):x};"
        request, reply = (names.type_to_dds(f"{TYPES[name]}_{half}") for half in ("Request", "Response"))
        reader = Reader(participant, names.reply_to_dds(f"/{name}"), reply, RELIABLE, who)
        writer = Writer(participant, names.request_to_dds(f"/{name}"), request, RELIABLE, who)
        until_s = time.monotonic() + PATIENCE_S
        while not writer.readers and time.monotonic() < until_s:
            time.sleep(0.002)
        self._ends[name] = writer, reader
        return writer, reader

    def close(self) -> None:
        for writer, reader in self._ends.values():
            writer.close()
            reader.close()
        self._backend.close()


class RclpyClient:
    """Calls services with rclpy, or with its stand-in."""

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


class Graph:
    """The services as somebody in the graph sees them."""

    def __init__(self, node: Any) -> None:
        self._node = node

    def call(self, service: str, /, **fields: Any) -> Any:
        """The response to a request."""
        kind = TYPES[service]
        if service == "set_entity_state" and GENERATION.has_flags:
            fields = {"set_pose": True, "set_twist": True, **fields}
        cdr = bytes(messages.serialise(messages.make(f"{kind}_Request", **fields), f"{kind}_Request"))
        return messages.deserialise(self._node.exchange(service, cdr), f"{kind}_Response")

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
        return self.call("set_simulation_state", state=message("SimulationState", state=state)).result

    def entities(self, **filters: Any) -> list[str]:
        return list(self.ok("get_entities", filters=message("EntityFilters", **filters)).entities)

    def where(self, entity: str) -> Any:
        return self.ok("get_entity_state", entity=entity).state


def message(name: str, **fields: Any) -> Any:
    return messages.make(f"{PACKAGE}/msg/{name}", **fields)


def vector(kind: str, *values: float) -> Any:
    return messages.make(f"geometry_msgs/msg/{kind}", **dict(zip("xyzw", values, strict=False)))


def pose(pos: Any, xyzw: Any = (0, 0, 0, 1)) -> Any:
    position, orientation = vector("Point", *map(float, pos)), vector("Quaternion", *map(float, xyzw))
    return messages.make("geometry_msgs/msg/Pose", position=position, orientation=orientation)


def stamped(pos: Any, xyzw: Any = (0, 0, 0, 1), frame: str = "") -> Any:
    header = messages.make("std_msgs/msg/Header", frame_id=frame)
    return messages.make("geometry_msgs/msg/PoseStamped", header=header, pose=pose(pos, xyzw))


def new_state(
    pos: Any, xyzw: Any = (0, 0, 0, 1), linear: Any = (0, 0, 0), angular: Any = (0, 0, 0), frame: str = ""
) -> Any:
    twist = messages.make(
        "geometry_msgs/msg/Twist",
        linear=vector("Vector3", *map(float, linear)),
        angular=vector("Vector3", *map(float, angular)),
    )
    header = messages.make("std_msgs/msg/Header", frame_id=frame)
    return message("EntityState", header=header, pose=pose(pos, xyzw), twist=twist)


def numbers(one: Any) -> tuple[float, ...]:
    return tuple(float(getattr(one, name)) for name in "xyzw" if hasattr(one, name))


def spawn_fields(uri: str, name: str = "", **fields: Any) -> dict[str, Any]:
    resource = {"entity_resource": message("Resource", uri=uri)} if GENERATION.has_resource else {"uri": uri}
    return {"name": name, **resource, **fields}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("rclpy_stand_in", STAND_IN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, made in module.modules().items():
        monkeypatch.setitem(sys.modules, name, made)


Offer = Callable[[int], Graph]


@pytest.fixture
def offer(request: pytest.FixtureRequest, domain: int) -> Iterator[Offer]:
    """Opens the services of the server at a port, over DDS unless a test says otherwise; a client of theirs."""
    over = getattr(request, "param", "dds")
    if over == "stand-in":
        request.getfixturevalue("stand_in")
    with contextlib.ExitStack() as stack:

        def open_services(step_port: int) -> Graph:
            backend: Backend = DdsBackend(domain=domain) if over == "dds" else RclpyBackend(domain=domain)
            stack.callback(backend.close)
            services = SimulationServices(backend, "tcp://127.0.0.1", step_port)
            stack.callback(services.close)
            node: Any = CycloneClient(domain) if over == "dds" else RclpyClient(domain)
            stack.callback(node.close)
            return Graph(node)

        yield open_services


EVERYWHERE = pytest.mark.parametrize(
    "offer",
    ["dds", "stand-in", pytest.param("rclpy", marks=pytest.mark.skipif(not HAS_ROS, reason="ROS 2 is not sourced"))],
    indirect=True,
)


@pytest.fixture
def graph(offer: Offer, server: Server) -> Graph:
    return offer(port(server))


# -- the simulation -----------------------------------------------------------------------------------------------


@EVERYWHERE
def test_the_simulation_is_paused_stepped_and_played_while_its_driver_stays(server: Server, graph: Graph) -> None:
    with URLabClient("tcp://127.0.0.1", step_port=port(server), camera_streams=False) as driver:
        driver.discover()
        assert graph.state() == PLAYING
        assert graph.set_state(PAUSED).result == OK
        assert graph.state() == PAUSED
        model, before = truth(server)
        graph.ok("step_simulation", steps=130)
        _, after = truth(server)
        mujoco.mj_step(model, before, nstep=130)
        assert after.time == pytest.approx(before.time)
        assert np.array_equal(after.qpos, before.qpos)
        assert driver.step()["time"] == after.time
        assert graph.set_state(PLAYING).result == OK
        assert driver.sim.status().paused is False


def test_a_simulation_that_plays_is_not_stepped(graph: Graph) -> None:
    code, told = graph.refused("step_simulation", steps=1)
    assert code == FAILED
    assert "pause it first" in told


def test_no_steps_are_none(server: Server, graph: Graph) -> None:
    graph.set_state(PAUSED)
    before = truth(server)[1].time
    graph.ok("step_simulation", steps=0)
    assert truth(server)[1].time == before


def test_in_direct_mode_it_counts_as_paused_and_can_be_stepped_but_not_played(
    graph: Graph, driver: URLabClient
) -> None:
    before = driver.step(n_steps=3)
    assert graph.state() == PAUSED
    graph.ok("step_simulation", steps=4)
    reply = driver.step()
    assert reply["step"] - before["step"] == 5
    assert reply["time"] == pytest.approx(before["time"] + 5 * 0.002)
    told = graph.set_state(PLAYING)
    assert told.result == 102
    assert "direct mode" in told.error_message
    assert driver.sim.status().mode == "direct"


def test_in_puppet_mode_it_is_not_stepped(graph: Graph, driver: URLabClient) -> None:
    driver.runtime.set_mode("puppet")
    code, told = graph.refused("step_simulation", steps=1)
    assert (code, "puppet" in told) == (FAILED, True)


def test_a_state_that_is_there_already_or_cannot_be_is_told(graph: Graph) -> None:
    assert graph.set_state(PLAYING).result == 101
    quitting = graph.set_state(QUITTING)
    assert quitting.result == UNSUPPORTED
    assert "urlab serve" in quitting.error_message
    assert graph.set_state(4).result == 103
    assert graph.state() == PLAYING


def test_it_is_stopped_and_begins_paused_at_its_start(server: Server, graph: Graph) -> None:
    assert graph.set_state(STOPPED).result == OK
    assert graph.state() == STOPPED
    assert not server.play.is_playing
    assert set(graph.entities()) == set(PLACES)
    assert numbers(graph.where("crate").pose.position) == PLACES["crate"]
    assert graph.set_state(PAUSED).result == OK
    _, data = truth(server)
    assert (data.time, graph.state()) == (0, PAUSED)
    graph.set_state(STOPPED)
    assert graph.set_state(PLAYING).result == OK
    assert graph.state() == PLAYING


def test_a_play_that_is_begun_from_ros_keeps_the_driver_s_mode(graph: Graph, driver: URLabClient) -> None:
    graph.set_state(STOPPED)
    with pytest.raises(URLabRPCError, match="no simulation is running"):
        driver.step()
    begun = graph.set_state(PLAYING)
    assert (begun.result, "direct" in begun.error_message) == (OK, True)
    assert driver.step(n_steps=2)["time"] == pytest.approx(0.004)


@pytest.mark.parametrize(
    ("scope", "time_back", "state_back"), [(0, 1, 1), (255, 1, 1), (3, 1, 1), (1, 1, 0), (2, 0, 1), (4, 0, 0)]
)
def test_a_reset_resets_what_it_says(
    server: Server, graph: Graph, driver: URLabClient, scope: int, time_back: bool, state_back: bool
) -> None:
    driver.step(n_steps=50)
    before = truth(server)[1]
    graph.ok("reset_simulation", scope=scope)
    model, after = truth(server)
    assert after.time == (0 if time_back else before.time)
    start = model.qpos0[int(model.joint("crate_free").qposadr[0]) + 2]
    assert after.joint("crate_free").qpos[2] == (start if state_back else before.joint("crate_free").qpos[2])
    assert driver.step()["time"] == pytest.approx(after.time + 0.002)


def test_a_reset_of_unknown_scope_is_refused(graph: Graph) -> None:
    code, told = graph.refused("reset_simulation", scope=9)
    assert (code, "255" in told) == (UNSUPPORTED, True)


# -- entities -----------------------------------------------------------------------------------------------------


def test_entities_are_found_by_name_kind_tag_and_place(graph: Graph) -> None:
    def kind(number: int) -> Any:
        return message("EntityCategory", category=number)

    graph.set_state(PAUSED)
    assert set(graph.entities()) == set(PLACES)
    assert set(graph.entities(filter="^.o")) == {"rover", "goal"}
    assert graph.entities(categories=[kind(1)]) == ["rover"]
    assert set(graph.entities(categories=[kind(4), kind(5)])) == {"crate", "goal", "slab"}
    tags = message("TagsFilter", tags=["URLab.ActorId=slab_0", "URLab.ActorId=goal_0"])
    assert set(graph.entities(tags=tags)) == {"slab", "goal"}
    assert graph.entities(tags=message("TagsFilter", tags=tags.tags, filter_mode=1)) == []
    corners = [vector("Vector3", 0.5, 0.5, -4.95), vector("Vector3", 1.5, 1.5, -4.0)]
    assert graph.entities(bounds=message("Bounds", type=1, points=corners)) == ["slab"]
    ball = [vector("Vector3", 0.0, 3.0, 2.0), vector("Vector3", 0.96, 0.0, 0.0)]
    assert graph.entities(bounds=message("Bounds", type=3, points=ball)) == ["goal"]
    ball[1].x = 0.94
    assert graph.entities(bounds=message("Bounds", type=3, points=ball)) == []


def test_a_filter_that_cannot_be_is_refused(graph: Graph) -> None:
    hull = message("EntityFilters", bounds=message("Bounds", type=2, points=[vector("Vector3", 0, 0, 0)] * 3))
    assert graph.refused("get_entities", filters=hull)[0] == UNSUPPORTED
    one = message("EntityFilters", bounds=message("Bounds", type=1, points=[vector("Vector3", 0, 0, 0)]))
    assert graph.refused("get_entities", filters=one)[0] == FAILED
    code, told = graph.refused("get_entities", filters=message("EntityFilters", filter="("))
    assert (code, "regular expression" in told) == (FAILED, True)


@EVERYWHERE
def test_states_are_those_of_the_server_in_the_world(server: Server, graph: Graph) -> None:
    graph.set_state(PAUSED)
    graph.ok("set_entity_state", entity="rover", state=new_state((1, 2, 3), (0, 0, 1, 1), (4, 5, 6), (0.1, 0.2, 0.3)))
    graph.ok("step_simulation", steps=20)
    _, data = truth(server)
    told = graph.ok("get_entities_states")
    states = dict(zip(told.entities, told.states, strict=True))
    places = {"rover": data.joint("rover_root").qpos[:3], "crate": data.joint("crate_free").qpos[:3]}
    places |= {name: data.body(name).xpos for name in ("goal", "slab")}
    for name, place in places.items():
        state = states[name]
        assert state.header.frame_id == "world"
        assert state.header.stamp.sec * 10**9 + state.header.stamp.nanosec == round(data.time * 1e9)
        assert numbers(state.pose.position) == pytest.approx(tuple(place))
    hull = data.joint("rover_root")
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, hull.qpos[3:])
    w, x, y, z = hull.qpos[3:]
    assert numbers(states["rover"].pose.orientation) == pytest.approx((x, y, z, w))
    assert numbers(states["rover"].twist.linear) == pytest.approx(tuple(hull.qvel[:3]))
    assert numbers(states["rover"].twist.angular) == pytest.approx(tuple(rotation.reshape(3, 3) @ hull.qvel[3:]))
    assert graph.where("crate") == states["crate"]


def test_a_free_body_goes_where_it_is_put_and_as_fast(server: Server, graph: Graph) -> None:
    graph.set_state(PAUSED)
    turn = (0.5, 0.5, 0.5, 0.5)
    graph.ok("set_entity_state", entity="crate", state=new_state((1, 2, 3), turn, (0.5, 0, 0), (0, 0, 2)))
    _, data = truth(server)
    crate = data.joint("crate_free")
    assert crate.qpos.tolist() == pytest.approx([1, 2, 3, 0.5, 0.5, 0.5, 0.5])
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, crate.qpos[3:])
    assert rotation.reshape(3, 3) @ crate.qvel[3:] == pytest.approx([0, 0, 2])
    assert crate.qvel[:3].tolist() == [0.5, 0, 0]


def test_a_state_may_be_told_in_the_frame_of_another_entity(server: Server, graph: Graph) -> None:
    graph.set_state(PAUSED)
    graph.ok("set_entity_state", entity="goal", state=new_state((1, 0, 0), (0, 0, 1, 1)))
    graph.ok("set_entity_state", entity="crate", state=new_state((1, 0, 0), linear=(1, 0, 0), frame="goal"))
    _, data = truth(server)
    crate = data.joint("crate_free")
    assert crate.qpos.tolist() == pytest.approx([1, 1, 0, math.sqrt(0.5), 0, 0, math.sqrt(0.5)])
    assert crate.qvel[:3].tolist() == pytest.approx([0, 1, 0])


@pytest.mark.parametrize(("set_pose", "set_twist"), [(True, False), (False, True), (False, False)])
def test_later_versions_say_which_part_of_a_state_counts(server: Server, set_pose: bool, set_twist: bool) -> None:
    state = new_state((1, 2, 3), (0, 0, 0, 1), linear=(4, 5, 6))
    asked = SimpleNamespace(entity="crate", state=state, set_pose=set_pose, set_twist=set_twist)
    with OperatorClient("tcp://127.0.0.1", port(server)) as client:
        client.discover()
        client.runtime.set_paused(True)
        client.step(0)
        before = truth(server)[1].joint("crate_free")
        entities.set_entity_state(client, asked)
    after = truth(server)[1].joint("crate_free")
    assert after.qpos[:3].tolist() == ([1, 2, 3] if set_pose else before.qpos[:3].tolist())
    assert after.qvel[:3].tolist() == ([4, 5, 6] if set_twist else before.qvel[:3].tolist())


def test_a_mocap_body_and_a_static_one_go_where_they_are_put(server: Server, graph: Graph) -> None:
    graph.set_state(PAUSED)
    graph.ok("step_simulation", steps=10)
    before = truth(server)[1]
    graph.ok("set_entity_state", entity="goal", state=new_state((4, 5, 6), (1, 0, 0, 0)))
    graph.ok("set_entity_state", entity="slab", state=new_state((0, 0, -9), (0, 0, 1, 1)))
    _, data = truth(server)
    assert data.body("goal").xpos.tolist() == [4, 5, 6]
    assert data.body("slab").xpos.tolist() == [0, 0, -9]
    assert data.body("slab").xquat.tolist() == pytest.approx([math.sqrt(0.5), 0, 0, math.sqrt(0.5)])
    assert (data.time, data.qpos.tolist()) == (before.time, before.qpos.tolist()), "all else stays as it was"


def test_a_bad_state_is_refused_and_changes_nothing(server: Server, graph: Graph) -> None:
    graph.set_state(PAUSED)
    before = truth(server)[1].qpos.tolist()
    code, told = graph.refused("set_entity_state", entity="crate", state=new_state((0, 0, 0), (0, 0, 0, 0)))
    assert (code, "no length" in told) == (101, True)
    assert graph.refused("set_entity_state", entity="crate", state=new_state((math.nan, 0, 0)))[0] == 101
    assert graph.refused("set_entity_state", entity="crate", state=new_state((0, 0, 0), frame="moon"))[0] == 101
    assert graph.refused("set_entity_state", entity="slab", state=new_state((0, 0, 0), linear=(1, 0, 0)))[0] == FAILED
    code, told = graph.refused("set_entity_state", entity="ghost", state=new_state((0, 0, 0)))
    assert code == NOT_FOUND
    assert "crate" in told
    assert truth(server)[1].qpos.tolist() == before


@pytest.mark.parametrize("service", ["get_entity_state", "get_entity_info", "get_entity_bounds", "delete_entity"])
def test_an_unknown_entity_is_told_with_those_that_there_are(graph: Graph, service: str) -> None:
    for name in ("ghost", ""):
        code, told = graph.refused(service, entity=name)
        assert (code, "rover" in told) == (NOT_FOUND, True)


def test_an_entity_is_known_by_its_actor_id_too(graph: Graph) -> None:
    graph.set_state(PAUSED)
    assert graph.where("crate_0").pose == graph.where("crate").pose


def test_info_tells_kind_and_tags(graph: Graph) -> None:
    info = graph.ok("get_entity_info", entity="rover").info
    assert (info.category.category, info.tags) == (1, ["URLab.ActorId=rover_0"])
    assert "robot" in info.description
    assert graph.ok("get_entity_info", entity="goal").info.category.category == 4
    assert graph.ok("get_entity_info", entity="slab").info.category.category == 5


def test_bounds_are_a_box_along_the_axes_of_the_entity(graph: Graph) -> None:
    graph.set_state(PAUSED)
    graph.ok("set_entity_state", entity="crate", state=new_state((1, 2, 3), (0.1, 0.2, 0.3, 0.9)))
    bounds = graph.ok("get_entity_bounds", entity="crate").bounds
    upper, lower = (numbers(one) for one in bounds.points)
    assert bounds.type == 1
    assert upper == pytest.approx((0.1, 0.2, 0.3))
    assert lower == pytest.approx((-0.1, -0.2, -0.3))
    upper = numbers(graph.ok("get_entity_bounds", entity="rover").bounds.points[0])
    assert upper[2] == pytest.approx(0.1 + 0.03), "the mast belongs to it"


# -- spawning -----------------------------------------------------------------------------------------------------


@EVERYWHERE
def test_what_is_spawned_is_there_where_it_was_wanted_and_all_else_goes_on(
    server: Server, graph: Graph, project: Path, driver: URLabClient
) -> None:
    rover = driver.articulations["rover"]
    rover.ctrl_array[:] = 0.6
    driver.step(n_steps=40)
    _, before = truth(server)
    uri = f"file://{project / 'Levels' / 'crate.xml'}"
    told = graph.ok("spawn_entity", **spawn_fields(uri, "parcel", initial_pose=stamped((7, 8, 9), (0, 0, 1, 1))))
    assert told.entity_name == "parcel"
    model, after = truth(server)
    spawned = after.joint("crate-2_free")
    assert spawned.qpos.tolist() == pytest.approx([7, 8, 9, math.sqrt(0.5), 0, 0, math.sqrt(0.5)])
    assert after.time == before.time
    for name in ("rover_root", "rover_turn", "crate_free"):
        assert after.joint(name).qpos.tolist() == before.joint(name).qpos.tolist()
        assert after.joint(name).qvel.tolist() == before.joint(name).qvel.tolist()
    assert "parcel" in graph.entities()
    assert numbers(graph.where("parcel").pose.position) == pytest.approx((7, 8, 9))
    assert server.play.manager.articulations["rover"].staged.active.tolist() == [0.6]

    after.ctrl[:] = 0.6
    mujoco.mj_step(model, after, nstep=10)
    reply = driver.step(n_steps=10)
    assert reply["time"] == pytest.approx(before.time + 0.02)
    assert reply["per_articulation"]["rover"]["qpos"] == pytest.approx(after.qpos[:8].tolist(), abs=1e-6)
    assert driver.articulations["rover"].root_pos_w == pytest.approx(after.body("rover_hull").xpos, abs=1e-2)


def test_what_is_spawned_goes_with_a_reset_and_stays_where_it_was_put(server: Server, graph: Graph) -> None:
    graph.set_state(PAUSED)
    graph.ok("spawn_entity", **spawn_fields(class_path(graph, "box"), "parcel", initial_pose=stamped((1, 1, 9))))
    graph.ok("step_simulation", steps=30)
    graph.ok("reset_simulation", scope=3)
    assert numbers(graph.where("parcel").pose.position) == pytest.approx((1, 1, 9))
    graph.ok("step_simulation", steps=5)
    graph.ok("reset_simulation", scope=4)
    assert set(graph.entities()) == set(PLACES)
    assert truth(server)[1].time == pytest.approx(5 * 0.002)
    assert graph.state() == PAUSED


def test_stopping_takes_away_what_was_spawned(graph: Graph) -> None:
    graph.ok("spawn_entity", **spawn_fields(class_path(graph, "box"), "parcel"))
    graph.set_state(STOPPED)
    assert set(graph.entities()) == set(PLACES)
    graph.ok("spawn_entity", **spawn_fields(class_path(graph, "box"), "parcel", initial_pose=stamped((0, 0, 4))))
    assert numbers(graph.where("parcel").pose.position) == (0, 0, 4)
    graph.set_state(PAUSED)
    assert "parcel" in graph.entities()


def test_a_fixed_robot_is_spawned_with_its_root_at_the_pose(server: Server, graph: Graph, project: Path) -> None:
    graph.set_state(PAUSED)
    graph.ok(
        "spawn_entity", **spawn_fields(str(project / "Levels" / "post.xml"), "stake", initial_pose=stamped((5, 5, 2)))
    )
    _, data = truth(server)
    assert data.body("post_pole").xpos.tolist() == pytest.approx([5, 5, 2])
    assert data.body("post_pole").xquat.tolist() == pytest.approx([1, 0, 0, 0])
    assert graph.ok("get_entity_info", entity="stake").info.category.category == 1


def class_path(graph: Graph, word: str) -> str:
    found = {one.description: one for one in graph.ok("get_spawnables").spawnables}
    one = found[word]
    return str(one.entity_resource.uri if GENERATION.has_resource else one.uri)


def test_names_are_unique(graph: Graph) -> None:
    graph.set_state(PAUSED)
    box = class_path(graph, "box")
    assert graph.refused("spawn_entity", **spawn_fields(box, "rover"))[0] == 101
    assert graph.refused("spawn_entity", **spawn_fields(box, "rover_0"))[0] == 101
    assert graph.refused("spawn_entity", **spawn_fields(box))[0] == 102
    assert graph.refused("spawn_entity", **spawn_fields(box, "two words"))[0] == 102
    assert graph.ok("spawn_entity", **spawn_fields(box, "rover", allow_renaming=True)).entity_name == "rover_2"
    assert graph.ok("spawn_entity", **spawn_fields("box", allow_renaming=True)).entity_name == "box_2"


def test_what_cannot_be_spawned_is_told_with_what_can(graph: Graph, tmp_path: Path, server: Server) -> None:
    graph.set_state(PAUSED)
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody><body></mujoco>")
    before = truth(server)[1]

    def told(uri: str, **fields: Any) -> tuple[int, str]:
        return graph.refused("spawn_entity", **spawn_fields(uri, "thing", **fields))

    assert told("")[0] == 104
    assert told("package://robots/arm.urdf")[0] == 103
    assert told("/models/scene.usd")[0] == 103
    assert told(str(tmp_path / "broken.xml"))[0] == 106
    code, text = told("unicorn")
    assert (code, "quadruped" in text) == (NOT_FOUND, True)
    assert told("box", entity_namespace="/left")[0] == UNSUPPORTED
    assert told("box", initial_pose=stamped((0, 0, 0), frame="moon"))[0] == 109
    assert told("box", initial_pose=stamped((0, 0, 0), (0, 0, 0, 0)))[0] == 109
    assert set(graph.entities()) == set(PLACES)
    assert truth(server)[1].qpos.tolist() == before.qpos.tolist()


def test_an_entity_is_deleted_and_all_else_goes_on(server: Server, graph: Graph, driver: URLabClient) -> None:
    driver.step(n_steps=25)
    before = truth(server)[1]
    graph.ok("delete_entity", entity="crate")
    assert set(graph.entities()) == set(PLACES) - {"crate"}
    _, after = truth(server)
    assert after.time == before.time
    assert after.joint("rover_root").qpos.tolist() == before.joint("rover_root").qpos.tolist()
    assert driver.step()["time"] == pytest.approx(before.time + 0.002)
    assert graph.refused("delete_entity", entity="crate")[0] == NOT_FOUND


def test_a_pinned_mode_lets_the_scene_begin_anew_and_says_so(offer: Offer, start: Any) -> None:
    server = start(step_mode="direct")
    graph = offer(port(server))
    graph.ok("step_simulation", steps=10)
    told = graph.ok("spawn_entity", **spawn_fields("box", "parcel"))
    assert "pinned" in told.result.error_message
    assert truth(server)[1].time == 0
    assert "parcel" in graph.entities()


def test_a_scene_that_cannot_be_played_is_changed_back_and_goes_on(server: Server, project: Path) -> None:
    file = project / "Levels" / "slab.xml"
    with OperatorClient("tcp://127.0.0.1", port(server)) as client:
        client.discover()
        client.runtime.set_paused(True)
        client.step(20)
        before = truth(server)[1]
        with pytest.raises(Refused, match="cannot be played with that"):
            change_scene(client, lambda: file.write_text("<mujoco"), undo=lambda: file.write_text(SLAB))
        after = truth(server)[1]
        assert (after.time, after.qpos.tolist()) == (before.time, before.qpos.tolist())
        assert client.sim.status().paused is True


def test_an_operator_s_client_leaves_the_driver_s_setpoints_alone(server: Server, driver: URLabClient) -> None:
    staged = server.play.manager.articulations["rover"].staged
    with OperatorClient("tcp://127.0.0.1", port(server)) as client:
        client.discover()
        driver.articulations["rover"].ctrl_array[:] = 0.6
        driver.step()
        client.step(3)
        assert staged.active.tolist() == [0.6]
        client.articulations["rover"].ctrl_array[:] = 0.2
        client.step(1)
        assert staged.active.tolist() == [0.2]
    assert driver.sim.status().mode == "direct", "an operator gives no mode back, as it asked for none"


def test_no_client_is_an_observer_and_an_operator() -> None:
    with pytest.raises(ValueError, match="not both"):
        URLabClient(observer=True, operator=True)


# -- the server comes and goes ------------------------------------------------------------------------------------


def test_without_a_server_every_service_says_so_in_time(offer: Offer, start: Any) -> None:
    server = start()
    gone = port(server)
    server.close()
    graph = offer(gone)
    begin = time.monotonic()
    for service in ("get_simulation_state", "step_simulation", "get_entities"):
        code, told = graph.refused(service)
        assert (code, "urlab serve" in told) == (FAILED, True)
    assert time.monotonic() - begin < 5
    assert graph.call("get_simulator_features").features.features.size


def test_a_server_that_says_nothing_is_given_up(offer: Offer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urlab.ros2.services.operating._PATIENCE_MS", 100)
    monkeypatch.setattr("urlab_client.rpc.GRACE_MS", 100)
    monkeypatch.setitem(CATALOGUE, "hello", msgspec.structs.replace(CATALOGUE["hello"], limit_s=0.1))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        graph = offer(mute.getsockname()[1])
        code, told = graph.refused("get_simulation_state")
    assert (code, "does not answer" in told) == (FAILED, True)


def test_a_server_that_is_restarted_is_joined_again(offer: Offer, start: Any) -> None:
    server = start()
    ports = replace(Ports.any(), step=port(server))
    graph = offer(ports.step)
    assert graph.state() == PLAYING
    server.close()
    assert graph.refused("get_simulation_state")[0] == FAILED
    start(ports=ports)
    assert graph.state() == PLAYING
    assert graph.set_state(PAUSED).result == OK


# -- what is offered ----------------------------------------------------------------------------------------------


def test_the_features_are_those_that_work(graph: Graph) -> None:
    told = graph.call("get_simulator_features").features
    assert told.features.tolist() == [0, 1, 4, 5, 6, 8, 10, 11, 12, 14, 20, 21, 22, 23, 24, 25, 26, 31, 32]
    assert {"mjcf", "urdf"} <= set(told.spawn_formats)


def test_a_request_that_is_no_message_gets_an_answer(server: Server, offer: Offer) -> None:
    graph = offer(port(server))
    reply = graph._node.exchange("get_entity_state", b"\x00\x01\x00\x00\xff\xff\xff\xff")
    told = messages.deserialise(reply, f"{TYPES['get_entity_state']}_Response").result
    assert told.result == FAILED


def test_where_ros_lacks_the_package_there_are_no_services(
    stand_in: None, domain: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    monkeypatch.setitem(sys.modules, f"{PACKAGE}.srv", None)
    backend = RclpyBackend(domain=domain)
    services = SimulationServices(backend, "tcp://127.0.0.1", 1)
    assert services.names == []
    assert "apt install ros-$ROS_DISTRO-simulation-interfaces" in caplog.text
    services.close()
    backend.close()


@pytest.mark.parametrize("wanted", [True, False])
def test_the_list_of_the_command_names_the_services(server: Server, wanted: bool) -> None:
    rows = listing(Settings(step_port=port(server), services=wanted))
    served = {row["topic"]: row["type"] for row in rows if row["direction"] == "served"}
    assert served == ({f"/{name}": kind for name, kind in TYPES.items()} if wanted else {})
    assert {"topic": "/clock", "type": "rosgraph_msgs/msg/Clock", "direction": "published"} in rows


# -- in the bridge ------------------------------------------------------------------------------------------------


def test_the_bridge_tells_of_what_was_spawned(server: Server, domain: int, wait_until: Any) -> None:
    backend, node = DdsBackend(domain=domain), CycloneClient(domain)
    bridge = Bridge(backend, Settings(step_port=port(server), choice=Choice()))
    thread = threading.Thread(target=bridge.run)
    thread.start()
    try:
        wait_until(lambda: bridge.is_ready)
        ticks: list[Any] = []
        node.listen("/clock", "rosgraph_msgs/msg/Clock", ticks)
        wait_until(lambda: len(ticks) > 20)
        Graph(node).ok("spawn_entity", **spawn_fields("box", "parcel"))
        wait_until(lambda: "/entities/box/pose" in bridge.look())
        count = len(ticks)
        wait_until(lambda: len(ticks) > count + 20)
    finally:
        bridge.stop()
        thread.join(PATIENCE_S)
        node.close()
        backend.close()
    assert not thread.is_alive()
    times = [one.clock.sec * 10**9 + one.clock.nanosec for one in ticks]
    assert times == sorted(times), "the clock goes on"


# -- types --------------------------------------------------------------------------------------------------------

HASHES = {
    "msg/Result": "cf43a306adff3337a0a47143d8f5689933bc70a30478f13b077dc1fe3bc5ad17",
    "msg/Bounds": "e8624fe51f0f5548197542697d924c5699ac7198f1e4c68e50c3ca2af73f5b3f",
    "msg/EntityFilters": "8e7b12e8ea062f14c55de4877221fe1b7cd9749665a7ad8a4ab855fc4b148303",
    "msg/TagsFilter": "5c3efc51e8ed04c266c09cb4691ec95b964cd410558e01d8c83646b038826b45",
    "srv/GetEntities_Request": "f0a4c6c0c39c87f84cbd1ea31956b9f39b3fa538ae9c4aa7fc243a32360e8c70",
    "srv/GetEntities_Response": "dd1916edbdc659d355e77980b16ed6eb4d41d5ff445557931ed65c58b00f7b2c",
    "srv/SpawnEntity_Response": "be8c9fc03b6faaf95570949c80195c8ca75dd99f7efc23262309d497b2923982",
    "srv/GetSpawnables_Request": "3e1d1577446a80da956db3e82363c2d66364f9802f6e9572d89497933207d921",
}
"""As rosidl writes them into the code that it makes from the package."""


@pytest.mark.parametrize("name", HASHES)
def test_type_hashes_are_those_of_ros(name: str) -> None:
    assert messages.type_hash(f"{PACKAGE}/{name}") == f"RIHS01_{HASHES[name]}"


LATER = {
    "msg/Spawnable": "8675aa686f0df1ed7874a6ec210fdce1ac1c07f4e49fc26ec7fb6fe729f6772e",
    "srv/SpawnEntity_Request": "9bc04fe30d4844466c57b7b090fd7e9aa426995f3eb6ff9a726826ab7223e1fd",
}


def test_later_distributions_have_the_later_types(tmp_path: Path) -> None:
    code = (
        "from urlab.ros2 import messages, simulation_messages as s\n"
        f"hashes = [messages.type_hash(s.PACKAGE + '/' + name) for name in {list(LATER)}]\n"
        "print(s.GENERATION == s.Generation(True, True), *hashes)"
    )
    environment = {**os.environ, "ROS_DISTRO": "rolling"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", *(f"RIHS01_{one}" for one in LATER.values())]


def test_every_type_survives_the_wire() -> None:
    for text in definitions(Generation(True, True)), definitions(Generation(False, False)):
        assert len(text) == 11 + len(SERVICES)
    kinds = [name for name in messages.typestore.types if name.startswith(f"{PACKAGE}/")]
    wires = {name: messages.serialise(messages.make(name), name) for name in kinds}
    again = {name: messages.serialise(messages.deserialise(wire, name), name) for name, wire in wires.items()}
    assert again == wires
    assert len(kinds) == 11 + 2 * len(SERVICES)
