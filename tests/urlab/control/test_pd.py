"""The PD controller: its law, its gains, and patches of them."""

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab.compile.compiled_scene import ActuatorSlot, JointSlot
from urlab.control.pd import PDController, PDGains, gains_patch
from urlab.errors import BadValue, ControllerSchemaViolation

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
    first_only = replace(whole, actuators=whole.actuators[:1], controls=whole.controls[:1])
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


def actuator(i: int, short: str, joint: str) -> ActuatorSlot:
    slot = JointSlot(i, f"robot_{joint}", joint, 3, slice(i, i + 1), slice(i, i + 1))
    return ActuatorSlot(i, f"robot_{short}", short, "motor", slot, None)


DEFAULT_GAINS = PDGains.of((actuator(0, "hip_motor", "hip"), actuator(1, "knee", "knee"), actuator(2, "hip", "ankle")))


def test_every_joint_starts_with_the_documented_defaults():
    assert DEFAULT_GAINS.params() == {
        "kp": {"hip": 100.0, "knee": 100.0, "ankle": 100.0},
        "kv": {"hip": 5.0, "knee": 5.0, "ankle": 5.0},
        "torque_limit": {"hip": 200.0, "knee": 200.0, "ankle": 200.0},
        "default_kp": 100.0,
        "default_kv": 5.0,
        "default_torque_limit": 200.0,
    }


def test_a_patch_changes_what_it_names_and_nothing_else():
    params = DEFAULT_GAINS.patched({"kp": {"knee": 320}, "kv": None}).params()
    assert params["kp"] == {"hip": 100.0, "knee": 320.0, "ankle": 100.0}
    assert {field: value for field, value in params.items() if field != "kp"} == {
        field: value for field, value in DEFAULT_GAINS.params().items() if field != "kp"
    }


def test_an_actuators_name_stands_for_its_joint():
    assert DEFAULT_GAINS.patched({"kv": {"hip_motor": 1.0}}).params()["kv"] == {"hip": 1.0, "knee": 5.0, "ankle": 5.0}


def test_a_joints_own_name_wins_over_an_actuator_of_that_name():
    assert DEFAULT_GAINS.patched({"kp": {"hip": 1.0}}).params()["kp"] == {"hip": 1.0, "knee": 100.0, "ankle": 100.0}


def test_a_new_default_rebinds_every_joint_that_the_patch_does_not_name():
    tuned = DEFAULT_GAINS.patched({"kp": {"hip": 1.0, "knee": 2.0}})
    params = tuned.patched({"default_kp": 60.0, "kp": {"knee": 80.0}}).params()
    assert params["kp"] == {"hip": 60.0, "knee": 80.0, "ankle": 60.0}
    assert params["default_kp"] == 60.0


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"kp": {"hip": -1.0}}, "kp['hip'] is -1.0, expected a number from 0 to 3.4e+38"),
        ({"kp": {"hip": math.nan}}, "kp['hip'] is nan"),
        ({"torque_limit": {"knee": math.inf}}, "torque_limit['knee'] is inf"),
        ({"kp": {"hip": 10**400}}, "kp['hip'] is 1000000"),
        ({"kp": {"hip": True}}, "kp['hip'] is True"),
        ({"kv": {"hip": "5"}}, "kv['hip'] is '5'"),
        ({"default_kv": [1.0]}, "default_kv is [1.0]"),
        ({"kp": 3.0}, "kp is 3.0, expected a map by joint; joints: ankle, hip, knee"),
        ({"kp": {"kne": 3.0}}, "no joint 'kne' under this controller (did you mean 'knee'?); joints: ankle, hip"),
        ({"kp": {4: 3.0}}, "kp: no joint 4 under this controller; joints"),
        ({"kp": {"hip": 1.0, "hip_motor": 2.0}}, "kp names joint 'hip' twice, once as 'hip_motor'"),
        ({"stiffness": 3.0}, "unknown param 'stiffness'; the params are default_kp, default_kv"),
        ({"defaultkp": 3.0}, "did you mean 'default_kp'?"),
        ([1.0], "params is [1.0], expected a map"),
    ],
)  # fmt: skip
def test_a_bad_patch_names_the_field_the_value_and_what_is_allowed(patch, said):
    with pytest.raises(ControllerSchemaViolation) as refusal:
        DEFAULT_GAINS.patched(patch)
    assert said in refusal.value.message


numbers = st.floats() | st.integers() | st.integers(10**300, 10**400)
junk = st.none() | st.booleans() | numbers | st.text(max_size=3) | st.lists(st.floats(), max_size=2)
names = st.sampled_from(["hip", "knee", "ankle", "hip_motor", "nobody"]) | st.text(max_size=3)
fields = st.sampled_from(sorted(DEFAULT_GAINS.params())) | st.text(max_size=3)
patches = st.dictionaries(fields, junk | st.dictionaries(names, junk, max_size=3), max_size=4)


@given(st.lists(patches, max_size=4))
def test_whatever_is_thrown_at_them_gains_stay_finite_not_negative_and_all_or_nothing(stream):
    gains = DEFAULT_GAINS
    for patch in stream:
        before = gains.params()
        try:
            gains = gains.patched(patch)
        except ControllerSchemaViolation:
            assert gains.params() == before
    for value in gains.params().values():
        flat = value.values() if isinstance(value, dict) else [value]
        assert all(type(v) is float and math.isfinite(v) and v >= 0 for v in flat)


amounts = st.floats(0, 1e6)
good_maps = st.dictionaries(st.sampled_from(["hip", "knee", "ankle"]), amounts)


@given(good_maps, good_maps, st.none() | amounts)
def test_a_good_patch_is_in_force_exactly_as_given(kp, kv, default_kp):
    params = DEFAULT_GAINS.patched({"kp": kp, "kv": kv, "default_kp": default_kp}).params()
    base = 100.0 if default_kp is None else default_kp
    assert params["kp"] == {"hip": base, "knee": base, "ankle": base} | kp
    assert params["kv"] == {"hip": 5.0, "knee": 5.0, "ankle": 5.0} | kv


# -- streamed gains -----------------------------------------------------------------------------------------------


def test_gains_by_joint_become_a_patch_by_gain():
    payload = b'{"hip": {"kp": 10, "kv": 0.5}, "knee": {"kp": 20.0, "torque_limit": 7}}'
    assert gains_patch(payload) == {
        "kp": {"hip": 10, "knee": 20.0},
        "kv": {"hip": 0.5},
        "torque_limit": {"knee": 7},
    }


def test_the_patch_configures_a_controller(arm, describe):
    controller = PDController(describe(arm), {})
    controller.configure(gains_patch(b'{"elbow": {"kp": 10}, "shoulder": {}}'))
    assert controller.params()["kp"] == {"slider": 100.0, "shoulder": 100.0, "elbow": 10.0}


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "empty frame"),
        (b"{", "broken JSON"),
        (b'{"hip": {"kp": NaN}}', "broken JSON"),
        (b"[1]", "set_gains takes a JSON object"),
        (b"\xff\xff", "set_gains takes a JSON object"),
        (b'{"hip": 3}', r"set_gains\['hip'\] is 3, expected an object with kp, kv, torque_limit"),
        (b'{"hip": {"ki": 3}}', r"set_gains\['hip'\] has no 'ki'; the gains are kp, kv, torque_limit"),
    ],
)
def test_a_payload_of_another_shape_is_refused(payload, said):
    with pytest.raises(BadValue, match=said):
        gains_patch(payload)
