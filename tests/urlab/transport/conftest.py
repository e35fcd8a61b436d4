"""A transport around a plain function, streams around a small scene, and sockets to talk to both."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zmq

from urlab.compile import compile_scene
from urlab.compile.library import Library
from urlab.config import Ports
from urlab.manager import Manager, StepCounter, StreamSource
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import file_record
from urlab.scene.level import Actor, Level
from urlab.transport import StreamedCamera, Streams, ZmqRpcServer
from urlab.transport.rpc import RpcLimits
from urlab.transport.streams.publishing import PubSocket
from urlab_wire.enums import RowLayout, StepMode

Handle = Callable[[bytes], bytes]
PATIENCE_S = 30.0
ANY_PORTS = Ports(0, 0, 0, 0, 0)

ARM = """
<mujoco><option gravity="0 0 0"/>
  <worldbody><body name="arm" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping="1"/><geom size=".1" mass="1"/>
    <body pos="0 0 .3"><joint name="elbow" axis="0 1 0" damping="1"/><geom size=".1" mass="1"/></body></body>
  </worldbody>
  <actuator><position name="s" joint="shoulder" kp="20" ctrlrange="-1 1"/><position name="e" joint="elbow" kp="20"/>
  </actuator>
  <sensor><jointpos name="angle" joint="shoulder"/><framepos name="where" objtype="xbody" objname="arm"/></sensor>
</mujoco>"""
BALL = '<mujoco><worldbody><body name="b"><freejoint/><geom size=".1" mass="2"/></body></worldbody></mujoco>'


def cameras_of_robot(*names: str) -> list[StreamedCamera]:
    return [StreamedCamera(name, f"MyRobot/camera/{name}", "MyRobot", name, frame_bytes=1000) for name in names]


@dataclass(frozen=True)
class Call:
    """A frame; one that begins with b"slow" may take long."""

    frame: bytes

    @property
    def takes_long(self) -> bool:
        return self.frame.startswith(b"slow")

    @property
    def pool(self) -> str:
        return "simulation"

    @property
    def key(self) -> None:
        return None

    @property
    def holder(self) -> None:
        return None


@dataclass(frozen=True)
class Service:
    """Answers with a function of the frame."""

    handle: Handle

    def read(self, frame: bytes) -> Call:
        return Call(frame)

    def serve(self, call: Call) -> bytes:
        return self.handle(call.frame)

    serve_now = serve

    def let_go(self, session_id: str) -> None: ...


@pytest.fixture
def serve() -> Iterator[Callable[..., ZmqRpcServer]]:
    """Starts a transport that answers with ``handle``; frames that begin with b"slow" may take long."""
    with contextlib.ExitStack() as stack:

        def start(
            handle: Handle,
            base: str = "tcp://127.0.0.1",
            port: int = 0,
            limits: RpcLimits | None = None,
            *,
            share: bool = False,
        ) -> ZmqRpcServer:
            server = ZmqRpcServer(base, port, Service(handle), limits=limits, share=share)
            stack.callback(server.stop)
            server.start()
            return server

        yield start


@pytest.fixture
def connect() -> Iterator[Callable[..., "zmq.Socket[Any]"]]:
    """Opens client sockets; nothing that they do outlives the test."""
    with zmq.Context() as context, contextlib.ExitStack() as stack:

        def open_socket(endpoint: str, kind: int = zmq.REQ) -> "zmq.Socket[Any]":
            socket = stack.enter_context(context.socket(kind))
            socket.setsockopt(zmq.LINGER, 0)
            socket.setsockopt(zmq.RCVTIMEO, int(1000 * PATIENCE_S))
            socket.connect(endpoint)
            return socket

        yield open_socket


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a Unix socket."""
    with TemporaryDirectory(prefix="u") as folder:
        yield Path(folder)


@pytest.fixture
def wait_until() -> Callable[[Callable[[], Any]], None]:
    """Waits for something that another thread does."""

    def wait(holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "waited too long"
            time.sleep(0.001)

    return wait


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[..., Manager]]:
    """Starts scenes of one robot, ``MyRobot`` with actuators 0 and 1, and a ball; in live mode unless told otherwise.

    With ``paused`` the test is the only one who steps: ``step(manager)``.
    """
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "ball.xml").write_text(BALL)
    actors = (Actor("MyRobot", str(tmp_path / "arm.xml")), Actor("ball", str(tmp_path / "ball.xml")))
    counter = StepCounter()
    with contextlib.ExitStack() as stack:

        def start(mode: StepMode = StepMode.LIVE, *, paused: bool = False) -> Manager:
            scene = compile_scene(Level("yard", actors), Library(file_record))
            manager = Manager(scene, replays_dir=tmp_path, roots=FileRoots(), counter=counter)
            manager.loop.set_paused(paused)
            manager.start(mode)
            stack.callback(manager.stop)
            return manager

        yield start


@pytest.fixture
def step() -> Callable[..., None]:
    """Does what the physics loop does, now: one step, published."""

    def step_and_publish(manager: Manager, times: int = 1) -> None:
        for _ in range(times):
            with manager.engine.locked():
                manager.engine.step_once()
                manager.engine.publish()

    return step_and_publish


@pytest.fixture
def stream(play: Any) -> Iterator[Callable[..., Streams]]:
    """Opens streams of a scene (or, with None, of none yet)."""
    with contextlib.ExitStack() as stack:

        def open_streams(
            manager: Manager | None,
            *,
            layout: RowLayout = RowLayout.V1,
            cameras: tuple[str, ...] = (),
            base: str = "tcp://127.0.0.1",
            ports: Ports = ANY_PORTS,
            share: bool = False,
        ) -> Streams:
            streams = Streams(base, ports, share=share)
            stack.callback(streams.close)
            if manager is not None:
                streams.attach(StreamSource(manager, layout), cameras_of_robot(*cameras))
            return streams

        yield open_streams


@pytest.fixture
def subscribe(connect: Any, wait_until: Any) -> Callable[..., Any]:
    """Subscribes to topics, and returns when the publisher has told of it: subscriptions arrive in their order."""
    numbers = itertools.count()

    def open_subscriber(publisher: Any, *topics: bytes) -> Any:
        """``publisher`` is a publishing socket, or has one."""
        published = publisher if isinstance(publisher, PubSocket) else publisher.socket
        socket = connect(published.endpoint, zmq.SUB)
        probe = b"\xff" + str(next(numbers)).encode()
        for topic in (*topics, probe):
            socket.setsockopt(zmq.SUBSCRIBE, topic)

        def is_known() -> bool:
            socket.poll(0)  # where the first connection was refused, ZeroMQ subscribes again only when it is called
            return probe in published.subscriptions._prefixes

        wait_until(is_known)
        socket.setsockopt(zmq.UNSUBSCRIBE, probe)
        wait_until(lambda: not is_known())  # what came with the probe has been told by then
        return socket

    return open_subscriber
