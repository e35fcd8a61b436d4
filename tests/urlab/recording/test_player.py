"""Replay: which joints a recording drives, and what is shown."""

from dataclasses import replace

import numpy as np
import pytest

from urlab.compile.compiled_scene import JointSlot
from urlab.errors import BadValue, PathNotReadable, ReplaySessionNotFound
from urlab.recording import RecordedJoint, Recorder, ReplayPlayer
from urlab.recording.player import match_joints


def pairs(recorded, slots):
    return match_joints([RecordedJoint(name, 1, 1) for name in recorded], slots).pairs


def free_slot(name, begin=0):
    return JointSlot(0, name, name, 0, slice(begin, begin + 7), slice(begin, begin + 6))


def test_exact_names_match_in_any_order(hinges):
    assert pairs(["r_b", "r_a"], hinges("r_a", "r_b")) == (("r_b", "r_b"), ("r_a", "r_a"))


def test_another_prefix_matches_by_what_follows_it(hinges):
    assert pairs(["old_hip"], hinges("r_hip")) == (("old_hip", "r_hip"),)


def test_a_bare_name_matches_the_short_name(hinges):
    assert pairs(["FL_hip", "hip"], hinges("r_hip", "r_FL_hip")) == (("FL_hip", "r_FL_hip"), ("hip", "r_hip"))


def test_a_prefix_with_underscores_is_taken_off(hinges):
    assert pairs(["Go2_C_1_FL_hip", "Go2_C_1_FR_hip"], hinges("r_FL_hip", "r_FR_hip")) == (
        ("Go2_C_1_FL_hip", "r_FL_hip"),
        ("Go2_C_1_FR_hip", "r_FR_hip"),
    )


def test_the_longest_tail_wins(hinges):
    assert pairs(["x_FL_hip", "x_hip"], hinges("r_hip", "r_FL_hip")) == (
        ("x_FL_hip", "r_FL_hip"),
        ("x_hip", "r_hip"),
    )


def test_an_exact_name_is_not_given_away_to_a_tail(hinges):
    assert pairs(["b_hip", "r_hip"], hinges("r_hip")) == (("r_hip", "r_hip"),)


def test_two_recorded_joints_for_one_place_match_nothing(hinges):
    assert pairs(["a_hip", "b_hip"], hinges("r_hip")) == ()


def test_two_places_for_one_recorded_joint_match_nothing(hinges):
    slots = (*hinges("c_hip", prefix="c"), JointSlot(1, "d_hip", "hip", 3, slice(1, 2), slice(1, 2)))
    assert pairs(["a_hip"], slots) == ()


def test_joints_of_another_size_do_not_match(hinges):
    assert match_joints([RecordedJoint("r_hip", 4, 3)], hinges("r_hip")).pairs == ()


def test_the_only_free_joint_left_on_both_sides_matches():
    mapping = match_joints([RecordedJoint("PelvisFreeJoint", 7, 6)], [free_slot("g1_root")])
    assert mapping.pairs == (("PelvisFreeJoint", "g1_root"),)


def test_free_joints_that_are_not_alone_do_not_match_by_elimination():
    slots = [free_slot("a"), free_slot("b", 7)]
    assert match_joints([RecordedJoint("x", 7, 6)], slots).pairs == ()


def test_a_free_joint_is_alone_once_the_others_have_matched_by_name():
    slots = [free_slot("a"), free_slot("b", 7)]
    mapping = match_joints([RecordedJoint("a", 7, 6), RecordedJoint("x", 7, 6)], slots)
    assert mapping.pairs == (("a", "a"), ("x", "b"))


def test_joints_without_a_partner_have_no_columns(robot_slots):
    recorded = [RecordedJoint("r_neck", 4, 3), RecordedJoint("tail", 1, 1), RecordedJoint("r_hip", 1, 1)]
    mapping = match_joints(recorded, robot_slots)
    assert mapping.pairs == (("r_neck", "r_neck"), ("r_hip", "r_hip"))
    np.testing.assert_array_equal(mapping.qpos_from, [0, 1, 2, 3, 5])
    np.testing.assert_array_equal(mapping.qpos_to, [8, 9, 10, 11, 7])
    np.testing.assert_array_equal(mapping.qvel_from, [0, 1, 2, 4])
    np.testing.assert_array_equal(mapping.qvel_to, [7, 8, 9, 6])


def shown(player, size=2):
    qpos, qvel = np.full(size, 9.0), np.full(size, 9.0)
    time_s = player.current(qpos, qvel)
    return time_s, qpos, qvel


@pytest.fixture
def slots(hinges):
    return hinges("r_hip", "r_knee")


@pytest.fixture
def recorder(slots):
    return Recorder(slots)


@pytest.fixture
def player(slots, recorder):
    return ReplayPlayer(slots, recorder)


def record(recorder, *times):
    recorder.start()
    for time_s in times:
        recorder.capture(time_s, np.full(2, time_s), np.full(2, -time_s))
    recorder.stop()


def test_frames_are_shown_absolutely_and_in_order(player, make_recording):
    recording = make_recording("r_hip", "r_knee", frames=3)
    player.load(recording)
    assert player.start() == 3
    for frame in range(3):
        time_s, qpos, qvel = shown(player)
        assert (player.position.frame, time_s) == (frame, recording.times[frame])
        assert qpos.tobytes() == recording.qpos[frame].tobytes()
        assert qvel.tobytes() == recording.qvel[frame].tobytes()
        player.advance(1)


def test_joints_that_the_recording_lacks_keep_their_state(player, make_recording):
    recording = make_recording("r_knee")
    player.load(recording)
    player.start()
    _, qpos, qvel = shown(player)
    assert qpos.tolist() == [9.0, recording.qpos[0, 0]]
    assert qvel.tolist() == [9.0, recording.qvel[0, 0]]


@pytest.mark.parametrize(("steps", "frame"), [([4], 4), ([5], 4), ([3, 3], 4), ([1000], 4), ([0], 0), ([2, 1], 3)])
def test_the_last_frame_is_held(player, make_recording, steps, frame):
    player.load(make_recording("r_hip", frames=5))
    player.start()
    for step in steps:
        player.advance(step)
    assert (player.position.frame, player.position.total_frames, player.is_playing) == (frame, 5, True)


@pytest.mark.parametrize(("steps", "frame"), [([4], 4), ([5], 0), ([3, 3], 1), ([1000], 0), ([12], 2)])
def test_with_loop_the_first_frame_follows_the_last(player, make_recording, steps, frame):
    player.load(make_recording("r_hip", frames=5))
    player.start(loop=True)
    for step in steps:
        player.advance(step)
    assert player.position.frame == frame


def test_starting_again_goes_to_frame_0_and_forgets_the_loop(player, make_recording):
    player.load(make_recording("r_hip", frames=3))
    player.start(loop=True)
    player.advance(2)
    player.start()
    assert player.position.frame == 0
    player.advance(7)
    assert player.position.frame == 2


def test_live_comes_first_and_only_with_frames(player, recorder, make_recording):
    assert player.names() == []
    player.load(make_recording("r_hip"), "b")
    player.load(make_recording("r_hip"), "a")
    assert player.names() == ["b", "a"]
    record(recorder, 1.0)
    assert player.names() == ["live", "b", "a"]
    recorder.clear()
    assert player.names() == ["b", "a"]


def test_the_live_recording_plays_when_nothing_else_was_chosen(player, recorder):
    assert player.active_name is None
    record(recorder, 1.0, 2.0)
    assert player.active_name == "live"
    assert player.start() == 2
    time_s, qpos, qvel = shown(player)
    assert (time_s, qpos.tolist(), qvel.tolist()) == (1.0, [1.0, 1.0], [-1.0, -1.0])


def test_the_live_recording_answers_to_its_own_name(player, recorder, make_recording):
    recorder.start("ep_9")
    recorder.capture(0.0, np.zeros(2), np.zeros(2))
    player.load(make_recording("r_hip"), "file")
    assert player.names() == ["ep_9", "file"]
    for name in ("ep_9", "live"):
        player.set_active("file")
        player.set_active(name)
        assert player.active_name == "ep_9"
    player.start()
    assert player.active_name == "ep_9"


def test_a_file_of_the_same_name_as_the_live_recording_leaves_it_the_name_live(player, recorder, make_recording):
    recorder.start("ep_9")
    recorder.capture(0.0, np.zeros(2), np.zeros(2))
    player.load(make_recording("r_hip", frames=7), "ep_9")
    assert player.names() == ["live", "ep_9"]
    assert player.start() == 7
    player.set_active("live")
    assert player.start() == 1


def test_what_plays_is_not_touched_by_more_recording(player, recorder):
    recorder.start()
    recorder.capture(0.0, np.zeros(2), np.zeros(2))
    player.start()
    recorder.capture(1.0, np.zeros(2), np.zeros(2))
    recorder.clear()
    assert player.position.total_frames == 1
    assert shown(player)[0] == 0.0


def test_a_recording_that_begins_ends_the_replay_and_is_active(player, recorder, make_recording):
    player.load(make_recording("r_hip"), "file")
    player.start()
    player.make_live_active()
    assert not player.is_playing
    record(recorder, 1.0)
    assert player.active_name == "live"


def test_loading_makes_active_and_leaves_what_plays_alone(player, make_recording):
    player.load(make_recording("r_hip", frames=2), "a")
    player.start()
    session = player.load(make_recording("r_hip", frames=9), "b")
    assert (session.name, session.total_frames) == ("b", 9)
    assert (player.active_name, player.position.total_frames) == ("a", 2)
    player.stop()
    assert player.active_name == "b"
    assert player.start() == 9


def test_loading_a_name_again_replaces_it(player, make_recording):
    player.load(make_recording("r_hip", frames=2), "a")
    player.load(make_recording("r_hip", frames=2), "b")
    player.load(make_recording("r_hip", frames=7), "a")
    assert player.names() == ["a", "b"]
    assert player.start() == 7


def test_a_file_called_live_does_not_hide_the_live_recording(player, recorder, make_recording):
    record(recorder, 1.0)
    assert player.load(make_recording("r_hip", name="live")).name == "live-2"
    assert player.names() == ["live", "live-2"]


def test_an_unknown_session_names_those_that_exist(player, make_recording):
    player.load(make_recording("r_hip"), "walk")
    with pytest.raises(ReplaySessionNotFound, match=r"'run'.*walk"):
        player.set_active("run")
    assert player.active_name == "walk"


def test_there_is_nothing_to_start_without_sessions(player):
    with pytest.raises(ReplaySessionNotFound, match="none"):
        player.start()
    assert not player.is_playing


def test_a_recording_of_other_joints_is_refused_with_the_names_of_both(player, make_recording):
    with pytest.raises(PathNotReadable, match=r"wing.*r_hip, r_knee"):
        player.load(make_recording("wing", name="bird"))
    assert player.names() == []


def test_a_session_leaves_out_what_does_not_fit(player, make_recording):
    mapping = player.load(make_recording("r_hip", "wing")).mapping
    assert mapping.pairs == (("r_hip", "r_hip"),)


def test_stop_ends_the_replay_and_may_be_repeated(player, make_recording):
    player.load(make_recording("r_hip"))
    player.start()
    player.stop()
    player.stop()
    assert (player.is_playing, player.position) == (False, None)


def test_without_a_replay_there_is_no_current_frame(player):
    for use in (lambda: shown(player), lambda: player.advance(1), lambda: player.seek(0), player.seconds_to_next):
        with pytest.raises(ReplaySessionNotFound, match="replay_start"):
            use()


def test_a_seek_goes_to_a_frame_by_its_index_or_its_time(player, make_recording):
    recording = make_recording("r_hip", "r_knee", frames=5)
    player.load(recording)
    player.start()
    for frame in (3, 0, 4):
        player.seek(frame)
        assert shown(player)[0] == recording.times[frame] == player.position.time_s
    between = (recording.times[2] + recording.times[3]) / 2
    for time_s, frame in ((recording.times[2], 2), (between, 2), (recording.times[-1] + 100, 4)):
        player.seek(time_s=float(time_s))
        assert player.position == ("ep", frame, 5, recording.times[frame], False)


@pytest.mark.parametrize("frame", [-1, 5, 2**62])
def test_a_frame_that_there_is_none_of_is_refused_with_how_many_there_are(player, make_recording, frame):
    player.load(make_recording("r_hip", frames=5))
    player.start()
    player.seek(2)
    with pytest.raises(BadValue, match="has 5 frames, from 0 to 4"):
        player.seek(frame)
    assert player.position.frame == 2


@pytest.mark.parametrize("time_s", [-1.0, float("nan"), float("inf"), -float("inf")])
def test_a_time_before_all_frames_is_refused_with_the_times_that_there_are(player, make_recording, time_s):
    recording = make_recording("r_hip", frames=5)
    player.load(recording)
    player.start()
    with pytest.raises(BadValue, match=rf"5 frames, from {recording.times[0]:g} s to {recording.times[-1]:g} s"):
        player.seek(time_s=time_s)


def test_the_time_to_the_next_frame_is_told_by_the_timestamps(player, make_recording):
    player.load(replace(make_recording("r_hip", frames=3), times=np.array([0.0, 0.5, 0.75])))
    player.start()
    assert player.seconds_to_next() == 0.5
    player.advance(1)
    assert player.seconds_to_next() == 0.25
    player.advance(1)
    assert player.seconds_to_next() is None, "the last one is held"
    player.start(loop=True)
    player.seek(2)
    assert player.seconds_to_next() == 0.0, "it begins again"


def test_a_replay_does_not_go_backwards(player, make_recording):
    player.load(make_recording("r_hip"))
    player.start()
    with pytest.raises(BadValue, match="-1"):
        player.advance(-1)
