import pytest

from urlab.control import PDController, gains_patch
from urlab.errors import BadValue


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
