"""What is read from an action, and every way in which one can be wrong."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.evaluation.embodiments import EMBODIMENTS, FRANKA_PANDA
from urlab.evaluation.simulation.actions import ActionError, ControlType, parse_action

JOINTS = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, 0.04, 0.04]
EE = ([0.1, 0.2, 0.3], [1.0, 0.0, 0.0, 0.0], [0.04, 0.04])


def parse(raw, embodiment=FRANKA_PANDA):
    return parse_action(raw, embodiment, default_is_rel=True)


def joints(action, **more):
    return {"control_type": "joint_position", "action": action, **more}


def ee(action, **more):
    return {"control_type": "ee_pose", "action": action, **more}


def arm_target(arm, grip=0.01):
    return ((0.1, 0.2, 0.3), (0.0, 1.0, 0.0, 0.0), (grip,) * len(arm.gripper.joints))


@pytest.mark.parametrize(
    "numbers",
    [JOINTS, tuple(JOINTS), np.array(JOINTS), np.array(JOINTS)[::-1][::-1], [np.float64(one) for one in JOINTS]],
    ids=["list", "tuple", "array", "strided array", "numpy scalars"],
)
def test_joint_positions_may_be_a_list_a_tuple_or_an_array(numbers):
    action = parse(joints(numbers))
    assert action.kind is ControlType.JOINT_POSITION
    assert action.joints == tuple(JOINTS)
    assert action.arms == ()


def test_whole_numbers_and_single_precision_are_numbers():
    assert parse(joints([0] * 9)).joints == (0.0,) * 9
    assert parse(joints(np.zeros(9, dtype=np.int8))).joints == (0.0,) * 9
    assert parse(joints(np.full(9, 0.5, dtype=np.float32))).joints == (0.5,) * 9


def test_every_robot_takes_as_many_joints_as_it_has(embodiment):
    assert parse(joints(list(embodiment.home)), embodiment).joints == embodiment.home
    with pytest.raises(ActionError, match=f"takes {embodiment.action_length} numbers"):
        parse(joints([0.0] * (embodiment.action_length + 1)), embodiment)


def test_every_robot_takes_one_pose_per_arm(embodiment):
    targets = tuple(arm_target(arm) for arm in embodiment.arms)
    action = parse(ee(targets if len(targets) > 1 else targets[0]), embodiment)
    assert [(one.pos, one.quat_wxyz, one.gripper) for one in action.arms] == list(targets)


def test_a_single_arm_may_also_stand_in_a_list_of_arms():
    assert parse(ee([EE])) == parse(ee(EE))


def test_the_parts_of_a_pose_may_be_arrays():
    assert parse(ee([np.array(part) for part in EE])) == parse(ee(EE))


def test_a_quaternion_is_made_one_of_unit_length():
    (arm,) = parse(ee(([0, 0, 0], [0, 3, 0, 4], [0, 0]))).arms
    assert arm.quat_wxyz == pytest.approx((0.0, 0.6, 0.0, 0.8))


@pytest.mark.parametrize("default", [True, False])
def test_without_is_rel_the_server_decides(default):
    for raw in (joints(JOINTS), joints(JOINTS, is_rel=None)):
        assert parse_action(raw, FRANKA_PANDA, default_is_rel=default).is_rel is default


@pytest.mark.parametrize("flag", [True, False, np.True_, np.False_])
def test_is_rel_wins_over_the_server(flag):
    for default in (True, False):
        assert parse_action(joints(JOINTS, is_rel=flag), FRANKA_PANDA, default_is_rel=default).is_rel is bool(flag)


def test_keys_that_nobody_knows_are_ignored():
    assert parse(joints(JOINTS, speed=3, note="hello")) == parse(joints(JOINTS))


def test_base_motion_is_read_and_has_a_default():
    action = parse(joints(JOINTS, base_motion=[0.01, 0.0, -1], base_is_rel=False))
    assert action.base_motion == (0.01, 0.0, -1.0)
    assert parse(joints(JOINTS)).base_motion == (0.0, 0.0, 0.0)


NINE = r"action takes 9 numbers \(franka_panda: 7 arm \+ 2 gripper\), but "
ARM = r"action takes \(position 3, quaternion 4, gripper 2\), but "

BAD = [
    (None, "an action is a dict with control_type and action, but nothing was sent"),
    ([1, 2], "an action is a dict.*a list of length 2 was sent"),
    (np.zeros(9), r"an action is a dict.*an array of shape \(9,\) and type float64 was sent"),
    ({}, "control_type is one of ee_pose, joint_position, but it is missing; the keys sent are: none"),
    ({"action": JOINTS}, "control_type .* is missing; the keys sent are: action"),
    ({"control_type": "joint_position"}, "action is missing; the keys sent are: control_type"),
    ({"control_type": "velocity", "action": JOINTS}, "control_type is one of .*, but 'velocity' was sent"),
    ({"control_type": 3, "action": JOINTS}, "control_type is one of .*, but 3 was sent"),
    ({"control_type": ["ee_pose"], "action": JOINTS}, "control_type is one of .*, but a list of length 1 was sent"),
    (joints(None), NINE + "nothing was sent"),
    (joints("open"), NINE + "'open' was sent"),
    (joints("x" * 1000), NINE + "'x{39}... was sent"),
    (joints(0.5), NINE + "0.5 was sent"),
    (joints([]), NINE + "a list of length 0 was sent"),
    (joints([0.0] * 8), NINE + "a list of length 8 was sent"),
    (joints((0.0,) * 10), NINE + "a tuple of length 10 was sent"),
    (joints({"arm": 1}), NINE + "a dict of length 1 was sent"),
    (joints(b"123456789"), NINE + "a bytes of length 9 was sent"),
    (joints(np.zeros((1, 9))), NINE + r"an array of shape \(1, 9\) and type float64 was sent"),
    (joints(np.zeros(8)), NINE + r"an array of shape \(8,\) and type float64 was sent"),
    (joints(np.float64(1.0)), NINE + r"np.float64\(1.0\) was sent"),
    (joints(np.array(1.0)), NINE + r"an array of shape \(\) and type float64 was sent"),
    (joints(np.zeros(9, dtype=complex)), NINE + r"an array of shape \(9,\) and type complex128 was sent"),
    (joints(np.zeros(9, dtype=bool)), NINE + r"an array of shape \(9,\) and type bool was sent"),
    (joints(np.array(["0"] * 9)), NINE + r"an array of shape \(9,\) and type <U1 was sent"),
    (joints([*JOINTS[:8], float("nan")]), r"action\[8\] is not finite: nan was sent"),
    (joints([float("-inf"), *JOINTS[1:]]), r"action\[0\] is not finite: -inf was sent"),
    (joints(np.full(9, np.nan)), r"action\[0\] is not finite: nan was sent"),
    (joints(np.full(9, np.inf, dtype=np.float16)), r"action\[0\] is not finite: inf was sent"),
    (joints([np.float32("nan"), *JOINTS[1:]]), r"action\[0\] is not finite: "),
    (joints([1e7, *JOINTS[1:]]), r"action\[0\] is too large: 10000000.0 was sent"),
    (joints([10**400, *JOINTS[1:]]), r"action\[0\] is too large: a whole number beyond all bounds was sent"),
    (joints(["0.1", *JOINTS[1:]]), r"action\[0\] is a number, but '0.1' was sent"),
    (joints([*JOINTS[:8], None]), r"action\[8\] is a number, but nothing was sent"),
    (joints([*JOINTS[:8], True]), r"action\[8\] is a number, but True was sent"),
    (joints([*JOINTS[:8], [0.0]]), r"action\[8\] is a number, but a list of length 1 was sent"),
    (joints([*JOINTS[:8], 1j]), r"action\[8\] is a number, but a complex was sent"),
    (joints([*JOINTS[:8], object()]), r"action\[8\] is a number, but a object was sent"),
    (ee(None), ARM + "nothing was sent"),
    (ee(JOINTS), ARM + "a list of length 9 was sent"),
    (ee(np.zeros((3, 9))), r"action\[0\] takes 3 numbers \(position\), but an array of shape \(9,\) and type float64"),
    (ee(np.array(1.0)), ARM + r"an array of shape \(\) and type float64 was sent"),
    (ee("abc"), ARM + "'abc' was sent"),
    (ee([EE, EE]), ARM + "a list of length 2 was sent"),
    (ee([[EE]]), r"action\[0\] takes \(position 3, quaternion 4, gripper 2\), but a list of length 1 was sent"),
    (ee([0.1, 0.2, 0.3]), r"action\[0\] takes 3 numbers \(position\), but 0.1 was sent"),
    (ee((EE[0][:2], EE[1], EE[2])), r"action\[0\] takes 3 numbers \(position\), but a list of length 2 was sent"),
    (ee((EE[0], EE[1][:3], EE[2])), r"action\[1\] takes 4 numbers \(quaternion w, x, y, z\), but a list of length 3"),
    (ee((EE[0], EE[1], [0.04])), r"action\[2\] takes 2 numbers \(gripper of franka_panda\), but a list of length 1"),
    (ee((EE[0], EE[1], 0.04)), r"action\[2\] takes 2 numbers \(gripper of franka_panda\), but 0.04 was sent"),
    (ee((EE[0], [0, 0, 0, 0], EE[2])), r"action\[1\] is a quaternion w, x, y, z, but .* is no rotation"),
    (ee((EE[0], [float("nan"), 0, 0, 0], EE[2])), r"action\[1\]\[0\] is not finite: nan was sent"),
    (joints(JOINTS, is_rel=1), "is_rel is true or false, but 1 was sent"),
    (joints(JOINTS, is_rel="yes"), "is_rel is true or false, but 'yes' was sent"),
    (joints(JOINTS, base_motion=[0.0, 0.0]), r"base_motion takes 3 numbers \(x, y in metres, yaw in degrees\), but a"),
    (joints(JOINTS, base_motion=[0.0, 0.0, "x"]), r"base_motion\[2\] is a number, but 'x' was sent"),
    (joints(JOINTS, base_is_rel="no"), "base_is_rel is true or false, but 'no' was sent"),
]


@pytest.mark.parametrize(("raw", "words"), BAD, ids=range(len(BAD)))
def test_what_is_wrong_is_said_with_the_field_the_shape_and_what_was_sent(raw, words):
    with pytest.raises(ActionError, match=f"^{words}") as refused:
        parse(raw)
    assert len(refused.value.message) < 300


def test_a_robot_with_two_arms_says_which_one_is_wrong():
    aloha = EMBODIMENTS["aloha"]
    left, right = (arm_target(arm) for arm in aloha.arms)
    with pytest.raises(ActionError, match=r"^action\[1\]\[2\] takes 2 numbers \(gripper of aloha\), but a tuple of le"):
        parse(ee((left, (right[0], right[1], (0.0,)))), aloha)
    with pytest.raises(ActionError, match=r"^action takes one per arm: \(\(position 3, .*, \(position 3, .*, but a"):
        parse(ee(left), aloha)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=9) | st.tuples(inner, inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {"control_type": st.sampled_from(list(ControlType)), "action": anything},
        optional={"is_rel": anything, "base_motion": anything},
    )
    | anything
)
def test_whatever_is_sent_is_either_an_action_or_refused_in_words(raw):
    for embodiment in EMBODIMENTS.values():
        with contextlib.suppress(ActionError):
            action = parse(raw, embodiment)
            assert np.isfinite([*action.joints, *(part for arm in action.arms for part in arm.pos)]).all()
