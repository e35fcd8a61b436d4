import numpy as np

from urlab.compile.compiled_scene import JointSlot
from urlab.recording import RecordedJoint
from urlab.recording.joint_match import match_joints


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


def test_columns_and_leftovers_are_told(robot_slots):
    recorded = [RecordedJoint("r_neck", 4, 3), RecordedJoint("tail", 1, 1), RecordedJoint("r_hip", 1, 1)]
    mapping = match_joints(recorded, robot_slots)
    assert (mapping.missing, mapping.unused) == (("r_root",), ("tail",))
    np.testing.assert_array_equal(mapping.qpos_from, [0, 1, 2, 3, 5])
    np.testing.assert_array_equal(mapping.qpos_to, [8, 9, 10, 11, 7])
    np.testing.assert_array_equal(mapping.qvel_from, [0, 1, 2, 4])
    np.testing.assert_array_equal(mapping.qvel_to, [7, 8, 9, 6])
