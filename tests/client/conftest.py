"""A peer for the client: a scripted server, and the handshake of a small scene."""

import copy
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
import zmq

from urlab_client import InProcessTransport, URLabClient
from urlab_wire.codec import decode, encode
from urlab_wire.envelope import ok_op

PATIENCE_S = 30.0

SCENE_XML = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="arm_base">
      <joint name="arm_waist" axis="0 0 1" range="-3 3" limited="true"/><geom name="arm_g0" size=".1"/>
      <body name="arm_hand" pos="0 0 .5"><joint name="arm_elbow_joint" axis="0 1 0"/><geom size=".1"/></body>
    </body>
    <body name="dog_trunk" pos="2 0 1">
      <freejoint name="dog_root"/><geom size=".1"/>
      <body name="dog_leg" pos="0 0 -.3"><joint name="dog_hip" axis="0 1 0"/><geom size=".05"/></body>
    </body>
    <body name="box" pos="0 3 1"><freejoint name="box_free"/><geom type="box" size=".1 .1 .1"/></body>
    <body name="shelf" pos="0 -3 1"><geom type="box" size=".1 .1 .1"/></body>
    <body name="target" mocap="true" pos="1 1 1"><geom size=".05" contype="0" conaffinity="0"/></body>
  </worldbody>
  <actuator>
    <position name="arm_waist" joint="arm_waist" kp="100" ctrlrange="-1 1"/>
    <motor name="arm_elbow" joint="arm_elbow_joint"/>
    <general name="dog_hip" joint="dog_hip" dyntype="filter" dynprm=".1" gainprm="2"/>
  </actuator>
  <sensor>
    <jointpos name="arm_waist_pos" joint="arm_waist"/>
    <framepos name="arm_tip" objtype="body" objname="arm_hand"/>
  </sensor>
</mujoco>
"""

PD = {
    "kind": "pd",
    "params": {
        "kp": {"waist": 300.0, "elbow_joint": 280.0},
        "kv": {"waist": 20.0, "elbow_joint": 18.0},
        "torque_limit": {"waist": 35.0, "elbow_joint": 45.0},
        "default_kp": 100.0,
        "default_kv": 5.0,
        "default_torque_limit": 200.0,
    },
    "schema": {
        **{name: {"type": "per_joint", "dtype": "float32", "min": 0} for name in ("kp", "kv", "torque_limit")},
        **{f"default_{name}": {"type": "scalar", "min": 0} for name in ("kp", "kv", "torque_limit")},
    },
}


class ScriptedServer:
    """Answers each op with what ``replies`` says: a map, or a function of the request. Keeps all requests."""

    def __init__(self, replies: dict[str, Any]) -> None:
        self.replies = replies
        self.received: list[dict[str, Any]] = []

    def handle(self, frame: bytes) -> bytes:
        request = decode(frame)
        self.received.append(request)
        reply = self.replies.get(request["op"], {})
        answer = reply(request) if callable(reply) else reply
        return encode({"op": ok_op(request["op"]), **answer})

    def ops(self) -> list[str]:
        return [request["op"] for request in self.received]

    def last(self, op: str) -> dict[str, Any]:
        return next(request for request in reversed(self.received) if request["op"] == op)


def refusal(code: str, message: str = "no") -> dict[str, str]:
    """An error reply, as an entry of ``ScriptedServer.replies``."""
    return {"op": "error", "code": code, "message": message}


def save_mjb(model: Any) -> bytes:
    buffer = np.zeros(mujoco.mj_sizeModel(model), dtype=np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


@pytest.fixture(scope="session")
def scene_model() -> Any:
    return mujoco.MjModel.from_xml_string(SCENE_XML)


@pytest.fixture
def handshake(scene_model: Any) -> dict[str, Any]:
    """hello_ok of the scene: two robots, a free box, a fixed shelf and a mocap target."""
    no_names = {"actuators": {}, "joints": {}, "sensors": {}, "bodies": {}}
    camera = {"mode": "real", "resolution": [2, 1], "fovy": 45.0, "zmq_endpoint": None, "zmq_topic": None}
    arm = {
        "prefix": "arm", "actor_id": "robot_0", "default_control_mode": "ue_controller", "controller": PD,
        "actuator_types": {"waist": "position", "elbow": "motor"},
        "original_names": {**no_names, "joints": {"waist": "base_rotation"}},
        "camera_topics": {"wrist": camera, "eye": {**camera, "mode": "depth"}},
    }  # fmt: skip
    dog = {
        "prefix": "dog", "actor_id": "", "default_control_mode": "raw", "actuator_types": {"hip": "general"},
        "original_names": no_names, "camera_topics": {"eye": camera},
    }  # fmt: skip
    box = {"has_free_base": True, "free_joint": "box_free", "free_joint_id": 4, "qpos_offset": 10, "qvel_offset": 9}
    entities = {
        "box": {"id": scene_model.body("box").id, **box},
        "shelf": {"id": scene_model.body("shelf").id, "has_free_base": False},
        "target": {"id": scene_model.body("target").id, "has_free_base": False},
    }
    return copy.deepcopy({
        "op": "hello_ok", "session_id": "11111111-2222", "urlab_version": "urlab/9", "manager_present": True,
        "mujoco_version": mujoco.__version__, "mujoco_version_int": mujoco.mj_version(),
        "mjb": save_mjb(scene_model), "articulations": [arm, dog], "entities": entities,
        "global_cameras": {"room": camera},
    })  # fmt: skip


@pytest.fixture
def state_reply() -> dict[str, Any]:
    """A step reply of the scene at level standard, with recognisable numbers."""
    return {
        "time": 0.5, "step": 25, "sim_time": {"sec": 0, "nsec": 500_000_000}, "wall_time": {"sec": 7, "nsec": 8},
        "per_articulation": {
            "arm": {
                "qpos": [0.7, -0.3], "qvel": [0.1, 0.2], "ctrl": [0.4, 0.6], "act": [0.0, 0.0],
                "sensors": {"waist_pos": [0.7], "tip": [1.0, 2.0, 3.0]},
                "twist": {"linear": [0.5, -0.25, 0.0], "angular": [0.0, 0.0, 0.7]}, "actions": 5,
            },
            "dog": {
                "qpos": [2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.2], "qvel": [1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 0.0],
                "ctrl": [0.9], "act": [0.25], "sensors": {},
            },
        },
        "entities": {
            "box": {
                "qpos": [0.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0], "qvel": [0.0, 0.0, -1.0, 0.0, 0.0, 0.0],
                "xpos": [0.0, 3.0, 2.0], "xquat": [1.0, 0.0, 0.0, 0.0],
            },
            "shelf": {"xpos": [5.0, 6.0, 7.0], "xquat": [0.0, 1.0, 0.0, 0.0]},
            "target": {"xpos": [0.5, 0.5, 0.5], "xquat": [1.0, 0.0, 0.0, 0.0]},
        },
    }  # fmt: skip


@pytest.fixture
def server(handshake: dict[str, Any], state_reply: dict[str, Any]) -> ScriptedServer:
    return ScriptedServer({
        "hello": handshake, "meta": {"ops": []}, "step": state_reply, "reset": {**state_reply, "step": 0},
        "forward": state_reply, "set_mode": lambda request: {"current_mode": request["mode"]},
    })  # fmt: skip


@pytest.fixture
def make_client(server: ScriptedServer) -> Iterator[Callable[..., URLabClient]]:
    made: list[URLabClient] = []

    def make(**options: Any) -> URLabClient:
        made.append(URLabClient(transport=InProcessTransport(server.handle), **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: Callable[..., URLabClient]) -> URLabClient:
    """A client in direct mode that has discovered the scene."""
    made = make_client(step_mode="direct")
    made.discover()
    return made


def bind(socket: "zmq.Socket[bytes]", endpoint: str) -> None:
    """Take an endpoint; ZeroMQ lets go of the port of a closed socket a little later."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as taken:
            if taken.errno != zmq.EADDRINUSE or time.monotonic() > deadline_s:
                socket.close()
                raise
            time.sleep(0.01)
        else:
            return


class ZmqPeer:
    """A REP socket on its own thread that answers with a function of the frame, until closed."""

    def __init__(self, handle: Callable[[bytes], bytes | None], endpoint: str = "tcp://127.0.0.1:*") -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        bind(self._socket, endpoint)
        self.endpoint = self._socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        self.port = int(self.endpoint.rpartition(":")[2]) if self.endpoint.startswith("tcp") else 0
        self._handle = handle
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            if self._socket.poll(20):
                sender, empty, frame = self._socket.recv_multipart()
                answer = self._handle(frame)
                if answer is not None:
                    self._socket.send_multipart([sender, empty, answer])

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._socket.close()


@pytest.fixture
def zmq_peer() -> Iterator[Callable[..., ZmqPeer]]:
    made: list[ZmqPeer] = []

    def make(*args: Any) -> ZmqPeer:
        made.append(ZmqPeer(*args))
        return made[-1]

    yield make
    for peer in made:
        peer.close()


class Publisher:
    """A publishing socket as a server has it; it learns of subscribers."""

    def __init__(self, endpoint: str = "tcp://127.0.0.1:*") -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.XPUB)
        self.socket.setsockopt(zmq.LINGER, 0)
        bind(self.socket, endpoint)
        self.endpoint = self.socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
        self.port = int(self.endpoint.rpartition(":")[2])

    def await_word(self) -> bytes:
        """The next subscription (first byte 1) or the end of one (first byte 0)."""
        assert self.socket.poll(1000 * PATIENCE_S), "no peer came or went"
        return self.socket.recv()

    def await_subscribers(self, n_topics: int) -> set[bytes]:
        """The topics of that many new subscriptions; ends of old ones are passed over."""
        topics: set[bytes] = set()
        while len(topics) < n_topics:
            word = self.await_word()
            topics |= {word[1:]} if word[0] else set()
        return topics

    def send(self, topic: str, payload: bytes) -> None:
        self.socket.send_multipart([topic.encode(), payload])

    def show(self, topic: str, pixels: bytes, **meta: Any) -> None:
        """One picture of a camera, described if there is something to tell."""
        if meta:
            self.send(f"meta/{topic}", encode(meta))
        self.send(f"{topic} ", pixels)

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def publish() -> Iterator[Callable[..., Publisher]]:
    """Makes publishers, at any free port or at an endpoint."""
    made: list[Publisher] = []

    def make(*args: Any) -> Publisher:
        made.append(Publisher(*args))
        return made[-1]

    yield make
    for publisher in made:
        publisher.close()


@pytest.fixture
def refuse() -> Callable[..., dict[str, str]]:
    return refusal
