"""How hands move: smoothly, within what arms and inverse kinematics can follow.

A motion is a generator that yields once per control step, after it has set the hand's next command.
"""

import math
from collections.abc import Iterator

from urlab.evaluation.policies.oracle.hand import Hand
from urlab.geometry import Pose

Motion = Iterator[None]

CONTROL_HZ = 30
FASTEST_M_S = 0.25
FASTEST_RAD_S = 1.5
CAREFUL_M_S = 0.10
"""For the last centimetres before a contact."""

_CLOSE_M, _CLOSE_RAD = 0.002, 0.02
_SETTLE_STEPS = 20
_GRIP_STEPS = 15


def wait(steps: int) -> Motion:
    """Hold still for so many control steps."""
    for _ in range(steps):
        yield


def move(hand: Hand, target: Pose, *, fastest_m_s: float = FASTEST_M_S) -> Motion:
    """In a straight line, starting and ending at rest; then until the hand is there, if it gets there."""
    yield from _glide(hand, target, fastest_m_s)
    yield from arrive(hand)


def arrive(hand: Hand) -> Motion:
    """Until the hand is where its command is, or does not get there in time."""
    for _ in range(_SETTLE_STEPS):
        if hand.measured.distance_m(hand.command) < _CLOSE_M and hand.measured.angle_rad(hand.command) < _CLOSE_RAD:
            return
        yield


def travel(hand: Hand, target: Pose, height_z: float) -> Motion:
    """Up to a height at which nothing is in the way, across, and down."""
    height_z = max(height_z, target.pos[2])
    start = hand.command
    if _at_height(start, height_z).distance_m(_at_height(target, height_z)) > _CLOSE_M:
        yield from _glide(hand, _at_height(start, max(height_z, start.pos[2])), FASTEST_M_S)
        yield from _glide(hand, _at_height(target, height_z), FASTEST_M_S)
    yield from move(hand, target)


def grip(hand: Hand, opening: float) -> Motion:
    """Open or close, and give the fingers time."""
    hand.opening = opening
    yield from wait(_GRIP_STEPS)


def together(*motions: Motion) -> Motion:
    """All at once, until the last is done."""
    running = list(motions)
    while running:
        running = [motion for motion in running if _advance(motion)]
        if running:
            yield


def _glide(hand: Hand, target: Pose, fastest_m_s: float) -> Motion:
    start = hand.command
    for share in _shares(_seconds(start, target, fastest_m_s)):
        hand.command = start.towards(target, share)
        yield


def _at_height(pose: Pose, z: float) -> Pose:
    return Pose((pose.pos[0], pose.pos[1], z), pose.quat_wxyz)


def _seconds(start: Pose, end: Pose, fastest_m_s: float) -> float:
    """A smooth motion is half as fast again in the middle as on average."""
    return 1.5 * max(start.distance_m(end) / fastest_m_s, start.angle_rad(end) / FASTEST_RAD_S)


def _shares(seconds: float) -> Iterator[float]:
    steps = max(1, math.ceil(seconds * CONTROL_HZ))
    for step in range(1, steps + 1):
        time = step / steps
        yield time * time * (3 - 2 * time)


def _advance(motion: Motion) -> bool:
    try:
        next(motion)
    except StopIteration:
        return False
    return True
