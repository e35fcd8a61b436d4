"""Streams out of shared memory: sources that a test writes, and the streams of real servers."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.transport.shm.sealed import OwnedRegion
from urlab_client import URLabClient, ZmqTransport
from urlab_client.transports import ShmTransport
from urlab_client.transports.shm_file import Unusable
from urlab_client.transports.shm_streams import CameraRegionSource, RegionStream, StateRegionSource
from urlab_wire.codec import encode
from urlab_wire.shm import STATE_FILE, camera_file, camera_meta_file
from urlab_wire.shm_wait import wake

SEER = """
<mujoco model="seer"><statistic extent="2"/><worldbody>
  <body name="head" pos="0 0 1"><joint name="nod" axis="0 1 0"/><geom size=".3" rgba="1 0 0 1"/>
    <camera name="eye" pos="0 -1 0" xyaxes="1 0 0 0 0 1" resolution="32 24"/>
    <camera name="far" pos="0 -3 0" xyaxes="1 0 0 0 0 1" resolution="16 12"/></body></worldbody>
  <actuator><motor name="neck" joint="nod"/></actuator></mujoco>"""
PATIENCE_S = 30.0


class Inbox:
    """A callback that keeps what it is given, and can be waited for."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self._changed = threading.Condition()

    def __call__(self, *given: Any) -> None:
        with self._changed:
            self.got.append(given)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) >= count, PATIENCE_S), self.got
            return list(self.got)

    def wait_for_newest(self, *given: Any) -> None:
        """Wait until that is the last: a state may come twice, as a stream that is idle opens its file again."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.got[-1:] == [given], PATIENCE_S), self.got


class Files:
    """Regions as a server makes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: dict[str, OwnedRegion] = {}

    def make(self, *names: str, peers_write: bool = False) -> None:
        for name in names:
            self.open[name] = OwnedRegion(self.folder / name, 4096, 4, peers_write=peers_write)

    def write(self, name: str, payload: bytes) -> None:
        self.open[name].region.write(payload)
        wake(self.open[name].region)

    def remove(self) -> None:
        for region in self.open.values():
            region.close()
        self.open.clear()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    yield made
    made.remove()


@pytest.fixture
def stream() -> Iterator[Callable[..., RegionStream]]:
    with contextlib.ExitStack() as stack:

        def start(open_source: Callable[[], Any]) -> RegionStream:
            made = RegionStream("urlab-shm-test", open_source)
            stack.callback(made.stop)
            return made

        yield start


PIXELS, META = camera_file("seer", "eye"), camera_meta_file("seer", "eye")


def show(files: Files, pixels: bytes, **meta: Any) -> None:
    files.write(META, encode(meta))
    files.write(PIXELS, pixels)


# -- sources ------------------------------------------------------------------------------------------------------


def test_snapshots_come_as_they_are_written_and_the_one_that_stands_there_comes_at_once(files: Files, stream: Any):
    files.make(STATE_FILE)
    files.write(STATE_FILE, encode({"step": 1}))
    inbox = Inbox()
    stream(lambda: StateRegionSource(files.folder, inbox))
    inbox.wait_for_newest({"step": 1})
    files.write(STATE_FILE, encode({"step": 2}))
    inbox.wait_for_newest({"step": 2})


def test_a_picture_comes_with_its_description_and_none_from_before(files: Files, stream: Any):
    files.make(META, PIXELS)
    show(files, b"old", frame_id=1)
    inbox = Inbox()
    stream(lambda: CameraRegionSource(files.folder, "seer", "eye", inbox))
    show(files, b"new", frame_id=2)
    assert inbox.wait_for(1) == [(b"new", {"frame_id": 2}, 0)]


def test_of_several_pictures_the_newest_comes_and_the_others_are_counted(files: Files):
    files.make(META, PIXELS)
    release, inbox = threading.Event(), Inbox()

    def slow(*given: Any) -> None:
        inbox(*given)
        assert release.wait(PATIENCE_S)

    running = RegionStream("urlab-shm-test", lambda: CameraRegionSource(files.folder, "seer", "eye", slow))
    show(files, b"1", n=1)
    inbox.wait_for(1)
    for number in (2, 3, 4, 5, 6, 7):
        show(files, b"%d" % number, n=number)
    release.set()
    assert inbox.wait_for(2)[1] == (b"7", {"n": 7}, 5)
    running.stop()


def test_only_what_has_the_same_number_is_paired(files: Files):
    files.make(META, PIXELS)
    inbox = Inbox()
    source = CameraRegionSource(files.folder, "seer", "eye", inbox)
    show(files, b"1", n=1)
    files.write(META, encode({"n": 2}))
    assert source.read(0) is None
    files.write(PIXELS, b"2")
    found = source.read(0)
    assert found is not None
    newest, hand_over = found
    hand_over(0)
    assert (newest, inbox.got) == (2, [(b"2", {"n": 2}, 0)])
    source.close()


def test_a_description_that_never_comes_does_not_keep_pictures_back(files: Files, stream: Any):
    files.make(META, PIXELS)
    inbox = Inbox()
    stream(lambda: CameraRegionSource(files.folder, "seer", "eye", inbox))
    for number in (1, 2):
        files.write(PIXELS, b"%d" % number)
        inbox.wait_for(number)
    assert inbox.got == [(b"1", None, 0), (b"2", None, 0)]


def test_a_server_that_describes_nothing_sends_bare_pixels(files: Files, stream: Any):
    files.make(PIXELS)
    inbox = Inbox()
    stream(lambda: CameraRegionSource(files.folder, "seer", "eye", inbox))
    files.write(PIXELS, b"1")
    assert inbox.wait_for(1) == [(b"1", None, 0)]


def test_a_description_that_cannot_be_read_counts_as_none(files: Files, stream: Any):
    files.make(META, PIXELS)
    inbox = Inbox()
    stream(lambda: CameraRegionSource(files.folder, "seer", "eye", inbox))
    files.write(META, b"\xc1")
    files.write(PIXELS, b"1")
    assert inbox.wait_for(1) == [(b"1", None, 0)]


def test_a_file_that_is_missing_is_told_and_leaves_nothing_open(files: Files):
    files.make(META)
    with pytest.raises(Unusable, match="No such file"):
        CameraRegionSource(files.folder, "seer", "eye", Inbox())
    with pytest.raises(Unusable, match=STATE_FILE):
        RegionStream("urlab-shm-test", lambda: StateRegionSource(files.folder, Inbox()))
    assert lasting_threads("urlab-shm-test") == []


def test_files_that_are_made_anew_are_opened_anew(files: Files, stream: Any):
    files.make(STATE_FILE)
    inbox = Inbox()
    stream(lambda: StateRegionSource(files.folder, inbox))
    for play in (1, 2):
        files.write(STATE_FILE, encode({"play": play}))
        inbox.wait_for_newest({"play": play})
        files.remove()
        files.make(STATE_FILE)


def test_a_callback_that_fails_does_not_end_the_stream(files: Files, stream: Any, caplog: pytest.LogCaptureFixture):
    files.make(STATE_FILE)
    inbox = Inbox()

    def picky(snapshot: dict[str, Any]) -> None:
        inbox(snapshot)
        if snapshot["step"] == 1:
            raise ValueError("not this one")

    stream(lambda: StateRegionSource(files.folder, picky))
    with caplog.at_level(logging.CRITICAL, "urlab_client.transports.shm_streams"):
        files.write(STATE_FILE, encode({"step": 1}))
        inbox.wait_for_newest({"step": 1})
        files.write(STATE_FILE, encode({"step": 2}))
        inbox.wait_for_newest({"step": 2})


def test_a_stream_can_be_stopped_by_its_own_callback(files: Files):
    files.make(STATE_FILE)
    stopped = threading.Event()

    def stop(_: Any) -> None:
        running.stop()
        stopped.set()

    running = RegionStream("urlab-shm-test", lambda: StateRegionSource(files.folder, stop))
    files.write(STATE_FILE, encode({}))
    assert stopped.wait(PATIENCE_S)
    running.stop()
    assert lasting_threads("urlab-shm-test") == []


def threads_named(*names: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name in names]


def lasting_threads(*names: str) -> list[threading.Thread]:
    """Of the threads of these names those that do not end; a stop waits for them a second only."""
    for thread in threads_named(*names):
        thread.join(PATIENCE_S)
    return threads_named(*names)


# -- a transport --------------------------------------------------------------------------------------------------


def test_without_a_region_it_is_a_stream_over_zeromq_and_back(files: Files, publish: Any, tmp_path: Path):
    publisher, inbox = publish(), Inbox()
    transport = ShmTransport(ZmqTransport("tcp://127.0.0.1:1", state_endpoint=publisher.endpoint), str(tmp_path))
    handshake = {"shm_session_dir": "elsewhere"}
    files.make("req.shm", "rep.shm", peers_write=True)
    transport.absorb_handshake(handshake)
    transport.start_state_stream(inbox)
    transport.start_camera_stream("seer", "eye", publisher.endpoint, "seer/camera/eye", inbox)
    topics = {b"state/full", b"seer/camera/eye", b"meta/seer/camera/eye"}
    assert publisher.await_subscribers(3) == topics
    files.make(STATE_FILE, META, PIXELS)
    transport.start_state_stream(inbox)
    assert publisher.await_word() == b"\0state/full"
    files.write(STATE_FILE, encode({"step": 3}))
    inbox.wait_for_newest({"step": 3})
    transport.close()
    transport.start_state_stream(inbox)
    transport.start_camera_stream("seer", "eye", publisher.endpoint, "seer/camera/eye", inbox)
    assert lasting_threads("urlab-shm-states", "urlab-shm-camera", "urlab-states", "urlab-cameras") == []


# -- real servers -------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    model = tmp_path / "seer.xml"
    model.write_text(SEER, encoding="utf-8")
    server = Server(ServerConfig(project=tmp_path / "project", ports=Ports.any()), [model])
    server.begin()
    server.open_sockets()
    yield server
    server.close()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., URLabClient]]:
    with contextlib.ExitStack() as stack:

        def make(transport: str = "shm", **options: Any) -> URLabClient:
            base, _, port = str(server.endpoints()["step"]).rpartition(":")
            client = stack.enter_context(URLabClient(base, step_port=int(port), transport=transport, **options))
            client.discover()
            return client

        yield make
    lasting_threads("urlab-shm-states", "urlab-shm-camera", "urlab-states", "urlab-cameras")


def await_snapshots(client: URLabClient, more: int) -> None:
    deadline, wanted = time.monotonic() + PATIENCE_S, client._state_msg_count + more
    while client._state_msg_count < wanted:
        assert time.monotonic() < deadline, "no states come"
        client.step()


def test_two_cameras_and_the_state_stream_into_a_live_client(connect: Any):
    client = connect()
    assert len(threads_named("urlab-shm-camera")) == 2
    assert threads_named("urlab-cameras", "urlab-states") == []
    views = client.articulations["seer"].cameras
    for name, shape in (("eye", (24, 32, 4)), ("far", (12, 16, 4))):
        frame = views[name].wait_for_frame(PATIENCE_S, after=0)
        assert frame.shape == shape
        assert views[name].intrinsics is not None
        assert views[name].sim_time is not None
        middle = frame[shape[0] // 2, shape[1] // 2].astype(int)
        assert middle[0] > 2 * max(middle[1], middle[2])
    first = views["eye"].frame_id
    views["eye"].wait_for_frame(PATIENCE_S)
    assert views["eye"].frame_id > first
    await_snapshots(client, 5)
    snapshot = client._latest_state_snapshot
    assert snapshot["op"] == "state_full"
    assert snapshot["time"] > 0


def test_pictures_are_those_that_come_over_zeromq(connect: Any):
    pictures = []
    for transport in ("shm", "zmq"):
        client = connect(transport)
        client.runtime.set_paused(True)
        client.reset()
        view = client.articulations["seer"].cameras["eye"]
        count = view.frame_count
        while view.sim_time != 0.0:
            view.wait_for_frame(PATIENCE_S, after=count)
            count += 1
        pictures.append((view.latest_frame, view.intrinsics, view.pos_w, view.quat_w))
        client.close()
    for over_shm, over_zmq in zip(*pictures, strict=True):
        assert np.array_equal(over_shm, over_zmq)


def test_streams_go_on_when_another_client_starts_another_play(connect: Any, server: Server):
    client = connect(observer=True)
    view = client.articulations["seer"].cameras["eye"]
    view.wait_for_frame(PATIENCE_S, after=0)
    server.play.stop(PATIENCE_S)
    count = view.frame_count
    server.play.begin()
    view.wait_for_frame(PATIENCE_S, after=count)
    await_snapshots(client, 3)


def test_a_camera_whose_region_is_missing_streams_over_zeromq(connect: Any, server: Server):
    folder = Path(connect(step_mode="direct").shm_session_dir)
    (folder / camera_file("seer", "eye")).unlink()
    client = connect(step_mode="live")
    views = client.articulations["seer"].cameras
    for name in ("eye", "far"):
        views[name].wait_for_frame(PATIENCE_S, after=0)
    assert [len(threads_named(name)) for name in ("urlab-shm-camera", "urlab-cameras")] == [1, 1]


def test_several_clients_may_read_the_streams_though_one_has_the_requests(connect: Any):
    first, second = connect(), connect(observer=True)
    for client in (first, second):
        client.articulations["seer"].cameras["far"].wait_for_frame(PATIENCE_S, after=0)
    assert len(threads_named("urlab-shm-camera")) == 4


def test_stepping_listens_to_nothing_and_closing_ends_all_threads(connect: Any, server: Server):
    threads = set(threading.enumerate())
    client = connect()
    client.articulations["seer"].cameras["eye"].wait_for_frame(PATIENCE_S, after=0)
    client.runtime.set_mode("direct")
    assert lasting_threads("urlab-shm-camera", "urlab-shm-states") == []
    client.runtime.set_mode("live")
    client.articulations["seer"].cameras["eye"].wait_for_frame(PATIENCE_S, after=0)
    client.close()
    lasting_threads("urlab-shm-camera", "urlab-shm-states")
    assert {one for one in threading.enumerate() if "urlab-shm" in one.name} <= threads
