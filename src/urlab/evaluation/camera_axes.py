"""Two ways to say where a camera looks.

The protocol's cameras look along +X, with +Y to the left and +Z up; MuJoCo's look along -Z, with +X right and +Y up.
"""

from collections.abc import Sequence

from urlab.geometry import Quat, multiply, normalised

_PROTOCOL_IN_MUJOCO: Quat = (0.5, -0.5, 0.5, 0.5)
_MUJOCO_IN_PROTOCOL: Quat = (0.5, 0.5, -0.5, -0.5)


def mujoco_quat(protocol_wxyz: Sequence[float]) -> Quat:
    """MuJoCo's orientation of a camera whose orientation the protocol gives; both w, x, y, z."""
    return multiply(normalised(protocol_wxyz), _MUJOCO_IN_PROTOCOL)


def protocol_quat(mujoco_wxyz: Sequence[float]) -> Quat:
    """The protocol's orientation of a camera whose orientation MuJoCo gives; both w, x, y, z, and w is not negative."""
    w, x, y, z = multiply(normalised(mujoco_wxyz), _PROTOCOL_IN_MUJOCO)
    return (w, x, y, z) if w >= 0 else (-w, -x, -y, -z)
