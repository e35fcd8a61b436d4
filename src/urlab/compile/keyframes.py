"""Keyframes in a composed scene: what a robot's file says about world poses moves with the robot."""

from collections.abc import Sequence
from typing import Any

import mujoco

from urlab.compile.assemble import PlacedActor
from urlab.compile.bind import owner_of
from urlab.geometry import Pose


def move_keyframes(model: Any, spec: Any, placed: Sequence[PlacedActor]) -> None:
    """Shift free joints and mocap bodies of every keyframe by the pose of the actor that it belongs to.

    What a keyframe leaves out, MuJoCo has filled in from the placed bodies: that is where it belongs already.
    """
    by_name = {one.actor.name: one for one in placed}
    for index in range(model.nkey):
        name = model.key(index).name
        owner = by_name.get(owner_of(name, frozenset(by_name)) or "")
        if owner is not None and not owner.actor.pose.is_identity:
            _move(model, index, owner)
            _write_back(model, index, spec.key(name))


def _move(model: Any, index: int, owner: PlacedActor) -> None:
    authored = owner.blueprint.spec.key(model.key(index).name.removeprefix(f"{owner.actor.name}_"))
    bodies, pose = [model.body(name).id for name in owner.body_names], owner.actor.pose
    if len(authored.qpos):
        for start in _free_joints(model, bodies):
            _shift(model.key_qpos[index, start : start + 3], pose)
            _turn(model.key_qpos[index, start + 3 : start + 7], pose)
    mocaps = [int(model.body_mocapid[body]) for body in bodies if model.body_mocapid[body] >= 0]
    for mocap in mocaps if len(authored.mpos) else ():
        _shift(model.key_mpos[index].reshape(-1, 3)[mocap], pose)
    for mocap in mocaps if len(authored.mquat) else ():
        _turn(model.key_mquat[index].reshape(-1, 4)[mocap], pose)


def _free_joints(model: Any, bodies: Sequence[int]) -> list[int]:
    """Where in qpos the free joints of those bodies begin."""
    firsts = [int(model.body_jntadr[body]) for body in bodies]
    free = int(mujoco.mjtJoint.mjJNT_FREE)
    return [int(model.jnt_qposadr[joint]) for joint in firsts if joint >= 0 and int(model.jnt_type[joint]) == free]


def _shift(position: Any, pose: Pose) -> None:
    position[:] = pose.apply(Pose(tuple(position))).pos


def _turn(quat_wxyz: Any, pose: Pose) -> None:
    quat_wxyz[:] = pose.apply(Pose(quat_wxyz=tuple(quat_wxyz))).quat_wxyz


def _write_back(model: Any, index: int, key: Any) -> None:
    key.qpos = model.key_qpos[index]
    key.mpos = model.key_mpos[index].reshape(-1)
    key.mquat = model.key_mquat[index].reshape(-1)
