from dataclasses import replace

import mujoco
import numpy as np
import pytest

from urlab.control.pd import PDController
from urlab.errors import ControllerSchemaViolation

TWO_MOTORS_ON_ONE_JOINT = """
<mujoco>
  <worldbody><body><joint name="hinge" axis="0 1 0"/><geom size=".1"/></body></worldbody>
  <actuator><motor name="left" joint="hinge"/><motor name="right" joint="hinge"/></actuator>
</mujoco>
"""

GAINS = {
    "default_kp": 60.0,
    "default_torque_limit": 7.0,
    "kp": {"shoulder": 80.0, "slider": 300.0},
    "kv": {"elbow": 1.5},
    "torque_limit": {"slider": 12.0},
}
BOUND = {0: "slider", 2: "shoulder", 3: "elbow"}


def reference_ctrl(model, data, setpoints, params):
    """The law, one joint at a time."""
    ctrl = list(setpoints)
    for actuator, name in BOUND.items():
        joint = model.joint(name)
        target = setpoints[actuator]
        if model.jnt_limited[joint.id]:
            target = min(max(target, model.jnt_range[joint.id, 0]), model.jnt_range[joint.id, 1])
        q, qd = data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]]
        tau = params["kp"][name] * (target - q) - params["kv"][name] * qd
        limit = params["torque_limit"][name]
        ctrl[actuator] = min(max(tau, -limit), limit)
    return np.array(ctrl)


def test_the_law_equals_a_loop_over_joints_bit_for_bit_in_a_running_simulation(arm, describe):
    controller = PDController(describe(arm), GAINS)
    data, rng = mujoco.MjData(arm), np.random.default_rng(7)
    saturated = 0
    for step in range(400):
        if step % 20 == 0:
            setpoints = rng.uniform(-2.0, 2.0, arm.nu)
        expected = reference_ctrl(arm, data, setpoints, controller.params())
        controller.apply(arm, data, setpoints)
        np.testing.assert_array_equal(data.ctrl, expected)
        saturated += int(abs(data.ctrl[2]) == 7.0)
        mujoco.mj_step(arm, data)
    assert 0 < saturated < 400


def test_targets_beyond_a_joint_limit_are_pulled_back_to_it(arm, describe):
    controller = PDController(describe(arm), {"default_kp": 10.0, "default_kv": 0.0})
    data = mujoco.MjData(arm)
    controller.apply(arm, data, np.array([5.0, 0.0, -9.0, 9.0, 0.0]))
    np.testing.assert_allclose(data.ctrl[[0, 2, 3]], [10 * 0.1, -10 * np.pi / 3, 10 * 9.0], rtol=0, atol=1e-12)


def test_actuators_that_drive_no_single_joint_get_their_setpoint_as_it_is(arm, describe):
    data = mujoco.MjData(arm)
    PDController(describe(arm), {}).apply(arm, data, np.array([0.0, 0.25, 0.0, 0.0, -3.0]))
    assert data.ctrl[1] == 0.25
    assert data.ctrl[4] == -3.0


def test_an_articulation_leaves_the_controls_of_others_alone(describe):
    two = mujoco.MjModel.from_xml_string(TWO_MOTORS_ON_ONE_JOINT)
    whole = describe(two)
    first_only = replace(whole, actuators=whole.actuators[:1])
    data = mujoco.MjData(two)
    data.ctrl[1] = 4.0
    PDController(first_only, {}).apply(two, data, np.array([0.1]))
    assert data.ctrl.tolist() == [100.0 * 0.1, 4.0]


def test_targets_of_any_finite_size_saturate_quietly(arm, describe):
    data = mujoco.MjData(arm)
    controller = PDController(describe(arm), {"default_kp": 3e38})
    controller.apply(arm, data, np.full(arm.nu, -1.7e308))
    assert data.ctrl[3] == -200.0


def test_the_ranges_follow_the_model_that_is_given(describe):
    def hinge(limits):
        return mujoco.MjModel.from_xml_string(
            f'<mujoco><compiler angle="radian"/><worldbody><body><joint name="h" {limits}/><geom size=".1"/>'
            '</body></worldbody><actuator><motor name="m" joint="h"/></actuator></mujoco>'
        )

    free, limited = hinge(""), hinge('range="-.5 .5"')
    controller = PDController(describe(free), {})
    ctrl = []
    for model in (free, limited, free):
        data = mujoco.MjData(model)
        controller.apply(model, data, np.array([1.0]))
        ctrl.append(data.ctrl[0])
    assert ctrl == [100.0, 50.0, 100.0]


def test_two_actuators_on_one_joint_share_its_gains(describe):
    model = mujoco.MjModel.from_xml_string(TWO_MOTORS_ON_ONE_JOINT)
    controller = PDController(describe(model), {"kp": {"left": 20.0}})
    data = mujoco.MjData(model)
    controller.apply(model, data, np.array([0.5, 1.0]))
    assert controller.params()["kp"] == {"hinge": 20.0}
    assert data.ctrl.tolist() == [10.0, 20.0]


def test_configured_gains_take_effect_and_a_rejected_patch_leaves_the_law_as_it_was(arm, describe):
    controller = PDController(describe(arm), {"default_kv": 0.0})
    data, setpoints = mujoco.MjData(arm), np.array([0.0, 0.0, 0.5, 0.0, 0.0])
    controller.configure({"kp": {"shoulder": 30.0}})
    with pytest.raises(ControllerSchemaViolation):
        controller.configure({"kp": {"shoulder": 1.0}, "kv": {"shoulder": -1.0}})
    controller.apply(arm, data, setpoints)
    assert data.ctrl[2] == 15.0


def test_an_articulation_without_bindable_actuators_is_legal(describe):
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint name="b" type="ball"/><geom size=".1"/></body></worldbody>'
        '<actuator><motor name="m" joint="b"/></actuator></mujoco>'
    )
    controller, data = PDController(describe(model), {"default_kp": 1.0}), mujoco.MjData(model)
    controller.apply(model, data, np.array([0.75]))
    assert data.ctrl.tolist() == [0.75]
    assert controller.params()["kp"] == {}


def test_the_schema_speaks_the_words_of_the_protocol(arm, describe):
    schema = PDController(describe(arm), {}).schema()
    assert schema["kp"] == {"type": "per_joint", "dtype": "float32", "min": 0}
    assert schema["default_torque_limit"] == {"type": "scalar", "dtype": "float32", "min": 0}
    assert set(schema) == set(PDController(describe(arm), {}).params())
