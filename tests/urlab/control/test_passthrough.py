import mujoco
import numpy as np
import pytest

from urlab.control import PassthroughController
from urlab.errors import ControllerSchemaViolation


def test_setpoints_become_controls_as_they_are(arm, describe):
    data, setpoints = mujoco.MjData(arm), np.array([1.0, -2.0, 3.0, 1e6, 0.1])
    PassthroughController(describe(arm), {}).apply(arm, data, setpoints)
    np.testing.assert_array_equal(data.ctrl, setpoints)


def test_it_has_no_params_and_refuses_any(arm, describe):
    controller = PassthroughController(describe(arm), {})
    controller.configure({})
    with pytest.raises(ControllerSchemaViolation, match="a passthrough controller has no params; the patch has kp"):
        controller.configure({"kp": {"elbow": 1.0}})
    assert controller.params() == controller.schema() == {}
