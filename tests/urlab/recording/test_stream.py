"""Recording to a file while it grows: what a process that is killed leaves behind."""

import contextlib
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mcap.reader
import numpy as np
import pytest

from urlab.errors import PathNotReadable, PathNotWritable
from urlab.recording import RecordedSignals, Recorder, read_recording
from urlab.recording.stream import McapStream

ENDLESS = """# preloaded
import itertools, sys, time
from pathlib import Path
import numpy as np
from urlab.compile.compiled_scene import JointSlot
from urlab.recording import Recorder, RecordedSignals
from urlab.recording.stream import McapStream
recorder = Recorder([JointSlot(0, "hip", "hip", 3, slice(0, 1), slice(0, 1))], RecordedSignals(("push",), ()))
recorder.start("ep")
stream = McapStream(Path(sys.argv[1]), recorder, {"timestep": 1.0})
for time_s in itertools.count(1.0):
    recorder.capture(time_s, np.array([time_s]), np.array([-time_s]), np.array([0.5]))
    time.sleep(0.001)
"""


@pytest.fixture
def recorder(hinges):
    made = Recorder(hinges("hip"), RecordedSignals(("push",), ()))
    made.start("ep")
    return made


def capture(recorder, count):
    for number in range(count):
        recorder.capture(float(number), np.array([number / 2]), np.array([-1.0]), np.array([3.0]))


def frames_in(path: Path) -> int:
    try:
        return read_recording(path).frame_count
    except PathNotReadable:
        return 0


def test_a_killed_process_leaves_what_was_on_disk_and_it_can_be_read(tmp_path):
    path = tmp_path / "ep.mcap"
    child = subprocess.Popen([sys.executable, "-c", ENDLESS, str(path)])
    try:
        while (seen := frames_in(path)) < 100:
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()
    recording = read_recording(path)
    assert recording.frame_count >= seen
    assert recording.times.tolist() == [float(one) for one in range(1, recording.frame_count + 1)]
    assert recording.ctrl.tolist() == [[0.5]] * recording.frame_count
    with path.open("rb") as file:
        others = sum(1 for _ in mcap.reader.make_reader(file).iter_messages(topics=["/joint_states"]))
    assert others == recording.frame_count


@pytest.mark.parametrize("cut", [1, 30, 60, 200])
def test_a_file_that_is_cut_off_keeps_its_whole_chunks(recorder, tmp_path, cut):
    path = tmp_path / "ep.mcap"
    stream = McapStream(path, recorder, {})
    capture(recorder, 5000)
    assert stream.finish()
    whole = read_recording(path)
    assert whole.frame_count == 5000
    path.write_bytes(path.read_bytes()[: path.stat().st_size * cut // 256])
    kept = frames_in(path)
    assert kept < 5000
    if kept:
        np.testing.assert_array_equal(read_recording(path).qpos, whole.qpos[:kept])


def test_mcap_of_another_writer_is_refused_in_words(tmp_path):
    from mcap.writer import Writer

    with (tmp_path / "ep.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start()
        writer.finish()
    with pytest.raises(PathNotReadable, match="MCAP of another writer"):
        read_recording(tmp_path / "ep.mcap")
    (tmp_path / "ep.mcap").write_bytes(b"nothing of the kind")
    with pytest.raises(PathNotReadable, match="MCAP of another writer"):
        read_recording(tmp_path / "ep.mcap")


@contextlib.contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """As a disk that is full from there on."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_at_the_begin_refuses_and_leaves_nothing(recorder, tmp_path):
    path = tmp_path / "ep.mcap"
    with files_of_at_most(100), pytest.raises(PathNotWritable, match="File too large"):
        McapStream(path, recorder, {})
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_leaves_a_file_that_can_be_read_and_says_so(recorder, tmp_path):
    path = tmp_path / "ep.mcap"
    stream = McapStream(path, recorder, {})
    with files_of_at_most(path.stat().st_size + 4000):
        rng = np.random.default_rng(0)
        for number in range(5000):
            recorder.capture(float(number), rng.normal(size=1), rng.normal(size=1), rng.normal(size=1))
        assert not stream.finish()
    assert stream.problem == "File too large"
    assert frames_in(path) < 5000


def test_what_goes_wrong_in_any_other_way_is_no_whole_file(recorder, tmp_path):
    stream = McapStream(tmp_path / "ep.mcap", recorder, {})
    recorder.chunks.append(None)  # what no recorder leaves there
    assert not stream.finish()
    assert "AttributeError" in stream.problem
    assert stream._raw.closed
