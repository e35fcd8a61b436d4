import math

import pytest

from urlab.control import TwistCommand
from urlab.errors import BadValue, DimMismatch


def test_a_twist_starts_at_rest():
    twist = TwistCommand()
    assert (twist.linear, twist.angular, twist.actions) == ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 0)


def test_only_the_planar_slots_are_kept():
    twist = TwistCommand()
    twist.set([0.4, -0.1, 9.0], [8.0, 7.0, 0.5], 3)
    assert (twist.linear, twist.angular, twist.actions) == ([0.4, -0.1, 0.0], [0.0, 0.0, 0.5], 3)
    assert (twist.linear, twist.angular) == ([0.4, -0.1, 0.0], [0.0, 0.0, 0.5])


def test_missing_slots_are_zero_and_missing_actions_stay():
    twist = TwistCommand()
    twist.set([1, 2, 3], [0, 0, 1], 1023)
    twist.set([0.5])
    assert (twist.linear, twist.angular, twist.actions) == ([0.5, 0.0, 0.0], [0.0, 0.0, 0.0], 1023)


def test_a_twist_is_not_clamped():
    twist = TwistCommand()
    twist.set([50.0, -50.0], [0, 0, 30.0])
    assert (twist.linear, twist.angular) == ([50.0, -50.0, 0.0], [0.0, 0.0, 30.0])


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (([math.nan],), BadValue),
        (([1.0, 0.0, math.inf],), BadValue),
        (([1.0], [10**400]), BadValue),
        (([1.0], ["fast"]), BadValue),
        (([1.0], [True]), BadValue),
        (([1.0, 2.0, 3.0, 4.0],), DimMismatch),
        (([1.0], None, -1), BadValue),
        (([1.0], None, 1024), BadValue),
        (([1.0], None, 1.5), BadValue),
        (([1.0], None, True), BadValue),
    ],
)
def test_a_bad_command_is_refused_whole(command, error):
    twist = TwistCommand()
    twist.set([0.1, 0.2], [0, 0, 0.3], 5)
    with pytest.raises(error):
        twist.set(*command)
    assert (twist.linear, twist.angular, twist.actions) == ([0.1, 0.2, 0.0], [0.0, 0.0, 0.3], 5)
