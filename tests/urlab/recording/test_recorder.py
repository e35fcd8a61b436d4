"""The recorder, and the memory that its frames are in."""

import math

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab.errors import BadValue, RecordingAlreadyActive, RecordingNotActive
from urlab.recording import LIVE, Recorder
from urlab.recording.recorder import UNLIMITED_S, FrameStore


@pytest.fixture
def recorder(hinges):
    return Recorder(hinges("r_hip"))


def capture(recorder, *times):
    for time_s in times:
        recorder.capture(time_s, np.array([time_s]), np.array([-time_s]))


def test_it_captures_what_mj_step_left(robot, robot_slots):
    data, recorder, expected = mujoco.MjData(robot), Recorder(robot_slots), []
    recorder.start()
    for _ in range(20):
        mujoco.mj_step(robot, data)
        recorder.capture(data.time, data.qpos, data.qvel)
        expected.append((data.time, data.qpos.copy(), data.qvel.copy()))
    recording = recorder.stop()
    for frame, (time_s, qpos, qvel) in enumerate(expected):
        assert recording.times[frame] == time_s
        assert recording.qpos[frame].tobytes() == qpos.tobytes()
        assert recording.qvel[frame].tobytes() == qvel.tobytes()
    assert recording.frame_count == 20


def test_without_name_and_duration_it_is_live_and_unlimited(recorder):
    assert recorder.start(None, None) == (LIVE, UNLIMITED_S)
    assert float(np.finfo(np.float32).max) == UNLIMITED_S


def test_a_given_name_and_duration_are_in_force(recorder):
    assert recorder.start("ep_1", 3600) == ("ep_1", 3600.0)
    assert recorder.recording().name == recorder.name == "ep_1"


@pytest.mark.parametrize("max_duration_s", [0.0, -1.0, math.nan, math.inf])
def test_durations_that_are_not_positive_are_refused(recorder, max_duration_s):
    with pytest.raises(BadValue, match="max_duration_s"):
        recorder.start(None, max_duration_s)
    assert not recorder.is_active


@pytest.mark.parametrize("name", ["", "  "])
def test_empty_names_are_refused_and_the_last_recording_stays(recorder, name):
    recorder.start("kept")
    capture(recorder, 1.0)
    recorder.stop()
    with pytest.raises(BadValue, match="name"):
        recorder.start(name)
    assert (recorder.recording().name, recorder.frame_count) == ("kept", 1)


def test_starting_twice_is_refused_and_the_first_goes_on(recorder):
    recorder.start("first")
    capture(recorder, 1.0)
    with pytest.raises(RecordingAlreadyActive, match="'first' is running with 1 frames"):
        recorder.start("second")
    capture(recorder, 2.0)
    assert recorder.stop().times.tolist() == [1.0, 2.0]


def test_stopping_without_a_recording_is_refused(recorder):
    with pytest.raises(RecordingNotActive):
        recorder.stop()


def test_there_is_no_recording_before_the_first_start(recorder):
    assert (recorder.is_active, recorder.has_frames, recorder.frame_count) == (False, False, 0)
    with pytest.raises(RecordingNotActive):
        recorder.recording()


def test_nothing_is_captured_while_no_recording_runs(recorder):
    capture(recorder, 1.0)
    recorder.start()
    capture(recorder, 2.0)
    recorder.stop()
    capture(recorder, 3.0)
    assert recorder.recording().times.tolist() == [2.0]


def test_a_running_recording_can_be_taken_and_is_not_changed_later(recorder):
    recorder.start()
    capture(recorder, 1.0)
    taken = recorder.recording()
    capture(recorder, 2.0)
    assert taken.times.tolist() == [1.0]
    assert recorder.frame_count == 2


def test_the_state_is_copied(recorder):
    state = np.array([1.0])
    recorder.start()
    recorder.capture(0.0, state, state)
    state[0] = 2.0
    assert recorder.stop().qpos.tolist() == [[1.0]]


def test_a_new_start_forgets_the_last_recording(recorder):
    recorder.start()
    capture(recorder, 1.0)
    recorder.stop()
    recorder.start()
    assert recorder.frame_count == 0


def test_clear_forgets_a_stopped_recording(recorder):
    recorder.start()
    capture(recorder, 1.0)
    recorder.stop()
    recorder.clear()
    with pytest.raises(RecordingNotActive):
        recorder.recording()


def test_clear_empties_a_running_recording_which_goes_on(recorder):
    recorder.start("ep", 1.0)
    capture(recorder, 5.0)
    recorder.clear()
    capture(recorder, 1.0, 2.0, 3.0)
    assert recorder.is_active
    assert recorder.stop().times.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("timestep_s", [0.002, 0.001, 1 / 480])
def test_the_window_holds_exactly_its_simulated_seconds(recorder, timestep_s):
    recorder.start(None, 240 * timestep_s)
    time_s = 0.0
    for _ in range(5000):
        time_s += timestep_s
        capture(recorder, time_s)
    recording = recorder.stop()
    assert recording.frame_count == 241
    assert recording.times[-1] == time_s


def test_a_reset_while_recording_keeps_the_frames_in_order_of_capture(recorder):
    recorder.start()
    capture(recorder, 1.0, 2.0, 0.0, 1.0)
    recording = recorder.stop()
    assert recording.times.tolist() == [1.0, 2.0, 0.0, 1.0]


def test_the_window_counts_simulated_time_across_resets(recorder):
    recorder.start(None, 3.0)
    capture(recorder, 8.0, 9.0, 10.0, 0.0, 1.0, 2.0)
    recording = recorder.stop()
    assert recording.times.tolist() == [9.0, 10.0, 0.0, 1.0, 2.0]


def test_the_memory_limit_drops_the_oldest(hinges):
    recorder = Recorder(hinges("r_hip"), max_bytes=4096)
    recorder.start()
    capture(recorder, *range(1000))
    recording = recorder.stop()
    assert recording.frame_count < 1000
    assert recording.times.tolist() == list(range(1000 - recording.frame_count, 1000))


def test_a_model_without_joints_can_be_recorded():
    recorder = Recorder(())
    recorder.start()
    recorder.capture(0.5, np.empty(0), np.empty(0))
    assert recorder.stop().qpos.shape == (1, 0)


def append(store, number):
    store.append(float(number), float(number), np.full(2, number), np.full(1, -number))


@given(st.lists(st.integers(0, 12), max_size=60), st.integers(200, 2000))
def test_it_is_a_queue_that_forgets_from_the_front(window_sizes, max_bytes):
    store, expected = FrameStore((2, 1, 0, 0), max_bytes), []
    for number, window in enumerate(window_sizes):
        append(store, number)
        store.drop_before(number - window)
        expected = [one for one in [*expected, number] if one >= number - window]
        times, qpos, qvel, *_ = store.arrays()
        assert times.tolist() == expected[len(expected) - store.count :]
        assert qpos.tolist() == [[one, one] for one in times]
        assert qvel.tolist() == [[-one] for one in times]


def test_a_long_run_in_a_short_window_keeps_its_memory():
    store = FrameStore((2, 1, 0, 0), 40_000)
    for number in range(20_000):
        append(store, number)
        store.drop_before(number - 100)
    assert store.count == 101
    assert store.nbytes <= 3 * 5000


def test_memory_stays_below_the_limit_and_the_newest_frames_stay():
    store = FrameStore((2, 1, 0, 0), 40_000)
    for number in range(20_000):
        append(store, number)
    assert 30_000 < store.nbytes <= 40_000
    assert store.arrays()[0].tolist() == list(range(20_000 - store.count, 20_000))


@pytest.mark.parametrize("max_bytes", [0, 1, 100])
def test_a_tiny_limit_still_keeps_the_newest_frame(max_bytes):
    store = FrameStore((2, 1, 0, 0), max_bytes)
    for number in range(10):
        append(store, number)
    assert store.arrays()[0][-1] == 9.0
    assert store.count <= 2


def test_clear_forgets_everything():
    store = FrameStore((2, 1, 0, 0), 0)
    for number in range(10):
        append(store, number)
    store.clear()
    assert store.count == 0
    append(store, 7)
    assert store.arrays()[0].tolist() == [7.0]
