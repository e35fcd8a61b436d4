"""Where each arm's numbers are in an action of joint positions: arm, gripper, arm, gripper."""

from dataclasses import dataclass

from urlab.evaluation.embodiments import Arm, Embodiment


@dataclass(frozen=True, slots=True)
class ArmSlots:
    """One arm's shares of a vector of ``action_length`` numbers."""

    arm: Arm
    joints: slice
    gripper: slice


def slots_of(embodiment: Embodiment) -> tuple[ArmSlots, ...]:
    """Every arm's shares, in the order of the arms."""
    slots, start = [], 0
    for arm in embodiment.arms:
        middle = start + len(arm.joints)
        end = middle + len(arm.gripper.joints)
        slots.append(ArmSlots(arm, slice(start, middle), slice(middle, end)))
        start = end
    return tuple(slots)
