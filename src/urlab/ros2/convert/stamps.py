"""Times and headers: every stamp is the simulation time of the state or the picture that is shown."""

from typing import Any

from urlab.ros2.messages import make, typestore
from urlab_wire.ops.stepping import ClockBlock, split_s

_Time: Any = typestore.types["builtin_interfaces/msg/Time"]
_Header: Any = typestore.types["std_msgs/msg/Header"]
"""Made often enough that the checks of `make` would show."""

_LAST_S = 2**31 - 1
"""ROS counts seconds in 32 bits with a sign; later times stand still."""


def time_message(clock: ClockBlock) -> Any:
    """builtin_interfaces/Time."""
    return _time(clock.sec, clock.nsec)


def time_of_s(seconds: float) -> Any:
    """builtin_interfaces/Time of seconds, split as the server splits those of its states."""
    return _time(*split_s(seconds))


def header(stamp: Any, frame_id: str) -> Any:
    """std_msgs/Header."""
    return _Header(stamp=stamp, frame_id=frame_id)


def _time(sec: int, nsec: int) -> Any:
    return _Time(sec=min(max(sec, -_LAST_S), _LAST_S), nanosec=nsec)


def clock(now: ClockBlock) -> Any:
    """rosgraph_msgs/Clock: a simulation time."""
    return make("rosgraph_msgs/msg/Clock", clock=time_message(now))
