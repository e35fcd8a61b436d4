import numpy as np

from urlab.evaluation.slots import slots_of


def test_the_slots_cover_an_action_in_order_without_gaps(embodiment):
    entries = np.arange(embodiment.action_length)
    covered = [part for slot in slots_of(embodiment) for part in (*entries[slot.joints], *entries[slot.gripper])]
    assert covered == list(entries)


def test_a_slot_holds_the_joints_of_its_own_arm(embodiment):
    for slot in slots_of(embodiment):
        assert embodiment.joints[slot.joints] == slot.arm.joints
        assert embodiment.joints[slot.gripper] == slot.arm.gripper.joints
