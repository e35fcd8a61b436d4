"""Scaling actuators: motors stay as strong as they are, servos are told lengths in the new size."""

from typing import Any

import mujoco
import numpy as np

from urlab.compile.scaling_coordinates import Coordinates

_PID = int(mujoco.mjtDyn.mjDYN_PID)


def scale_actuators(spec: Any, coordinates: Coordinates) -> None:
    """Scale ranges of lengths and setpoints; forces, gains and gears of one kind stay."""
    for actuator in spec.actuators:
        length, setpoint = coordinates.of_actuator(actuator), coordinates.of_setpoint(actuator)
        actuator.lengthrange *= length
        actuator.cranklength *= coordinates.factor
        actuator.ctrlrange *= setpoint
        actuator.actrange *= setpoint
        actuator.velrange *= setpoint
        if int(actuator.dyntype) == _PID:
            actuator.dynprm[:2] *= setpoint  # the integral's bound and the setpoint's top speed
        if np.any(actuator.gear[:3]):
            actuator.gear[3:] *= coordinates.factor  # its coordinate is a length, to which it adds angles
