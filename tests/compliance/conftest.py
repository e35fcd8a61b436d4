"""A server with a small project, and a wire client that shares no code with it.

A test that takes ``wire`` runs in process. Under the marker ``every_transport`` it runs once per transport (not with
``--fast``): where the frames on the way matter, or who waits for whom. Another transport is one more entry of
``TRANSPORTS``.
"""

import contextlib
import json
import mmap
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_origin

import msgpack
import msgspec
import mujoco
import numpy as np
import pytest
import zmq

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.physics.options import read_options
from urlab_wire import CATALOGUE
from urlab_wire.enums import ControlSource

Send = Callable[[bytes], bytes]

PROJECT = Path(__file__).parent / "project"
"""Small models, and levels of them; ``arena`` has a bit of everything."""


class Wire:
    """A client that speaks frames. It remembers its session and asks in msgpack, unless ``json`` is set."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.session_id: str | None = None
        self.json = False

    def exchange(self, message: Any) -> Any:
        """Send a message as it is; decode the reply by its first byte."""
        frame = json.dumps(message).encode() if self.json else msgpack.packb(message)
        return self.decode(self.send(frame))

    @staticmethod
    def decode(frame: bytes) -> Any:
        return json.loads(frame) if frame[:1] == b"{" else msgpack.unpackb(frame)

    def ask(self, op: str, **fields: Any) -> Any:
        """The reply to a request of this session, whatever it is."""
        return self.exchange({"op": op, "session_id": self.session_id, **fields})

    def ok(self, op: str, **fields: Any) -> Any:
        """The reply to a request that must succeed."""
        reply = self.ask(op, **fields)
        assert reply["op"] == f"{op}_ok", reply
        return reply

    def refused(self, op: str, **fields: Any) -> str:
        """The code of a request that must fail."""
        reply = self.ask(op, **fields)
        assert reply["op"] == "error", reply
        assert reply["message"], reply
        return str(reply["code"])

    def hello(self, **fields: Any) -> Any:
        """Open a session."""
        reply = self.ok("hello", **fields)
        self.session_id = reply["session_id"]
        return reply

    def play(self, level: str, mode: str | None = "direct") -> Any:
        """A fresh play of a level, in a mode; returns its handshake."""
        reply = self.ok("begin_pie", level_path=level)
        assert reply["state"] == "ready", reply
        if mode is not None:
            self.ok("set_mode", mode=mode)
        return reply["handshake_payload"]


@contextlib.contextmanager
def _inprocess(server: Server) -> Iterator[Send]:
    yield server.dispatcher.handle


@contextlib.contextmanager
def _zmq(server: Server) -> Iterator[Send]:
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RCVTIMEO, 60_000)
        socket.connect(server.endpoints()["step"])

        def send(frame: bytes) -> bytes:
            socket.send(frame)
            return socket.recv()

        yield send


@contextlib.contextmanager
def _shm(server: Server) -> Iterator[Send]:
    """As a client does that was written from the layout alone: it polls; what is too large goes over ZeroMQ."""
    folder = server.shm_folder
    assert folder is not None
    with _mapped(folder / "req.shm") as requests, _mapped(folder / "rep.shm") as replies, _zmq(server) as over_zmq:

        def send(frame: bytes) -> bytes:
            if len(frame) + 4 > struct.unpack_from("<I", requests, 8)[0] or not frame:
                return over_zmq(frame)
            seen = struct.unpack_from("<Q", replies, 16)[0]
            _write_slot(requests, frame)
            reply = _wait_for_slot(replies, seen)
            return over_zmq(frame) if b"reply_too_large" in reply[:100] else reply

        yield send


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        assert struct.unpack_from("<II", memory, 0) == (0x424C5255, 1)
        yield memory


def _write_slot(memory: mmap.mmap, payload: bytes) -> None:
    stride, slots, sequence, latest = struct.unpack_from("<IIQI", memory, 8)
    target = (latest + 1) % slots
    start = 64 + target * stride
    struct.pack_into("<I", memory, start, len(payload))
    memory[start + 4 : start + 4 + len(payload)] = payload
    struct.pack_into("<I", memory, 24, target)
    struct.pack_into("<Q", memory, 16, sequence + 1)


def _wait_for_slot(memory: mmap.mmap, seen: int) -> bytes:
    deadline = time.monotonic() + 60
    while struct.unpack_from("<Q", memory, 16)[0] == seen:
        assert time.monotonic() < deadline, "no reply"
        time.sleep(0.0001)
    stride, _, _, latest = struct.unpack_from("<IIQI", memory, 8)
    start = 64 + latest * stride
    return memory[start + 4 : start + 4 + struct.unpack_from("<I", memory, start)[0]]


TRANSPORTS: dict[str, Any] = {"inprocess": _inprocess, "shm": _shm, "zmq": _zmq}


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that a server may write to."""
    return Path(shutil.copytree(PROJECT, tmp_path_factory.mktemp("compliance") / "project"))


@pytest.fixture(scope="session")
def server(project: Path) -> Iterator[Server]:
    """The shared server. Each ``wire`` begins with a fresh play of ``arena``."""
    server = Server(ServerConfig(project=project, ports=Ports.any()), ["arena"])
    server.begin()
    server.open_sockets()
    yield server
    server.close()


@pytest.fixture
def make_server(project: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers of a test's own: fields of ServerConfig."""
    with contextlib.ExitStack() as stack:

        def make(level: str = "arena", **options: Any) -> Server:
            server = Server(ServerConfig(**{"project": project, "ports": Ports.any(), **options}), [level])
            stack.callback(server.close)
            server.begin()
            server.open_sockets()
            return server

        yield make


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """In process, or on every transport."""
    if "transport" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("every_transport") is not None
        everywhere = marked and not metafunc.config.getoption("--fast")
        metafunc.parametrize("transport", sorted(TRANSPORTS) if everywhere else ["inprocess"], indirect=True)


@pytest.fixture
def transport(request: pytest.FixtureRequest) -> Any:
    """A context manager: server -> send."""
    return TRANSPORTS[request.param]


@pytest.fixture
def connect(transport: Any) -> Iterator[Callable[[Server], Wire]]:
    """Makes clients without a session."""
    with contextlib.ExitStack() as stack:
        yield lambda server: Wire(stack.enter_context(transport(server)))


@pytest.fixture
def connect_over(server: Server) -> Iterator[Callable[[str], Wire]]:
    """Makes clients of the shared server over a transport of one's choice, by name."""
    with contextlib.ExitStack() as stack:
        yield lambda name: Wire(stack.enter_context(TRANSPORTS[name](server)))


@pytest.fixture
def stranger(server: Server, connect: Callable[[Server], Wire]) -> Wire:
    """A client of the shared server that has not said hello."""
    return connect(server)


def _restore_levels(folder: Path) -> None:
    """Whatever a test has saved over them, or deleted: the levels of the shared project are as they were."""
    for original in (PROJECT / "Levels").iterdir():
        copy, content = folder / original.name, original.read_bytes()
        if original.is_file() and (not copy.is_file() or copy.read_bytes() != content):
            copy.unlink(missing_ok=True)
            copy.write_bytes(content)


@pytest.fixture
def wire(server: Server, connect: Callable[[Server], Wire]) -> Wire:
    """A client with a session, and a fresh play of ``arena`` in direct mode."""
    _restore_levels(server.project.levels_dir)
    wire = connect(server)
    wire.hello(observations="standard")
    if wire.ask("set_mode", mode="direct")["op"] == "error":
        wire.play("arena")
    wire.play("arena")  # begins in direct mode, since that was asked for last
    return wire


class Plain:
    """MuJoCo alone, on the model that a handshake carried: what the server must agree with."""

    def __init__(self, mjb: bytes) -> None:
        with tempfile.NamedTemporaryFile(suffix=".mjb") as file:
            file.write(mjb)
            file.flush()
            self.model = mujoco.MjModel.from_binary_path(file.name)
        self.data = mujoco.MjData(self.model)

    def step(self, n: int = 1) -> None:
        for _ in range(n):
            mujoco.mj_step(self.model, self.data)

    def forward(self) -> None:
        mujoco.mj_forward(self.model, self.data)

    def state(self) -> Any:
        spec = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(self.model, spec))
        mujoco.mj_getState(self.model, self.data, state, spec)
        return state


@pytest.fixture
def plain() -> type[Plain]:
    return Plain


@pytest.fixture
def engine(server: Server) -> Callable[[], Any]:
    """The engine of the running play of the shared server."""
    return lambda: server.play.manager.engine


@pytest.fixture
def world(server: Server, full_state: Callable[[Any], Any]) -> Callable[[], Any]:
    """Everything that a refused request must leave alone, as a value that can be compared."""

    def look() -> Any:
        manager = server.play.manager
        with manager.engine.locked():
            robots = {
                prefix: (
                    {source: robot.staged.staged(source).tolist() for source in ControlSource},
                    robot.staged.source,
                    robot.bypass_controller,
                    robot.controller and robot.controller.params(),
                    robot.twist and vars(robot.twist).copy(),
                )
                for prefix, robot in manager.articulations.items()
            }
            options = read_options(manager.engine.model.opt)
            running = (manager.mode, manager.loop.paused, manager.loop.speed_percent, manager.counter.total)
            edited = (server.world.level, server.world.selected)
            return full_state(manager.engine).tolist(), robots, options, running, manager.record_replay.names(), edited

    return look


SAMPLES: dict[str, dict[str, Any]] = {
    "set_mode": {"mode": "direct"},
    "set_control_source": {"source": "zmq"},
    "set_twist": {"articulation": "walker"},
    "set_qpos": {"qpos": [0.1, 0.2]},
    "set_mocap_pose": {"body": "goal", "pos": [0, 0, 1]},
    "read_mocap_pose": {"body": "goal"},
    "configure_controller": {"articulation": "walker"},
    "set_sim_options": {"options": {}},
    "replay_load": {"path": "nothing.json"},
    "upload_asset": {"name": "cup.obj", "data": b"v 0 0 0"},
    "blueprint_picture": {"blueprint_path": "box"},
    "replay_set_active": {"name": "nothing"},
}
_BY_TYPE: dict[Any, Any] = {str: "arm_0", bool: False, int: 1, float: 50.0, list: [0, 0, 0], dict: {}, bytes: b"arm"}
_BY_TYPE[UnionType] = {}  # of a field that takes names, or one word for all of them


def _kind(annotation: Any) -> Any:
    """The plain type of a field; that of one with limits is the same."""
    origin = get_origin(annotation)
    return _kind(annotation.__origin__) if origin is Annotated else origin or annotation


@pytest.fixture(scope="session")
def sample() -> Callable[[str], dict[str, Any]]:
    """Fields that make a request of an op well formed."""

    def of(op: str) -> dict[str, Any]:
        fields = msgspec.structs.fields(CATALOGUE[op].request)
        wanted = {one.encode_name: _BY_TYPE[_kind(one.type)] for one in fields if one.required}
        return wanted | SAMPLES.get(op, {})

    return of


ROBOT = """
<mujoco model="hopper"><worldbody>
  <body name="foot" pos="0 0 .5"><joint name="up" type="slide" axis="0 0 1"/><geom size=".1 .2 .3" type="box"/>
    <body name="toe" pos=".2 0 0"><joint name="bend"/><geom size=".05"/><camera name="eye"/></body></body></worldbody>
  <actuator><motor name="push" joint="up"/></actuator>
  <sensor><jointpos name="height" joint="up"/></sensor>
  <keyframe><key name="raised" qpos="1 0"/></keyframe></mujoco>"""
BOX = """
<mujoco model="crate"><worldbody><body name="box" pos="0 0 .1"><freejoint/>
  <geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>"""


CUBE = """v -.1 -.1 -.1
v .1 -.1 -.1
v -.1 .1 -.1
v .1 .1 -.1
v -.1 -.1 .1
v .1 -.1 .1
v -.1 .1 .1
v .1 .1 .1
f 1 3 4
f 1 4 2
f 5 6 8
f 5 8 7
f 1 2 6
f 1 6 5
f 3 7 8
f 3 8 4
f 1 5 7
f 1 7 3
f 2 4 8
f 2 8 6
"""


SEER = """
<mujoco model="seer"><worldbody>
  <body name="head" pos="0 0 1"><joint name="nod" axis="0 1 0"/><geom size=".01" mass="1" contype="0" conaffinity="0"/>
    <camera name="eye" xyaxes="0 -1 0 0 0 1" fovy="60" resolution="80 60"/>
    <camera name="far" pos="-1 0 0" xyaxes="0 -1 0 0 0 1" fovy="60" resolution="40 30"/></body></worldbody>
  <actuator><position name="neck" joint="nod" kp="10" dampratio="1"/></actuator></mujoco>"""
SLIDER = """
<mujoco model="slider"><option gravity="0 0 0"/><worldbody>
  <camera name="eye" pos="-1 0 0" xyaxes="0 -1 0 0 0 1" fovy="60" resolution="64 48"/>
  <body name="ball"><joint name="left" type="slide" axis="0 1 0"/>
    <geom size=".15" rgba="1 0 0 1" mass="1"/></body></worldbody>
  <actuator><motor name="push" joint="left"/></actuator></mujoco>"""
WALL = """
<mujoco model="wall"><worldbody><body name="brick"><geom type="box" size=".05 .2 .1" rgba="1 0 0 1"/></body></worldbody>
</mujoco>"""


class Builder:
    """A client that builds a world: in the editor, with an empty project and model files to import."""

    def __init__(self, wire: Wire, server: Server, folder: Path, imported: Path) -> None:
        self.wire, self.server, self.folder = wire, server, folder
        self.project = server.project.folder
        self.robot_file = str(imported / "hopper.xml")
        self.box_file = str(imported / "crate.xml")
        self.cube_file = str(imported / "cube.obj")
        self.seer_file = str(imported / "seer.xml")
        self.wall_file = str(imported / "wall.xml")
        self.slider_file = str(imported / "slider.xml")

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def own(self, path: str) -> str:
        """A copy of a model file that the test may do with as it likes."""
        return self.write(f"own_{Path(path).name}", Path(path).read_text(encoding="utf-8"))

    def import_file(self, path: str) -> str:
        """Import; the class path."""
        return str(self.wire.ok("import_xml", path=path)["blueprint_class_path"])

    def spawn(self, actor_id: str, path: str | None = None, **fields: Any) -> Any:
        """Import and spawn the robot, or another file."""
        return self.wire.ok(
            "spawn_actor", blueprint=self.import_file(path or self.robot_file), actor_id=actor_id, **fields
        )

    def play(self) -> Any:
        """Play what is edited; the handshake."""
        self.wire.ok("stop_pie")
        reply = self.wire.ok("begin_pie", step_mode="direct")
        assert reply["state"] == "ready", reply
        return reply["handshake_payload"]

    def actors(self) -> dict[str, Any]:
        """The rows of the outliner by actor_id, or by name where there is none."""
        return {row["actor_id"] or row["name"]: row for row in self.wire.ok("list_actors")["actors"]}


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model files, and a project that has them already: importing takes a process each."""
    folder = tmp_path_factory.mktemp("imported")
    server = Server(ServerConfig(project=folder / "project", play=False))
    files = {
        "hopper.xml": ROBOT, "crate.xml": BOX, "cube.obj": CUBE,
        "seer.xml": SEER, "slider.xml": SLIDER, "wall.xml": WALL,
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        server.world.importer.import_file(str(folder / name))
    server.close()
    return folder


@pytest.fixture
def builder(tmp_path: Path, imported: Path, connect: Callable[[Server], Wire]) -> Iterator[Builder]:
    """In a fresh level called ``lab``; nothing plays."""
    shutil.copytree(imported / "project", tmp_path / "project")
    config = ServerConfig(project=tmp_path / "project", ports=Ports.any(), play=False)
    server = Server(config)
    server.begin()
    server.open_sockets()
    wire = connect(server)
    wire.hello()
    wire.ok("create_level", name="lab")
    yield Builder(wire, server, tmp_path / "models", imported)
    server.close()
