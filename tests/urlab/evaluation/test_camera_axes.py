import mujoco
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from urlab.evaluation.camera_axes import mujoco_quat, protocol_quat

part = st.floats(-1.0, 1.0)
quats = st.tuples(part, part, part, part).filter(lambda quat: np.linalg.norm(quat) > 0.1)


def axes(quat):
    """The turned axes, as rows."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.array(quat) / np.linalg.norm(quat))
    return matrix.reshape(3, 3).T


@given(quats)
def test_forward_left_and_up_are_the_same_directions_in_both_conventions(quat):
    forward, left, up = axes(quat)
    right_m, up_m, backward_m = axes(mujoco_quat(quat))
    np.testing.assert_allclose([-backward_m, -right_m, up_m], [forward, left, up], atol=1e-9)


@given(quats)
def test_there_and_back_is_the_same_rotation(quat):
    back = protocol_quat(mujoco_quat(quat))
    assert back[0] >= 0
    np.testing.assert_allclose(axes(back), axes(quat), atol=1e-9)
