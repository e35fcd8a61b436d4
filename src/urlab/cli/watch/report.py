"""What was watched, as one JSON document."""

import math
from typing import Any

from urlab.cli.watch.reading import CameraReading, Numbers, Reading, RobotReading
from urlab.cli.watch.window import Rate


def report(reading: Reading) -> dict[str, Any]:
    """Plain data. Numbers that JSON cannot say (NaN, infinity) are null."""
    status = reading.status
    return {
        "endpoint": reading.endpoint,
        "state_endpoint": reading.state_endpoint,
        "seconds": round(reading.seconds, 3),
        "state": None if status is None else status.state.value,
        "mode": None if status is None else status.mode,
        "paused": None if status is None else status.paused,
        "sim_time_s": reading.sim_time_s,
        "real_time_factor": _rounded(reading.real_time_factor),
        "interruptions": reading.interruptions,
        "problem": reading.problem,
        "topics": {topic: rate_in_json(rate) for topic, rate in sorted(reading.topics.items())},
        "robots": {name: _robot(robot) for name, robot in reading.robots.items()},
        "cameras": {name: _camera(camera) for name, camera in reading.cameras.items()},
    }


def rate_in_json(rate: Rate) -> dict[str, Any]:
    """A rate."""
    return {"rate_hz": round(rate.hz, 2), "bytes_per_s": round(rate.bytes_per_s)}


def _robot(robot: RobotReading) -> dict[str, Any]:
    return {
        "joints": {name: {"pos": _value(one.pos), "vel": _value(one.vel)} for name, one in robot.joints.items()},
        "sensors": {name: [_finite(number) for number in values] for name, values in robot.sensors.items()},
        "twist": None if robot.twist is None else [_finite(number) for number in robot.twist],
    }


def _camera(camera: CameraReading) -> dict[str, Any]:
    return {"mode": camera.mode, "resolution": list(camera.resolution), **rate_in_json(camera.rate)}


def _value(numbers: Numbers) -> float | list[float | None] | None:
    """One number as itself, several as a list."""
    return _finite(numbers[0]) if len(numbers) == 1 else [_finite(number) for number in numbers]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)
