import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urlab.compile.compiled_scene import ActuatorSlot, JointSlot
from urlab.control.pd import PDController
from urlab.control.pd_gains import PDGains, gains_patch
from urlab.errors import BadValue, ControllerSchemaViolation


def actuator(i: int, short: str, joint: str) -> ActuatorSlot:
    slot = JointSlot(i, f"robot_{joint}", joint, 3, slice(i, i + 1), slice(i, i + 1))
    return ActuatorSlot(i, f"robot_{short}", short, "motor", slot, None)


GAINS = PDGains.of((actuator(0, "hip_motor", "hip"), actuator(1, "knee", "knee"), actuator(2, "hip", "ankle")))


def test_every_joint_starts_with_the_documented_defaults():
    assert GAINS.params() == {
        "kp": {"hip": 100.0, "knee": 100.0, "ankle": 100.0},
        "kv": {"hip": 5.0, "knee": 5.0, "ankle": 5.0},
        "torque_limit": {"hip": 200.0, "knee": 200.0, "ankle": 200.0},
        "default_kp": 100.0,
        "default_kv": 5.0,
        "default_torque_limit": 200.0,
    }


def test_a_patch_changes_what_it_names_and_nothing_else():
    params = GAINS.patched({"kp": {"knee": 320}, "kv": None}).params()
    assert params["kp"] == {"hip": 100.0, "knee": 320.0, "ankle": 100.0}
    assert {field: value for field, value in params.items() if field != "kp"} == {
        field: value for field, value in GAINS.params().items() if field != "kp"
    }


def test_an_actuators_name_stands_for_its_joint():
    assert GAINS.patched({"kv": {"hip_motor": 1.0}}).params()["kv"] == {"hip": 1.0, "knee": 5.0, "ankle": 5.0}


def test_a_joints_own_name_wins_over_an_actuator_of_that_name():
    assert GAINS.patched({"kp": {"hip": 1.0}}).params()["kp"] == {"hip": 1.0, "knee": 100.0, "ankle": 100.0}


def test_a_new_default_rebinds_every_joint_that_the_patch_does_not_name():
    tuned = GAINS.patched({"kp": {"hip": 1.0, "knee": 2.0}})
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
        GAINS.patched(patch)
    assert said in refusal.value.message


numbers = st.floats() | st.integers() | st.integers(10**300, 10**400)
junk = st.none() | st.booleans() | numbers | st.text(max_size=3) | st.lists(st.floats(), max_size=2)
names = st.sampled_from(["hip", "knee", "ankle", "hip_motor", "nobody"]) | st.text(max_size=3)
fields = st.sampled_from(sorted(GAINS.params())) | st.text(max_size=3)
patches = st.dictionaries(fields, junk | st.dictionaries(names, junk, max_size=3), max_size=4)


@given(st.lists(patches, max_size=4))
def test_whatever_is_thrown_at_them_gains_stay_finite_not_negative_and_all_or_nothing(stream):
    gains = GAINS
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
    params = GAINS.patched({"kp": kp, "kv": kv, "default_kp": default_kp}).params()
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
