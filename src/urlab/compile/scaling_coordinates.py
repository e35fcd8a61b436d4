"""Which coordinates of a model are lengths: those of joints, tendons and actuators, and what servos are told."""

from typing import Any

import mujoco
import numpy as np

from urlab.errors import EditError

_FREE, _SLIDE = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_WRAP_JOINT = int(mujoco.mjtWrap.mjWRAP_JOINT)
_TRN = mujoco.mjtTrn
_OF_JOINT = (int(_TRN.mjTRN_JOINT), int(_TRN.mjTRN_JOINTINPARENT))
_FIXED, _PID = int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_PID)
_AFFINE = int(mujoco.mjtBias.mjBIAS_AFFINE)


class Coordinates:
    """By what the coordinates of a spec are multiplied: ``factor`` for lengths, 1 for angles."""

    def __init__(self, spec: Any, factor: float) -> None:
        self.factor = factor
        self._joints = {joint.name: int(joint.type) for joint in spec.joints}
        self._tendons = {tendon.name: tendon for tendon in spec.tendons}

    def of_joint(self, name: str) -> float:
        """A slide joint's position is a length; a free joint has no single coordinate."""
        return self.factor if self._joints.get(name) == _SLIDE else 1.0

    def is_spatial(self, tendon: str) -> bool:
        """Whether the tendon has a path through space, rather than adding up joints."""
        return int(self._tendons[tendon].path[0].type) != _WRAP_JOINT

    def of_tendon(self, name: str) -> float:
        """A spatial tendon is as long as its path, a fixed one is what its joints add up to.

        EditError when it adds angles to lengths: its coefficients would have to change, and a spec cannot change them.
        """
        if self.is_spatial(name):
            return self.factor
        factors = {self.of_joint(wrap.target.name) for wrap in self._tendons[name].path}
        if len(factors) > 1:
            raise EditError(f"tendon {name!r} adds hinges to slide joints, so that it cannot be scaled")
        return factors.pop()

    def of_actuator(self, actuator: Any) -> float:
        """The length of its transmission, which is an angle when it only turns."""
        transmission = int(actuator.trntype)
        if transmission in _OF_JOINT and self._joints.get(actuator.target) != _FREE:
            return self.of_joint(actuator.target)
        if transmission in (*_OF_JOINT, int(_TRN.mjTRN_SITE)):
            return self.factor if np.any(actuator.gear[:3]) else 1.0
        if transmission == int(_TRN.mjTRN_TENDON):
            return self.of_tendon(actuator.target)
        return self.factor if transmission == int(_TRN.mjTRN_SLIDERCRANK) else 1.0

    def of_setpoint(self, actuator: Any) -> float:
        """What a servo is told is a coordinate of its transmission; what a motor is told is none."""
        return self.of_actuator(actuator) if _is_servo(actuator) else 1.0


def _is_servo(actuator: Any) -> bool:
    """Whether its force vanishes where the transmission's position, or velocity, is the control."""
    if int(actuator.gaintype) == _PID:
        return True
    if int(actuator.gaintype) != _FIXED or int(actuator.biastype) != _AFFINE or actuator.gainprm[0] == 0:
        return False
    _, position, velocity = actuator.biasprm[:3] / -actuator.gainprm[0]
    return bool(position == 1 or (position == 0 and velocity == 1))
