import numpy as np
import pytest

import urlab.recording
from urlab.errors import BadValue
from urlab.recording import RecordedJoint, Recording
from urlab.recording.recording import recorded_joints


def hinge_recording(times):
    column = np.zeros((len(times), 1))
    return Recording("ep", (RecordedJoint("hip", 1, 1),), np.array(times, dtype=float), column, column)


def test_arrays_refuse_writes_and_the_callers_array_does_not():
    times = np.zeros(1)
    recording = Recording("ep", (), times, np.zeros((1, 0)), np.zeros((1, 0)))
    with pytest.raises(ValueError, match="read-only"):
        recording.times[0] = 1.0
    times[0] = 1.0


def test_shapes_that_do_not_fit_the_joints_are_refused():
    with pytest.raises(ValueError, match=r"qpos has shape \(1, 2\)"):
        Recording("ep", (RecordedJoint("hip", 1, 1),), np.zeros(1), np.zeros((1, 2)), np.zeros((1, 1)))


def test_repeats_are_dropped_only_when_time_and_state_are_equal():
    times, states = np.array([0.0, 0.0, 0.0, 1.0, 0.0]), np.array([[1.0], [1.0], [2.0], [2.0], [1.0]])
    recording = Recording("ep", (RecordedJoint("hip", 1, 1),), times, states, states).without_repeats()
    assert recording.times.tolist() == [0.0, 0.0, 1.0, 0.0]
    assert recording.qpos[:, 0].tolist() == [1.0, 2.0, 2.0, 1.0]


def test_the_frame_at_a_time_is_the_last_one_that_is_not_later():
    recording = hinge_recording([0.5, 1.0, 1.5])
    assert [recording.frame_at(time_s) for time_s in (0.5, 0.9, 1.0, 1.4, 1.5, 1e9)] == [0, 0, 1, 1, 2, 2]
    with pytest.raises(BadValue, match=r"time is 0.4; 'ep' has 3 frames, from 0.5 s to 1.5 s"):
        recording.frame_at(0.4)


def test_a_time_that_comes_twice_as_there_was_a_reset_means_the_first():
    recording = hinge_recording([0.0, 1.0, 2.0, 0.0, 1.0, 4.0])
    assert [recording.frame_at(time_s) for time_s in (0.0, 1.5, 2.0, 3.0, 4.0)] == [0, 1, 2, 2, 5]


def test_elapsed_time_goes_on_where_the_simulation_was_reset():
    assert hinge_recording([3.0, 4.0, 0.5, 1.5]).elapsed().tolist() == [0.0, 1.0, 1.0, 2.0]
    assert hinge_recording([]).elapsed().tolist() == []


def test_a_recording_without_frames_has_no_repeats():
    assert hinge_recording([]).without_repeats().frame_count == 0


def test_the_layout_follows_the_models_arrays(robot_slots):
    assert recorded_joints(robot_slots) == (
        RecordedJoint("r_root", 7, 6),
        RecordedJoint("r_hip", 1, 1),
        RecordedJoint("r_neck", 4, 3),
    )


def test_slots_with_a_gap_are_refused(robot_slots):
    with pytest.raises(ValueError, match="r_neck"):
        recorded_joints((robot_slots[0], robot_slots[2]))


def test_the_front_door_is_what_it_promises():
    assert all(hasattr(urlab.recording, name) for name in urlab.recording.__all__)
    assert urlab.recording.__all__ == [
        "LIVE", "MCAP", "Journal", "JournalHeader", "PlayableRecording", "RecordedJoint", "RecordedSignals", "Recorder",
        "Recording", "RecordingFile", "ReplayPlayer", "ReplayPosition", "fitted", "list_recordings", "load_path",
        "read_header", "read_recording", "recorded_signals", "recover_in_background", "save_path", "write_json",
    ]  # fmt: skip
