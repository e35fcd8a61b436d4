"""What a script knows: the task, where everything is now, and the hands that it moves."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from urlab.evaluation.embodiments import TABLE_TOP_Z_M, Embodiment
from urlab.evaluation.policies.base import Action, Observation
from urlab.evaluation.policies.oracle.hand import Hand
from urlab.evaluation.policies.oracle.measures import bottom_z, top_z
from urlab.evaluation.policies.oracle.tool import measure_tools
from urlab.evaluation.simulation.kinematics import Array, Kinematics
from urlab.evaluation.tasks.object_spec import ObjectSpec
from urlab.evaluation.tasks.oracle_steps import Pick
from urlab.evaluation.tasks.pose import pose_of
from urlab.evaluation.tasks.table import TABLE, TABLE_NAME, TABLE_POSE_W
from urlab.evaluation.tasks.task import Task
from urlab.geometry import Pose, Vec3

_SLIPPED_M = 0.03
_CLEARANCE_M = 0.03


@dataclass(frozen=True)
class _Hold:
    """What a hand has: how it took it, and where the object was in the tool's frame then."""

    step: Pick
    in_tool: Vec3


class World:
    """One robot at one task. `see` is called with every observation, then the script moves on, then `action`."""

    def __init__(self, task: Task, embodiment: Embodiment, observation: Observation) -> None:
        self.task = task
        kinematics, tools = Kinematics(embodiment), measure_tools(embodiment)
        self._holds: dict[str, _Hold] = {}
        self._hands = [
            Hand(arm, tool, joints) for arm, tool, joints in zip(embodiment.arms, tools, kinematics.arms, strict=True)
        ]
        self._slots = [slot.joints for slot in embodiment.slots]
        for hand, ee_pose, joints in self._states(observation):
            hand.begin(ee_pose, joints)
        self.see(observation)

    def see(self, observation: Observation) -> None:
        """Take in where everything is."""
        privileged = observation["privileged"]
        poses = {name: pose_of(one["pos"], one["quat_wxyz"]) for name, one in privileged["objects"].items()}
        self._objects = {TABLE_NAME: TABLE_POSE_W, **poses}
        self._joints: dict[str, dict[str, float]] = privileged["object_joints"]
        for hand, ee_pose, joints in self._states(observation):
            hand.see(ee_pose, joints)

    def action(self) -> Action:
        """The next action of the protocol: where all hands shall be, in absolute terms."""
        arms = [hand.action() for hand in self._hands]
        return {"control_type": "ee_pose", "action": arms[0] if len(arms) == 1 else arms, "is_rel": False}

    @property
    def hands(self) -> tuple[Hand, ...]:
        """In the order of the robot's arms."""
        return tuple(self._hands)

    def hand(self, name: str | None) -> Hand:
        """By the arm's name; None is the only one."""
        if name is None:
            return self._hands[0]
        return next(hand for hand in self._hands if hand.name == name)

    def spec(self, name: str) -> ObjectSpec:
        """What an object (or the table) is; a link's name gives the whole object."""
        return TABLE if name == TABLE_NAME else self.task.objects[name.split("/")[0]]

    def pose(self, name: str) -> Pose:
        """Where an object (or one of its links, ``object/link``, or the table) is in the world."""
        root, _, link = name.partition("/")
        pose = self._objects[root]
        return pose.apply(self.spec(root).link(link).pose(self._joints[root])) if link else pose

    def joint(self, name: str, joint: str) -> float:
        """A joint's position, in radians or metres."""
        return self._joints[name][joint]

    def hold(self, hand: Hand, step: Pick) -> None:
        """The hand has the object that the step names, as it is now."""
        self._holds[hand.name] = _Hold(step, self._in_tool(hand, step.object))

    def release(self, hand: Hand) -> None:
        """The hand is empty."""
        self._holds.pop(hand.name, None)

    def held(self, hand: Hand) -> Pick | None:
        """How the hand took what it is meant to have."""
        hold = self._holds.get(hand.name)
        return hold.step if hold else None

    def is_in(self, hand: Hand, name: str) -> bool:
        """Whether the object is still where the hand took hold of it."""
        hold = self._holds.get(hand.name)
        return hold is not None and math.dist(hold.in_tool, self._in_tool(hand, name)) < _SLIPPED_M

    def safe_z(self, hand: Hand) -> float:
        """The height at which a tool, and what it holds, passes over everything on the table."""
        held = self.held(hand)
        others = [top_z(self.spec(name), pose) for name, pose in self._objects.items() if not self._is_held(name)]
        below = hand.tool.longest_m
        if held is not None:
            below = max(below, hand.command.pos[2] - bottom_z(self.spec(held.object), self.pose(held.object)))
        return max((TABLE_TOP_Z_M, *others)) + below + _CLEARANCE_M

    def _is_held(self, name: str) -> bool:
        return any(hold.step.object == name for hold in self._holds.values())

    def _in_tool(self, hand: Hand, name: str) -> Vec3:
        return hand.measured.inverse().apply(self.pose(name)).pos

    def _states(self, observation: Observation) -> Iterator[tuple[Hand, Any, Array]]:
        """Per hand, its pose in the protocol's terms and the joints of its arm."""
        poses = observation["ee_pose_state"]
        joints = np.asarray(observation["joint_position_state"], dtype=np.float64)
        per_hand = [poses] if len(self._hands) == 1 else poses
        for hand, pose, slot in zip(self._hands, per_hand, self._slots, strict=True):
            yield hand, pose, joints[slot]
