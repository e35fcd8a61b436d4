"""The state and pictures of a running scene, as a reader of the files finds them."""

import mmap
import threading
from contextlib import contextmanager

import msgpack
import numpy as np
import pytest

from urlab.manager import StreamSource, View
from urlab.transport import StreamedCamera
from urlab.transport.shm.folder import ShmFolder
from urlab.transport.shm.streams import ShmStreams
from urlab_wire.enums import ObservationLevel, StepMode
from urlab_wire.ops.stepping import StepRequest
from urlab_wire.shm import Region

EYE = StreamedCamera("eye", "global/camera/eye", "", "eye", 4 * 8 * 6)
PATIENCE_S = 10.0
MINIMAL = View(ObservationLevel.MINIMAL)


class Shared:
    """A folder, its streams, and an event for each reader that comes or goes."""

    def __init__(self, root):
        self.folder = ShmFolder(root)
        self.streams = ShmStreams(self.folder)
        self._changed = threading.Condition()
        self.streams.on_subscriber = self._note

    def _note(self):
        with self._changed:
            self._changed.notify_all()

    def wait_until(self, condition):
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S)

    @contextmanager
    def reading(self, name):
        with (self.folder.path / name).open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.wait_until(lambda: self.streams._readers.reads(name))
        region = Region(memory)
        yield region
        region.release()
        memory.close()

    def files(self):
        return sorted(one.name for one in self.folder.path.glob("*.shm"))


@pytest.fixture
def shared(tmp_path_factory):
    root = tmp_path_factory.mktemp("shm")
    one = Shared(root)
    yield one
    one.streams.close()
    one.folder.close()
    assert list(root.iterdir()) == []


@pytest.fixture
def direct(play):
    """A small scene, in direct mode, and what it gives to the streams."""
    manager = play(StepMode.DIRECT)
    return manager, StreamSource(manager)


def test_the_state_is_that_of_the_last_step(shared, direct):
    manager, source = direct
    shared.streams.attach(source, [])
    with shared.reading("state.shm") as region:
        for _ in range(3):
            seen = region.sequence
            manager.step(StepRequest(n_steps=2), MINIMAL)
            state = msgpack.unpackb(region.read(seen)[1])
            assert state["op"] == "state_full"
            assert state["time"] == manager.engine.data.time
            robot = next(iter(state["per_articulation"].values()))
            assert robot["qpos"] == manager.engine.data.qpos[: len(robot["qpos"])].tolist()


def test_nothing_is_written_while_nobody_reads_and_a_reader_gets_the_present_state(shared, direct):
    manager, source = direct
    shared.streams.attach(source, [])
    for _ in range(5):
        manager.step(StepRequest(), MINIMAL)
    assert shared.streams._state.region.sequence == 1
    with shared.reading("state.shm") as region:
        shared.wait_until(lambda: region.read(0) is not None)
        sequence, state = region.read(0)
        assert (sequence, msgpack.unpackb(state)["time"]) == (2, manager.engine.data.time)


@pytest.mark.parametrize("change", ["reset", "step"])
def test_a_reader_never_finds_a_state_from_before_the_last_change(shared, direct, change):
    manager, source = direct
    shared.streams.attach(source, [])
    with shared.reading("state.shm"):
        manager.step(StepRequest(n_steps=5), MINIMAL)
    shared.wait_until(lambda: not shared.streams._readers.reads("state.shm"))
    if change == "reset":
        manager.reset(MINIMAL)
    else:
        manager.step(StepRequest(), MINIMAL)
    with manager.engine.locked(), (shared.folder.path / "state.shm").open("rb") as file:
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        region = Region(memory)
        assert region.read(0) is None, "before the server could write the present state"
    shared.wait_until(lambda: shared.streams._readers.reads("state.shm"))
    manager.step(StepRequest(), MINIMAL)
    assert msgpack.unpackb(region.read(0)[1])["time"] == manager.engine.data.time
    region.release()
    memory.close()


def test_a_picture_and_what_is_known_of_it_have_one_sequence(shared, direct):
    shared.streams.attach(direct[1], [EYE])
    with shared.reading("cam_global_eye.shm") as pixels, shared.reading("cammeta_global_eye.shm") as meta:
        assert shared.streams.wants(EYE.topic)
        for number in range(6):
            picture = np.full(EYE.frame_bytes, number, np.uint8)
            shared.streams.publish(EYE.topic, {"frame_id": number}, picture.data)
            assert pixels.read(number) == (number + 1, picture.tobytes())
            assert msgpack.unpackb(meta.read(number)[1])["frame_id"] == number
    shared.wait_until(lambda: not shared.streams.wants(EYE.topic))


def test_a_muted_camera_is_wanted_by_nobody(shared, direct):
    shared.streams.attach(direct[1], [EYE])
    with shared.reading("cam_global_eye.shm") as pixels:
        shared.streams.mute(EYE.topic, True)
        assert (shared.streams.wants(EYE.topic), shared.streams.has_camera(EYE.topic)) == (False, False)
        shared.streams.publish(EYE.topic, {}, bytes(EYE.frame_bytes))
        assert pixels.sequence == 0
        shared.streams.mute(EYE.topic, False)
        assert shared.streams.wants(EYE.topic)


def test_regions_come_and_go_with_a_scene(shared, direct):
    assert shared.files() == []
    shared.streams.attach(direct[1], [EYE])
    assert shared.files() == ["cam_global_eye.shm", "cammeta_global_eye.shm", "state.shm"]
    shared.streams.detach()
    assert shared.files() == []
    shared.streams.attach(direct[1], [])
    assert shared.files() == ["state.shm"]


def test_a_camera_without_room_is_left_to_zeromq(shared, direct, caplog):
    shared.streams.attach(direct[1], [StreamedCamera("huge", "huge", "", "huge", 1 << 50), EYE])
    assert shared.files() == ["cam_global_eye.shm", "cammeta_global_eye.shm", "state.shm"]
    assert "clients get it over ZeroMQ" in caplog.text
