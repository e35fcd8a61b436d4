"""Which recorded joint drives which joint of the current model."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from urlab.compile.compiled_scene import JointSlot
from urlab.recording.recording import RecordedJoint

_FREE_QPOS_DIM = 7
_Indices = NDArray[np.intp]
_Key = str | None


@dataclass(frozen=True, slots=True, eq=False)
class JointMapping:
    """Columns of a recording (``*_from``) and the places in the model's full arrays that they go to (``*_to``).

    ``pairs`` is (recorded name, model name) in recorded order, ``missing`` are the model's joints that the
    recording does not drive, ``unused`` the recorded joints that drive nothing.
    """

    pairs: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    qpos_from: _Indices
    qpos_to: _Indices
    qvel_from: _Indices
    qvel_to: _Indices


def match_joints(recorded: Sequence[RecordedJoint], slots: Sequence[JointSlot]) -> JointMapping:
    """Decide which recorded joint drives which joint of the model; only joints of equal size match.

    Exact names come first. Then the model's short names (without the prefix) are compared with the recorded name
    as it is, without its first ``word_``, without its first two, and so on: prefixes may hold underscores. Last, a
    free joint that alone is left on both sides. A match must be unique among what is left.
    """
    found = _Matcher(list(recorded), list(slots))
    found.match(lambda joint: joint.name, lambda slot: slot.name)
    for depth in range(1 + max((joint.name.count("_") for joint in recorded), default=0)):
        found.match(partial(_tail, depth=depth), lambda slot: slot.short)
    found.match(
        lambda joint: "free" if joint.qpos_dim == _FREE_QPOS_DIM else None,
        lambda slot: "free" if _width(slot.qpos) == _FREE_QPOS_DIM else None,
    )
    return _mapping(recorded, slots, found.slot_of)


class _Matcher:
    """What is not matched yet, and what is (``slot_of``: recorded name -> slot)."""

    def __init__(self, joints: list[RecordedJoint], slots: list[JointSlot]) -> None:
        self._joints, self._slots = joints, slots
        self.slot_of: dict[str, JointSlot] = {}

    def match(self, joint_key: Callable[[RecordedJoint], _Key], slot_key: Callable[[JointSlot], _Key]) -> None:
        """Match joints and slots whose keys (None never matches) are equal and occur once on each side."""
        claims = Counter(joint_key(joint) for joint in self._joints)
        offers = Counter(slot_key(slot) for slot in self._slots)
        by_key = {slot_key(slot): slot for slot in self._slots}
        for joint in list(self._joints):
            key = joint_key(joint)
            if key and claims[key] == offers[key] == 1 and joint.qpos_dim == _width(by_key[key].qpos):
                self.slot_of[joint.name] = by_key[key]
                self._joints.remove(joint)
                self._slots.remove(by_key[key])


def _tail(joint: RecordedJoint, depth: int) -> _Key:
    """Its name ``a_b_c`` without the first ``depth`` words, or None when nothing is left."""
    words = joint.name.split("_", depth)
    return words[depth] if len(words) > depth else None


def _width(part: slice) -> int:
    return int(part.stop - part.start)


def _mapping(
    recorded: Sequence[RecordedJoint], slots: Sequence[JointSlot], slot_of: dict[str, JointSlot]
) -> JointMapping:
    columns: dict[str, list[int]] = {"qpos_from": [], "qpos_to": [], "qvel_from": [], "qvel_to": []}
    q = v = 0
    for joint in recorded:
        slot = slot_of.get(joint.name)
        if slot is not None:
            columns["qpos_from"] += range(q, q + joint.qpos_dim)
            columns["qvel_from"] += range(v, v + joint.qvel_dim)
            columns["qpos_to"] += range(slot.qpos.start, slot.qpos.stop)
            columns["qvel_to"] += range(slot.qvel.start, slot.qvel.stop)
        q, v = q + joint.qpos_dim, v + joint.qvel_dim
    driven = {slot.name for slot in slot_of.values()}
    arrays: dict[str, Any] = {key: np.array(value, dtype=np.intp) for key, value in columns.items()}
    return JointMapping(
        pairs=tuple((one.name, slot_of[one.name].name) for one in recorded if one.name in slot_of),
        missing=tuple(slot.name for slot in slots if slot.name not in driven),
        unused=tuple(one.name for one in recorded if one.name not in slot_of),
        **arrays,
    )
