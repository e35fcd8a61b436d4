"""What ROS asks of a robot, as setpoints: checked whole, or refused whole with `BadCommand`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import mujoco
import numpy as np

from urlab.ros2.frames import HINGE, SLIDE
from urlab_client import Actuator, ActuatorType, ControlMode, URLabArticulation, URLabPDController

Setpoints = dict[str, float]
"""By an actuator's short name."""


class BadCommand(ValueError):
    """A command that cannot be followed; the message says what was asked and what exists. Nothing of it is applied."""


class Quantity(StrEnum):
    """The array of a JointState that an actuator's setpoint is in."""

    POSITION = "position"
    VELOCITY = "velocity"
    EFFORT = "effort"


_BY_TYPE = {
    ActuatorType.POSITION: Quantity.POSITION,
    ActuatorType.VELOCITY: Quantity.VELOCITY,
    ActuatorType.INT_VELOCITY: Quantity.VELOCITY,
}
_INTEGRATOR = int(mujoco.mjtDyn.mjDYN_INTEGRATOR)
_AFFINE = int(mujoco.mjtBias.mjBIAS_AFFINE)


class JointCommand:
    """sensor_msgs/JointState -> setpoints of the actuators that drive the joints it names.

    A joint is named by its short name; an actuator that drives no single joint (a gripper's tendon) by its own. Each
    takes its number from the array that it understands: ``position`` for position servos and for joints under a PD
    controller, ``velocity`` for velocity servos, ``effort`` for all others, which get it as their raw signal. Arrays
    that no actuator needs may be there. Made once per scene; any thread.
    """

    type_name = "sensor_msgs/msg/JointState"

    def __init__(self, model: Any, robot: URLabArticulation) -> None:
        self._prefix = robot.prefix
        self._drives: dict[str, list[tuple[str, Quantity]]] = {}
        for actuator in robot.actuators.values():
            drive = (actuator.name, quantity_of(model, robot, actuator))
            self._drives.setdefault(actuator.joint or actuator.name, []).append(drive)

    @property
    def understood(self) -> dict[str, list[str]]:
        """The names that may be commanded, each with the arrays that its numbers may be in."""
        return {name: [quantity.value for _, quantity in drives] for name, drives in self._drives.items()}

    def convert(self, message: Any) -> Setpoints:
        """The setpoints; `BadCommand` on unknown names, wrong lengths, numbers that are not finite."""
        names, given = list(message.name), self._arrays(message)
        self._check_names(names)
        setpoints: Setpoints = {}
        for place, name in enumerate(names):
            numbers = {
                drive: float(given[quantity][place]) for drive, quantity in self._drives[name] if quantity in given
            }
            if not numbers:
                self._refuse(f"nothing says what {name!r} is to do: it wants {self._wants(name)}")
            setpoints |= numbers
        return setpoints

    def _arrays(self, message: Any) -> dict[Quantity, Sequence[float]]:
        given = {quantity: getattr(message, quantity.value) for quantity in Quantity}
        for quantity, values in given.items():
            if len(values) not in (0, len(message.name)):
                self._refuse(f"{len(message.name)} names and {len(values)} numbers of {quantity.value}")
            _check_finite(f"{self._prefix!r}: {quantity.value}", values)
        return {quantity: values for quantity, values in given.items() if len(values)}

    def _check_names(self, names: Sequence[str]) -> None:
        unknown = [name for name in names if name not in self._drives]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if not names:
            self._refuse("it names no joint")
        if unknown:
            self._refuse(f"nothing drives {_listed(unknown)}")
        if twice:
            self._refuse(f"{_listed(twice)} is there more than once")

    def _wants(self, name: str) -> str:
        return " or ".join(quantity.value for _, quantity in self._drives[name])

    def _refuse(self, why: str) -> None:
        known = ", ".join(f"{name} ({self._wants(name)})" for name in self._drives) or "nothing"
        raise BadCommand(f"joint command for {self._prefix!r}: {why}; it can be told: {known}")


class ControlCommand:
    """std_msgs/Float64MultiArray -> setpoints of all actuators of a robot, in the model's order.

    The index is the actuator's place among those of its robot, which is its id where there is one robot. Made once per
    scene; any thread.
    """

    type_name = "std_msgs/msg/Float64MultiArray"

    def __init__(self, robot: URLabArticulation) -> None:
        self._prefix, self._actuators = robot.prefix, list(robot.actuators)

    def convert(self, message: Any) -> Setpoints:
        """The setpoints; `BadCommand` on a wrong length, and on numbers that are not finite."""
        values = [float(one) for one in message.data]
        if len(values) != len(self._actuators):
            raise BadCommand(
                f"control for {self._prefix!r} has {len(values)} numbers; "
                f"it has {len(self._actuators)} actuators: {', '.join(self._actuators) or 'none'}"
            )
        _check_finite(f"control for {self._prefix!r}", values)
        return dict(zip(self._actuators, values, strict=True))


def twist_command(message: Any) -> tuple[float, float, float]:
    """geometry_msgs/Twist -> (vx, vy, yaw rate) in m/s and rad/s, in the robot's frame; the rest has no meaning here.

    `BadCommand` when any of its numbers is not finite.
    """
    linear, angular = message.linear, message.angular
    parts = {"linear": (linear.x, linear.y, linear.z), "angular": (angular.x, angular.y, angular.z)}
    for name, values in parts.items():
        _check_finite(f"twist.{name}", values)
    return float(linear.x), float(linear.y), float(angular.z)


def quantity_of(model: Any, robot: URLabArticulation, actuator: Actuator) -> Quantity:
    """What an actuator's setpoint is: of a PD controller, of a servo, or of neither."""
    joint = robot.joints.get(actuator.joint or "")
    has_pd = isinstance(robot.controller, URLabPDController) and robot.control_mode is ControlMode.UE_CONTROLLER
    if has_pd and joint is not None and joint.jnt_type in (HINGE, SLIDE):
        return Quantity.POSITION
    if actuator.type in _BY_TYPE:
        return _BY_TYPE[actuator.type]
    is_servo = int(model.actuator_biastype[actuator.id]) == _AFFINE
    if not is_servo or actuator.type not in (None, ActuatorType.MOTOR, ActuatorType.GENERAL):
        return Quantity.EFFORT
    return _general_quantity(model, actuator.id)


def _general_quantity(model: Any, actuator: int) -> Quantity:
    """What a general actuator's setpoint is, by what its force depends on. Some servers call it a motor."""
    on_position, on_velocity = (float(one) != 0.0 for one in model.actuator_biasprm[actuator][1:3])
    if on_position:
        is_integrated = int(model.actuator_dyntype[actuator]) == _INTEGRATOR
        return Quantity.VELOCITY if is_integrated else Quantity.POSITION
    return Quantity.VELOCITY if on_velocity else Quantity.EFFORT


def _check_finite(what: str, values: Iterable[float]) -> None:
    numbers = np.fromiter(values, np.float64)
    if not np.isfinite(numbers).all():
        raise BadCommand(f"{what} must be finite, not {numbers.tolist()}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
