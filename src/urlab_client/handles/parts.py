"""Which elements of the compiled model belong to which articulation."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import mujoco

from urlab_client.enums import ActuatorType
from urlab_client.handles.actuator import Actuator
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.body import Body
from urlab_client.handles.joint import Joint
from urlab_client.handles.sensor import Sensor

Bucket = list[tuple[int, str]]
"""Ids and short names of one articulation's elements of one kind, in id order."""

_OBJ = mujoco.mjtObj
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_DIMS = {_FREE: (7, 6), int(mujoco.mjtJoint.mjJNT_BALL): (4, 3)}
_JOINT_DRIVEN = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


class ModelParts:
    """Sorts the named elements of a model by articulation, once for all of them.

    An element belongs to the prefix P when its name is P or begins with ``P_``; the longest such prefix wins.
    """

    def __init__(self, model: Any, prefixes: Collection[str]) -> None:
        self._model = model
        self._actuators = _buckets(model, _OBJ.mjOBJ_ACTUATOR, model.nu, prefixes)
        self._joints = _buckets(model, _OBJ.mjOBJ_JOINT, model.njnt, prefixes)
        self._sensors = _buckets(model, _OBJ.mjOBJ_SENSOR, model.nsensor, prefixes)
        self._bodies = _buckets(model, _OBJ.mjOBJ_BODY, model.nbody, prefixes)

    def give_to(self, articulation: URLabArticulation, actuator_types: Mapping[str, str]) -> None:
        """Attach an articulation's parts, and tell it its root."""
        prefix = articulation.prefix
        articulation.attach(
            self._make_actuators(articulation, actuator_types),
            self._make_joints(prefix),
            {short: self._sensor(i, short, articulation) for i, short in self._sensors[prefix]},
            {short: Body(short, i, articulation) for i, short in self._bodies[prefix]},
        )
        self._set_root(articulation)

    def _make_actuators(self, articulation: URLabArticulation, types: Mapping[str, str]) -> dict[str, Actuator]:
        made = {}
        for local, (i, short) in enumerate(self._actuators[articulation.prefix]):
            kind = types.get(short) or types.get(f"{articulation.prefix}_{short}")
            made[short] = self._actuator(i, short, kind, articulation, local)
        return made

    def _actuator(self, i: int, short: str, kind: str | None, owner: URLabArticulation, local: int) -> Actuator:
        model = self._model
        gainprm = model.actuator_gainprm[i].copy()
        return Actuator(
            name=short,
            id=i,
            type=ActuatorType(kind) if kind in set(ActuatorType) else None,
            joint=self._driven_joint(i, owner.prefix),
            ctrlrange=_range(model.actuator_ctrllimited[i], model.actuator_ctrlrange[i]),
            forcerange=_range(model.actuator_forcelimited[i], model.actuator_forcerange[i]),
            kp=float(gainprm[0]),
            kv=float(gainprm[1]),
            trn_type=int(model.actuator_trntype[i]),
            gear=model.actuator_gear[i].copy(),
            gainprm=gainprm,
            dynprm=model.actuator_dynprm[i].copy(),
            _articulation=owner,
            _local=local,
        )

    def _driven_joint(self, actuator: int, prefix: str) -> str | None:
        if int(self._model.actuator_trntype[actuator]) not in _JOINT_DRIVEN:
            return None
        name = mujoco.mj_id2name(self._model, _OBJ.mjOBJ_JOINT, int(self._model.actuator_trnid[actuator, 0]))
        return _short(name, prefix) if name else None

    def _make_joints(self, prefix: str) -> dict[str, Joint]:
        made: dict[str, Joint] = {}
        qpos_local = qvel_local = 0
        for i, short in self._joints[prefix]:
            made[short] = joint = self._joint(i, short, qpos_local, qvel_local)
            qpos_local += joint.qpos_dim
            qvel_local += joint.qvel_dim
        return made

    def _joint(self, i: int, short: str, qpos_local: int, qvel_local: int) -> Joint:
        model = self._model
        kind = int(model.jnt_type[i])
        qpos_dim, qvel_dim = _DIMS.get(kind, (1, 1))
        return Joint(
            name=short,
            id=i,
            jnt_type=kind,
            body_id=int(model.jnt_bodyid[i]),
            qpos_offset=int(model.jnt_qposadr[i]),
            qpos_local_offset=qpos_local,
            qpos_dim=qpos_dim,
            qvel_offset=int(model.jnt_dofadr[i]),
            qvel_local_offset=qvel_local,
            qvel_dim=qvel_dim,
            range=_range(model.jnt_limited[i], model.jnt_range[i]),
        )

    def _sensor(self, i: int, short: str, owner: URLabArticulation) -> Sensor:
        model = self._model
        dim, kind, offset = int(model.sensor_dim[i]), int(model.sensor_type[i]), int(model.sensor_adr[i])
        return Sensor(short, i, dim, kind, offset, owner.observed)

    def _set_root(self, articulation: URLabArticulation) -> None:
        first = next(iter(articulation.joints.values()), None)
        if first is not None and first.jnt_type == _FREE:
            articulation.has_free_base = True
            articulation.free_joint = mujoco.mj_id2name(self._model, _OBJ.mjOBJ_JOINT, first.id)
            articulation.free_joint_id = first.id
            articulation.qpos_offset, articulation.qvel_offset = first.qpos_offset, first.qvel_offset
            articulation.body_id = first.body_id
        elif articulation.bodies:
            articulation.body_id = next(iter(articulation.bodies.values())).id


def owner_of(name: str, prefixes: Collection[str]) -> str | None:
    """The longest prefix that an element's name belongs to, or None."""
    if name in prefixes:
        return name
    end = name.rfind("_")
    while end > 0:
        if name[:end] in prefixes:
            return name[:end]
        end = name.rfind("_", 0, end)
    return None


def _buckets(model: Any, kind: Any, count: int, prefixes: Collection[str]) -> defaultdict[str, Bucket]:
    buckets: defaultdict[str, Bucket] = defaultdict(list)
    for i in range(count):
        name = mujoco.mj_id2name(model, kind, i)
        owner = owner_of(name, prefixes) if name else None
        if owner is not None:
            buckets[owner].append((i, _short(name, owner)))
    return buckets


def _short(name: str, prefix: str) -> str:
    return name.removeprefix(f"{prefix}_")


def _range(limited: Any, bounds: Any) -> tuple[float, float] | None:
    return (float(bounds[0]), float(bounds[1])) if limited else None
