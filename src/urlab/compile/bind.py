"""Compiled model -> the maps of names, ids and offsets that everything else works with."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import mujoco

from urlab.compile.assemble import PlacedActor
from urlab.compile.compiled_scene import (
    ActuatorSlot,
    BodySlot,
    CameraSlot,
    CompiledArticulation,
    CompiledEntity,
    ControlSlot,
    JointSlot,
    SensorSlot,
)
from urlab.errors import CompileError, known
from urlab.mujoco_versions import ACTUATOR_COUNT, authored_actuator, controls_of, forces_of
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.sidecar import CameraConfig, Sidecar
from urlab_wire.enums import ActuatorType, CameraMode

DEFAULT_RESOLUTION = (640, 480)
_QPOS_DIM = {0: 7, 1: 4, 2: 1, 3: 1}
_QVEL_DIM = {0: 6, 1: 3, 2: 1, 3: 1}
_COUNTS = {"joint": "njnt", "actuator": ACTUATOR_COUNT, "sensor": "nsensor", "body": "nbody", "camera": "ncam"}

Owned = Mapping[str, Mapping[str, list[int]]]
"""By kind of element and actor name: the ids of what the actor owns, ascending."""

_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_ON_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


def bind_joints(model: Any) -> tuple[JointSlot, ...]:
    """All joints of the model; their short names are their names."""
    return tuple(_joint(model, index, "") for index in range(model.njnt))


def find_owners(model: Any, actor_names: Iterable[str]) -> Owned:
    """Sort the model's elements by the actor whose prefix they carry."""
    names = frozenset(actor_names)
    return {kind: _sort(getattr(model, kind), getattr(model, count), names) for kind, count in _COUNTS.items()}


def bind_articulation(model: Any, spec: Any, placed: PlacedActor, owned: Owned) -> CompiledArticulation:
    """The robot that an actor became."""
    prefix = placed.actor.name
    joints = tuple(_joint(model, index, prefix) for index in owned["joint"].get(prefix, []))
    by_id = {joint.id: joint for joint in joints}
    actuators = tuple(_actuator(model, spec, index, prefix, by_id) for index in owned["actuator"].get(prefix, []))
    return CompiledArticulation(
        prefix=prefix,
        actor_id=placed.actor.actor_id,
        joints=joints,
        actuators=actuators,
        controls=tuple(control for one in actuators for control in _controls(model, one)),
        sensors=tuple(_sensor(model, index, prefix) for index in owned["sensor"].get(prefix, [])),
        bodies=tuple(_body(model, index, prefix) for index in owned["body"].get(prefix, [])),
        cameras=bind_cameras(model, placed, owned),
        sidecar=placed.blueprint.sidecar,
        start_key=_start_key(model, placed),
        root_joint=_root_joint(model, joints),
    )


def _root_joint(model: Any, joints: Sequence[JointSlot]) -> JointSlot | None:
    """A robot's root is that of its moving parts: free objects may stand before it in its file."""
    inner = next((joint for joint in joints if joint.kind != _FREE), None)
    if inner is None:
        return next((joint for joint in joints if joint.kind == _FREE), None)
    tree = int(model.body_rootid[model.jnt_bodyid[inner.id]])
    return next((one for one in joints if one.kind == _FREE and int(model.jnt_bodyid[one.id]) == tree), None)


def _start_key(model: Any, placed: PlacedActor) -> int | None:
    wanted = placed.actor.keyframe
    if not wanted:
        return None
    prefix = f"{placed.actor.name}_"
    index = int(mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, prefix + wanted))
    if index < 0:
        names = [model.key(key).name for key in range(model.nkey)]
        mine = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        raise CompileError(f"actor {placed.actor.name!r} has no keyframe {wanted!r}; it has: {known(mine)}")
    return index


def bind_entities(model: Any, placed: PlacedActor, owned: Owned) -> Iterable[CompiledEntity]:
    """The bodies that clients see as entities: all of a thing's; of a robot's, mocap bodies and free ones but its root.

    A static mesh that takes no part in physics is none.
    """
    if placed.blueprint.record.kind is BlueprintKind.STATIC_MESH and placed.actor.quick_convert is None:
        return
    is_robot = placed.blueprint.is_articulation
    prefix = placed.actor.name
    joints = [_joint(model, index, prefix) for index in owned["joint"].get(prefix, [])] if is_robot else []
    root = _root_joint(model, joints)
    for name in placed.body_names:
        body = model.body(name).id
        free = _free_joint(model, body)
        is_mocap = int(model.body_mocapid[body]) >= 0
        is_root = free is not None and root is not None and free.id == root.id
        if is_robot and not is_mocap and (free is None or is_root):
            continue
        yield CompiledEntity(name, placed.actor.name, placed.actor.actor_id, body, free)


def bind_cameras(model: Any, placed: PlacedActor, owned: Owned) -> tuple[CameraSlot, ...]:
    """The cameras of an actor."""
    name, sidecar = placed.actor.name, placed.blueprint.sidecar
    return tuple(_camera(model, index, name, sidecar) for index in owned["camera"].get(name, []))


def owner_of(name: str, actor_names: frozenset[str]) -> str | None:
    """The actor whose prefix a compiled name carries."""
    if name in actor_names:
        return name
    cut = name.find("_")
    while cut >= 0:
        if name[:cut] in actor_names:
            return name[:cut]
        cut = name.find("_", cut + 1)
    return None


def _sort(element: Any, count: int, actor_names: frozenset[str]) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    for index in range(count):
        owner = owner_of(element(index).name, actor_names)
        if owner is not None:
            owned.setdefault(owner, []).append(index)
    return owned


def _short(name: str, prefix: str) -> str:
    return name.removeprefix(f"{prefix}_") if prefix else name


def _joint(model: Any, index: int, prefix: str) -> JointSlot:
    name, kind = model.joint(index).name, int(model.jnt_type[index])
    qpos, qvel = int(model.jnt_qposadr[index]), int(model.jnt_dofadr[index])
    return JointSlot(
        id=index,
        name=name,
        short=_short(name, prefix),
        kind=kind,
        qpos=slice(qpos, qpos + _QPOS_DIM[kind]),
        qvel=slice(qvel, qvel + _QVEL_DIM[kind]),
    )


def _free_joint(model: Any, body: int) -> JointSlot | None:
    first = int(model.body_jntadr[body])
    if first < 0 or int(model.jnt_type[first]) != _FREE:
        return None
    return _joint(model, first, "")


def _actuator(model: Any, spec: Any, index: int, prefix: str, joints: dict[int, JointSlot]) -> ActuatorSlot:
    name = model.actuator(index).name
    on_joint = int(model.actuator_trntype[index]) in _ON_JOINT
    act = int(model.actuator_actadr[index])
    return ActuatorSlot(
        id=index,
        name=name,
        short=_short(name, prefix),
        kind=_kind(model, index, spec.actuator(name)),
        joint=joints.get(int(model.actuator_trnid[index, 0])) if on_joint else None,
        act_index=act if act >= 0 else None,
    )


def _controls(model: Any, actuator: ActuatorSlot) -> Iterable[ControlSlot]:
    """The control signals of one actuator, in the order of ``data.ctrl``."""
    (first, count), (force, forces) = controls_of(model, actuator.id), forces_of(model, actuator.id)
    for number in range(count):
        mark = f"[{number}]" if number else ""
        yield ControlSlot(
            id=first + number,
            name=actuator.name + mark,
            short=actuator.short + mark,
            actuator=actuator,
            force_index=force + number if number < forces else None,
        )


def _kind(model: Any, index: int, actuator: Any) -> ActuatorType:
    """How the author wrote the actuator; of what has no word of its own, what its gain and bias amount to."""
    word = authored_actuator(actuator)
    if word in set(ActuatorType) - {ActuatorType.GENERAL}:
        return ActuatorType(word)
    if int(model.actuator_gaintype[index]) != int(mujoco.mjtGain.mjGAIN_FIXED):
        return ActuatorType.GENERAL
    bias, gain = model.actuator_biasprm[index], float(model.actuator_gainprm[index][0])
    if int(model.actuator_biastype[index]) == int(mujoco.mjtBias.mjBIAS_NONE):
        has_plugin = int(model.actuator_plugin[index]) >= 0  # then the plugin makes the force
        return ActuatorType.GENERAL if has_plugin else ActuatorType.MOTOR
    if int(model.actuator_biastype[index]) != int(mujoco.mjtBias.mjBIAS_AFFINE) or gain <= 0 or bias[0] != 0:
        return ActuatorType.GENERAL
    return _SERVOS.get((_servo_law(gain, bias), int(model.actuator_dyntype[index])), ActuatorType.GENERAL)


def _servo_law(gain: float, bias: Any) -> str:
    """What a force of gain * control + bias pulls toward the control: the position, the speed, or neither."""
    if bias[1] == -gain and bias[2] <= 0:
        return "position"
    return "speed" if bias[1] == 0 and bias[2] == -gain else ""


_DYN = mujoco.mjtDyn
_SERVOS = {
    ("position", int(_DYN.mjDYN_NONE)): ActuatorType.POSITION,
    ("position", int(_DYN.mjDYN_FILTER)): ActuatorType.POSITION,
    ("position", int(_DYN.mjDYN_FILTEREXACT)): ActuatorType.POSITION,
    ("position", int(_DYN.mjDYN_INTEGRATOR)): ActuatorType.INT_VELOCITY,
    ("speed", int(_DYN.mjDYN_NONE)): ActuatorType.VELOCITY,
}
"""By what the force pulls toward the control, and how the control is filtered on its way."""


def _sensor(model: Any, index: int, prefix: str) -> SensorSlot:
    name, start = model.sensor(index).name, int(model.sensor_adr[index])
    return SensorSlot(index, name, _short(name, prefix), slice(start, start + int(model.sensor_dim[index])))


def _body(model: Any, index: int, prefix: str) -> BodySlot:
    name = model.body(index).name
    return BodySlot(index, name, _short(name, prefix))


def _camera(model: Any, index: int, prefix: str, sidecar: Sidecar) -> CameraSlot:
    name = model.camera(index).name
    config = sidecar.cameras.get(_short(name, prefix), CameraConfig())
    return CameraSlot(
        id=index,
        name=name,
        short=_short(name, prefix),
        mode=_camera_mode(model, index, config),
        resolution=config.resolution or _authored_resolution(model, index),
        fovy=float(model.cam_fovy[index]),
    )


def _camera_mode(model: Any, index: int, config: CameraConfig) -> CameraMode:
    depth_only = int(model.cam_output[index]) == int(mujoco.mjtCamOutBit.mjCAMOUT_DEPTH)
    return CameraMode.DEPTH if config.mode is CameraMode.REAL and depth_only else config.mode


def _authored_resolution(model: Any, index: int) -> tuple[int, int]:
    width, height = (int(pixels) for pixels in model.cam_resolution[index])
    return (width, height) if width > 1 and height > 1 else DEFAULT_RESOLUTION
