"""Quaternions and poses, against the group axioms and against MuJoCo."""

import math
from collections.abc import Sequence

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from urlab.geometry import (
    IDENTITY_WXYZ,
    Pose,
    Quat,
    multiply,
    normalised,
    rotate,
    rotation_matrix,
    rotation_vector,
    slerp,
    wxyz_from_axis_angle,
    wxyz_from_euler_deg,
    wxyz_from_rotation_vector,
    wxyz_from_xyzw,
    xyzw_from_wxyz,
)

calm = settings(deadline=None, derandomize=True)
parts = st.floats(-1, 1, allow_subnormal=False)
lengths = st.floats(-100, 100, allow_subnormal=False)
vectors = st.tuples(lengths, lengths, lengths)
quats = st.tuples(parts, parts, parts, parts).filter(lambda q: math.hypot(*q) > 1e-3).map(normalised)
angles = st.floats(-720, 720, allow_subnormal=False)
poses = st.builds(Pose, vectors, quats)


def close(a: Sequence[float], b: Sequence[float]) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def conjugate(q: Quat) -> Quat:
    return q[0], -q[1], -q[2], -q[3]


@calm
@given(quats, quats, quats)
def test_multiplication_is_associative(a: Quat, b: Quat, c: Quat) -> None:
    close(multiply(multiply(a, b), c), multiply(a, multiply(b, c)))


@calm
@given(quats)
def test_the_identity_changes_nothing(q: Quat) -> None:
    close(multiply(q, IDENTITY_WXYZ), q)
    close(multiply(IDENTITY_WXYZ, q), q)


@calm
@given(quats)
def test_every_rotation_has_an_inverse(q: Quat) -> None:
    close(multiply(q, conjugate(q)), IDENTITY_WXYZ)
    close(multiply(conjugate(q), q), IDENTITY_WXYZ)


@calm
@given(quats, quats)
def test_products_stay_of_unit_length(a: Quat, b: Quat) -> None:
    assert math.hypot(*multiply(a, b)) == pytest.approx(1)


@calm
@given(quats, quats, vectors)
def test_a_product_turns_like_its_factors_in_turn(a: Quat, b: Quat, v: Sequence[float]) -> None:
    close(rotate(multiply(a, b), v), rotate(a, rotate(b, v)))


@calm
@given(quats, vectors)
def test_turning_keeps_lengths(q: Quat, v: Sequence[float]) -> None:
    assert math.hypot(*rotate(q, v)) == pytest.approx(math.hypot(*v), abs=1e-9)


@calm
@given(quats, quats, vectors)
def test_mujoco_agrees(a: Quat, b: Quat, v: Sequence[float]) -> None:
    product, turned = np.empty(4), np.empty(3)
    mujoco.mju_mulQuat(product, np.array(a), np.array(b))
    mujoco.mju_rotVecQuat(turned, np.array(v), np.array(a))
    close(multiply(a, b), product)
    close(rotate(a, v), turned)


@calm
@given(poses, poses)
def test_mujoco_agrees_on_poses(outer: Pose, inner: Pose) -> None:
    pos, quat = np.empty(3), np.empty(4)
    mujoco.mju_mulPose(
        pos, quat, np.array(outer.pos), np.array(outer.quat_wxyz), np.array(inner.pos), np.array(inner.quat_wxyz)
    )
    found = outer.apply(inner)
    close(found.pos, pos)
    close(found.quat_wxyz, quat)


@calm
@given(poses, poses, poses)
def test_poses_compose_in_any_grouping(a: Pose, b: Pose, c: Pose) -> None:
    left, right = a.apply(b).apply(c), a.apply(b.apply(c))
    np.testing.assert_allclose(left.pos, right.pos, atol=1e-6)
    close(left.quat_wxyz, right.quat_wxyz)


@calm
@given(st.tuples(angles, angles, angles))
def test_euler_angles_are_roll_pitch_yaw_about_fixed_axes(rpy: Sequence[float]) -> None:
    quat, turned = np.empty(4), np.empty(9)
    mujoco.mju_euler2Quat(quat, np.radians(rpy), "XYZ")
    close(np.abs(np.dot(wxyz_from_euler_deg(rpy), quat)), 1)
    mujoco.mju_quat2Mat(turned, np.array(wxyz_from_euler_deg(rpy)))
    (cr, cp, cy), (sr, sp, sy) = np.cos(np.radians(rpy)), np.sin(np.radians(rpy))
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    close(turned.reshape(3, 3), about_z @ about_y @ about_x)


def test_euler_angles_are_right_handed_degrees() -> None:
    close(rotate(wxyz_from_euler_deg((0, 0, 90)), (1, 0, 0)), (0, 1, 0))
    close(rotate(wxyz_from_euler_deg((90, 0, 0)), (0, 1, 0)), (0, 0, 1))
    close(rotate(wxyz_from_euler_deg((0, 90, 0)), (0, 0, 1)), (1, 0, 0))
    close(rotate(wxyz_from_euler_deg((90, 0, 90)), (0, 1, 0)), (0, 0, 1))


@calm
@given(quats)
def test_reordering_there_and_back_changes_nothing(q: Quat) -> None:
    assert wxyz_from_xyzw(xyzw_from_wxyz(q)) == q
    assert xyzw_from_wxyz(q) == (q[1], q[2], q[3], q[0])


@calm
@given(quats, st.floats(1e-6, 1e200))
def test_normalising_takes_the_length_away(q: Quat, length: float) -> None:
    scaled = tuple(part * length for part in q)
    close(normalised(scaled), q)


@pytest.mark.parametrize("q", [(0, 0, 0, 0), (1e-13, 0, 0, 0), (math.nan, 0, 0, 1), (math.inf, 0, 0, 1)])
def test_what_has_no_direction_is_no_rotation(q: Quat) -> None:
    with pytest.raises(ValueError, match="is no rotation"):
        normalised(q)


def test_only_the_pose_that_moves_nothing_is_the_identity() -> None:
    assert Pose().is_identity
    assert not Pose((0, 0, 1e-9)).is_identity
    assert not Pose(quat_wxyz=(0, 1, 0, 0)).is_identity


@calm
@given(quats, vectors)
def test_a_matrix_turns_as_its_quaternion_does(q: Quat, v: Sequence[float]) -> None:
    close(rotation_matrix(q) @ np.array(v), rotate(q, v))


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.1, -0.2, 0.3), (0.0, 3.0, 0.0), (3.5, 0.0, 0.1)])
def test_a_rotation_vector_survives_the_way_there_and_back(turn: Sequence[float]) -> None:
    close(rotation_vector(wxyz_from_rotation_vector(turn)), turn)


@calm
@given(quats, quats)
def test_slerp_begins_at_the_start_and_ends_at_the_end(a: Quat, b: Quat) -> None:
    for share, expected in ((0.0, a), (1.0, b)):
        assert abs(np.dot(slerp(a, b, share), expected)) == pytest.approx(1.0)


def test_towards_takes_the_shorter_way_round() -> None:
    start = Pose(quat_wxyz=wxyz_from_axis_angle((0, 0, 1), 0.2))
    end = Pose((1, 0, 0), wxyz_from_axis_angle((0, 0, 1), 0.8))
    for goal in (end, Pose(end.pos, tuple(-part for part in end.quat_wxyz))):
        half = start.towards(goal, 0.5)
        assert half.pos == pytest.approx((0.5, 0, 0))
        assert rotation_vector(half.quat_wxyz) == pytest.approx((0, 0, 0.5))
        assert half.distance_m(goal) == pytest.approx(0.5)
        assert half.angle_rad(goal) == pytest.approx(0.3)


def test_a_pose_is_made_of_any_numbers() -> None:
    assert Pose.of(np.array([1, 2, 3]), np.array([2, 0, 0, 0])) == Pose((1.0, 2.0, 3.0))
    assert Pose((1.0, 2.0, 3.0)).raised(0.5).pos == (1.0, 2.0, 3.5)
