"""From a handshake to handles: the local model, the articulations with their parts, the entities and the cameras."""

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import mujoco
import numpy as np
import numpy.typing as npt

from urlab_client.enums import ActuatorType, CameraMode, coerce
from urlab_client.handles.articulation import URLabArticulation
from urlab_client.handles.camera import GLOBAL, URLabCameraView
from urlab_client.handles.controller import make_controller
from urlab_client.handles.entity import Root, URLabEntity
from urlab_client.handles.parts import Actuator, Body, Joint, Sensor
from urlab_client.lookup import FixedTable
from urlab_wire.enums import ControlMode
from urlab_wire.ops.session import ArticulationBlock, CameraTopic, EntityBlock, HelloReply

if TYPE_CHECKING:
    from urlab_client.client import URLabClient


Bucket = list[tuple[int, str]]
"""Ids and short names of one articulation's elements of one kind, in id order."""

_MJB_NAME = "scene.mjb"
_OBJ = mujoco.mjtObj
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_DIMS = {_FREE: (7, 6), int(mujoco.mjtJoint.mjJNT_BALL): (4, 3)}
_JOINT_DRIVEN = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


class KnownHandles:
    """Every handle that this client has given out and a caller may still have, by name.

    A handshake renews those that it finds here, so that they stay good; `retire` tells all others.
    """

    def __init__(self) -> None:
        self.articulations: WeakValueDictionary[str, URLabArticulation] = WeakValueDictionary()
        self.entities: WeakValueDictionary[str, URLabEntity] = WeakValueDictionary()
        self.cameras: WeakValueDictionary[str, URLabCameraView] = WeakValueDictionary()

    def keep(
        self,
        articulations: Mapping[str, URLabArticulation],
        entities: Mapping[str, URLabEntity],
        cameras: Iterable[URLabCameraView],
        reason: str,
    ) -> None:
        """Remember the handles of a handshake, and retire the others for that reason."""
        views = {camera_key(view.owner, view.name): view for view in cameras}
        _keep(self.articulations, articulations, reason)
        _keep(self.entities, entities, reason)
        _keep(self.cameras, views, reason)


class Retirable(Protocol):
    """A handle that can be told that its part of the scene is gone."""

    def _retire(self, reason: str) -> None: ...


OneHandle = TypeVar("OneHandle", bound=Retirable)


def _keep(known: "WeakValueDictionary[str, OneHandle]", present: Mapping[str, OneHandle], reason: str) -> None:
    for name, handle in list(known.items()):
        if present.get(name) is not handle:
            handle._retire(reason)
    known.update(present)


def camera_key(owner: str, name: str) -> str:
    """What tells one camera from all others: ``owner/name``; the scene's owner is ``global``."""
    return f"{owner or GLOBAL}/{name}"


class CameraTable(FixedTable[URLabCameraView]):
    """Cameras by name; the short name finds one as well, where only one has it."""

    __slots__ = ()

    def __missing__(self, key: str) -> URLabCameraView:
        found = _unique(self.values(), "short_name").get(key)
        return found if found is not None else super().__missing__(key)

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in _unique(self.values(), "short_name")

    def get(self, key: str, default: Any = None) -> Any:
        """The camera of that name or short name, or ``default``."""
        return super().get(key) or _unique(self.values(), "short_name").get(key, default)


class ModelParts:
    """Sorts the named elements of a model by articulation, once for all of them.

    An element belongs to the prefix P when its name is P or begins with ``P_``; the longest such prefix wins.
    """

    def __init__(self, model: mujoco.MjModel, prefixes: Collection[str]) -> None:
        self._model = model
        self._actuators = _buckets(model, _OBJ.mjOBJ_ACTUATOR, getattr(model, "nactuator", model.nu), prefixes)
        self._joints = _buckets(model, _OBJ.mjOBJ_JOINT, model.njnt, prefixes)
        self._sensors = _buckets(model, _OBJ.mjOBJ_SENSOR, model.nsensor, prefixes)
        self._bodies = _buckets(model, _OBJ.mjOBJ_BODY, model.nbody, prefixes)

    def give_to(self, articulation: URLabArticulation, actuator_types: Mapping[str, str]) -> None:
        """Attach an articulation's parts, and tell it its root."""
        prefix = articulation.prefix
        actuators = {
            short: self._actuator(local, i, ctrl, short, articulation, actuator_types)
            for local, (i, ctrl, short) in enumerate(self._controls(prefix))
        }
        sensors = {short: self._sensor(i, short, articulation) for i, short in self._sensors[prefix]}
        bodies = {short: Body(short, i, articulation) for i, short in self._bodies[prefix]}
        joints = self._make_joints(prefix)
        articulation.attach(actuators, joints, sensors, bodies, self._root(joints, bodies))

    def _controls(self, prefix: str) -> list[tuple[int, int, str]]:
        """Actuator, index in ``data.ctrl`` and name of every control; of several, the others are ``name[1]`` ..."""
        model = self._model
        if not hasattr(model, "actuator_ctrladr"):  # MuJoCo 3: one each
            return [(i, i, short) for i, short in self._actuators[prefix]]
        return [
            (i, int(model.actuator_ctrladr[i]) + k, f"{short}[{k}]" if k else short)
            for i, short in self._actuators[prefix]
            for k in range(int(model.actuator_ctrlnum[i]))
        ]

    def _actuator(
        self, local: int, i: int, ctrl: int, short: str, owner: URLabArticulation, types: Mapping[str, str]
    ) -> Actuator:
        model = self._model
        kind = types.get(short) or types.get(f"{owner.prefix}_{short}")
        gainprm = model.actuator_gainprm[i].copy()
        return Actuator(
            name=short,
            id=i,
            type=ActuatorType(kind) if kind in set(ActuatorType) else None,
            joint=self._driven_joint(i, owner.prefix),
            ctrlrange=_range(model.actuator_ctrllimited[ctrl], model.actuator_ctrlrange[ctrl]),
            forcerange=_range(model.actuator_forcelimited[i], model.actuator_forcerange[i]),
            kp=float(gainprm[0]),
            kv=self._damping(i),
            trn_type=int(model.actuator_trntype[i]),
            gear=model.actuator_gear[model.actuator_outadr[i] if hasattr(model, "actuator_outadr") else i].copy(),
            gainprm=gainprm,
            dynprm=model.actuator_dynprm[i].copy(),
            _articulation=owner,
            _local=local,
            ctrl_id=ctrl,
        )

    def _damping(self, actuator: int) -> float:
        """Force per speed of a servo, which is in its bias; of any other actuator the second number of its gain."""
        model = self._model
        if int(model.actuator_biastype[actuator]) == int(mujoco.mjtBias.mjBIAS_AFFINE):
            return -float(model.actuator_biasprm[actuator, 2]) or 0.0
        return float(model.actuator_gainprm[actuator, 1])

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
        return Sensor(short, i, dim, kind, offset, owner)

    def _root(self, joints: Mapping[str, Joint], bodies: Mapping[str, Body]) -> Root:
        first = self._root_joint(list(joints.values()))
        if first is not None:
            name = mujoco.mj_id2name(self._model, _OBJ.mjOBJ_JOINT, first.id)
            places = first.qpos_offset, first.qvel_offset, first.qpos_local_offset, first.qvel_local_offset
            return Root(first.body_id, True, name, first.id, *places)
        free = {joint.body_id for joint in joints.values() if joint.jnt_type == _FREE}
        ids = [body.id for body in bodies.values()]
        fixed = (body for body in ids if int(self._model.body_rootid[body]) not in free)
        return Root(next(fixed, ids[0])) if ids else Root()

    def _root_joint(self, joints: Sequence[Joint]) -> Joint | None:
        """The free joint of the tree of the first joint that is not free: free objects may stand before a robot."""
        inner = next((joint for joint in joints if joint.jnt_type != _FREE), None)
        tree = None if inner is None else int(self._model.body_rootid[inner.body_id])
        return next((one for one in joints if one.jnt_type == _FREE and tree in (None, one.body_id)), None)


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


def _buckets(
    model: mujoco.MjModel, kind: mujoco.mjtObj, count: int, prefixes: Collection[str]
) -> defaultdict[str, Bucket]:
    buckets: defaultdict[str, Bucket] = defaultdict(list)
    for i in range(count):
        name = mujoco.mj_id2name(model, kind, i)
        owner = owner_of(name, prefixes) if name else None
        if owner is not None:
            buckets[owner].append((i, _short(name, owner)))
    return buckets


def _short(name: str, prefix: str) -> str:
    return name.removeprefix(f"{prefix}_")


def _range(limited: bool, bounds: npt.NDArray[np.float64]) -> tuple[float, float] | None:
    return (float(bounds[0]), float(bounds[1])) if limited else None


class UnreadableModelError(ValueError):
    """The compiled model of a handshake cannot be loaded by this MuJoCo build."""


def is_foreign(hello: HelloReply) -> bool:
    """Whether the server names another MuJoCo version than ours."""
    return bool(hello.mujoco_version) and hello.mujoco_version != mujoco.__version__


def load_model(hello: HelloReply) -> mujoco.MjModel | None:
    """The MjModel of a handshake, or None when it carries none.

    The binary is only good for the build that wrote it: a foreign server's XML and assets, when sent, come first.
    """
    source, binary = hello.mjcf_compiled, hello.mjb
    if source and (is_foreign(hello) or not binary):
        return mujoco.MjModel.from_xml_string(source, hello.vfs_assets or {})
    if not binary:
        return None
    try:
        return mujoco.MjModel.from_binary_path(_MJB_NAME, {_MJB_NAME: binary})
    except ValueError as broken:
        if source:
            return mujoco.MjModel.from_xml_string(source, hello.vfs_assets or {})
        raise UnreadableModelError(f"the server's compiled model cannot be loaded: {broken}") from broken


def build_articulations(
    hello: HelloReply, model: mujoco.MjModel | None, client: "URLabClient", known: KnownHandles
) -> dict[str, URLabArticulation]:
    """The articulations by prefix, in handshake order, with the parts that the model has for them."""
    blocks = {block.prefix: block for block in hello.articulations if block.prefix}
    built = {prefix: _articulation(block, client, known) for prefix, block in blocks.items()}
    parts = None if model is None else ModelParts(model, blocks)
    for prefix, articulation in built.items():
        if parts is None:
            articulation.attach({}, {}, {}, {}, empty="none here, as this client has not got the model")
        else:
            parts.give_to(articulation, blocks[prefix].actuator_types)
    return built


def build_entities(hello: HelloReply, client: "URLabClient", known: KnownHandles) -> dict[str, URLabEntity]:
    """The bodies outside the articulations, by compiled name."""
    return {name: _entity(name, block, client, known) for name, block in (hello.entities or {}).items()}


def setpoints_of(hello: HelloReply) -> dict[str, list[float]]:
    """The setpoints in force, by prefix, of the articulations whose block tells them."""
    return {block.prefix: block.setpoints for block in hello.articulations if block.prefix and block.setpoints}


def remember_initial_state(
    model: mujoco.MjModel, articulations: Iterable[URLabArticulation], entities: Iterable[URLabEntity]
) -> None:
    """Tell handles that will have no local model the state that the model starts in."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    robots = list(articulations)
    for one in robots:
        one._observed.qpos = data.qpos[one._qpos_index].tolist()
        one._observed.qvel = data.qvel[one._qvel_index].tolist()
    for entity in (*robots, *entities):
        if 0 <= entity.body_id < model.nbody:
            entity._initial_pose = {key: getattr(data, key)[entity.body_id].copy() for key in ("xpos", "xquat")}


def build_cameras(
    topics: Mapping[str, CameraTopic],
    lock: "threading.RLock",
    known: KnownHandles,
    owner: str = "",
    empty: str = "",
) -> CameraTable:
    """The cameras of one owner, by name; ``lock`` is the client's data lock, ``empty`` what stands for no names."""
    views = {
        name: _camera(name, topic, lock, known.cameras.get(camera_key(owner, name)), owner)
        for name, topic in topics.items()
    }
    return CameraTable("camera", views, owner=owner, empty=empty)


def _camera(
    name: str, topic: CameraTopic, lock: "threading.RLock", known: URLabCameraView | None, owner: str
) -> URLabCameraView:
    mode = coerce(CameraMode, topic.mode or None, default=CameraMode.REAL)
    if known is None:
        where = topic.zmq_endpoint, topic.zmq_topic
        short = getattr(topic, "short_name", None)
        return URLabCameraView(name, mode, topic.resolution, topic.fovy, owner, *where, short_name=short, lock=lock)
    known.renew(mode, topic.resolution, topic.fovy, topic.zmq_endpoint, topic.zmq_topic)
    return known


def camera_keys(views: Iterable[URLabCameraView]) -> dict[str, URLabCameraView]:
    """The names that a reply may call a camera by: ``owner/name`` (the scene's owner is ``global``), and the name or
    short name where only one has it; one that a robot owns goes before those of the scene."""
    all_views = list(views)
    bare = _unique(all_views, "short_name") | _unique([view for view in all_views if view.owner], "name")
    full = {camera_key(view.owner, view.name): view for view in all_views}
    return bare | _unique(all_views, "name") | full


def _unique(views: Iterable[URLabCameraView], attribute: str) -> dict[str, URLabCameraView]:
    """Views by an attribute, as far as no two have the same."""
    groups: dict[str, list[URLabCameraView]] = defaultdict(list)
    for view in views:
        groups[getattr(view, attribute)].append(view)
    return {name: group[0] for name, group in groups.items() if len(group) == 1}


def _articulation(block: ArticulationBlock, client: "URLabClient", known: KnownHandles) -> URLabArticulation:
    names, old = block.original_names, known.articulations.get(block.prefix)
    articulation = old or URLabArticulation(block.prefix)
    articulation.describe(
        block.actor_id,
        block.default_control_mode or ControlMode.RAW,
        make_controller(block.prefix, block.controller, client, articulation.controller),
        {"joints": names.joints, "actuators": names.actuators},
        build_cameras(block.camera_topics, client._data_lock, known, block.prefix),
        client,
    )
    return articulation


def _entity(name: str, block: EntityBlock, client: "URLabClient", known: KnownHandles) -> URLabEntity:
    root = Root(
        block.id or -1,  # the world is no entity: 0 stands for an id that was left out
        block.has_free_base,
        block.free_joint,
        block.free_joint_id,
        block.qpos_offset,
        block.qvel_offset,
    )
    entity = known.entities.get(name) or URLabEntity(name)
    entity._renew(root, "", client)
    return entity
