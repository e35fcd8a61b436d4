"""Level -> CompiledScene: assemble, compile, move the keyframes to where their actors stand, bind the names."""

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco

from urlab.compile.assemble import Assembly, PlacedActor, assemble
from urlab.compile.bind import bind_articulation, bind_cameras, bind_entities, bind_joints, find_owners, owner_of
from urlab.compile.blueprint import MUJOCO_ERRORS, compile_spec
from urlab.compile.compiled_scene import CompiledScene
from urlab.compile.library import Library
from urlab.compile.overlaps import start_notes
from urlab.errors import CompileError, UrlabError
from urlab.geometry import Pose
from urlab.physics.engine import mujoco_warnings
from urlab.physics.options import apply_options, check_options
from urlab.scene.level import Level

_LIGHTS_DRAWN = 7
"""OpenGL has eight lights, and the headlight is one of them."""


def compile_scene(level: Level, library: Library, overrides: Mapping[str, Any] | None = None) -> CompiledScene:
    """Compile a level; CompileError says which actor is at fault and why.

    Options come from MuJoCo's defaults, then the first articulation, then the level, then ``overrides``.
    """
    with mujoco_warnings() as said:
        assembly = assemble(level, library, settled={*level.options, *(overrides or {})})
    _override(assembly.root, level.options, f"level {level.name!r}")
    _override(assembly.root, overrides or {}, "the server's options")
    assembly.root.modelname = level.name
    try:
        model, warned = compile_spec(assembly.root)
    except MUJOCO_ERRORS as refused:
        raise CompileError(f"{_who(assembly.placed)}: {refused}") from refused
    _move_keyframes(model, assembly.root, assembly.placed)
    return _bind(assembly, model, [*said, *warned])


def _who(placed: Sequence[PlacedActor]) -> str:
    """What a complaint about the whole scene is about."""
    if len(placed) == 1:
        return f"{placed[0].blueprint.path} compiles alone, but not as the actor {placed[0].actor.name!r}"
    return "every actor compiles alone, but not together"


def _override(root: Any, options: Mapping[str, Any], source: str) -> None:
    try:
        apply_options(root.option, check_options(options))
    except UrlabError as wrong:
        raise CompileError(f"{source}: {wrong.message}") from wrong


def _bind(assembly: Assembly, model: Any, warned: list[str]) -> CompiledScene:
    placed = assembly.placed
    owned = find_owners(model, (one.actor.name for one in placed))
    robots = [one for one in placed if one.blueprint.is_articulation]
    _refuse_keyframes_of_things(placed)
    things = [one for one in placed if not one.blueprint.is_articulation]
    articulations = tuple(bind_articulation(model, assembly.root, one, owned) for one in robots)
    at_start = start_notes(model, articulations, (one.actor.name for one in placed))
    return CompiledScene(
        model=model,
        spec=assembly.root,
        articulations=articulations,
        entities=tuple(entity for one in placed for entity in bind_entities(model, one, owned)),
        global_cameras=tuple(camera for one in things for camera in bind_cameras(model, one, owned)),
        joints=bind_joints(model),
        placed=placed,
        notes=tuple(dict.fromkeys([*assembly.notes, *warned, *_too_many_lights(model), *at_start])),
    )


def _too_many_lights(model: Any) -> list[str]:
    if model.nlight <= _LIGHTS_DRAWN:
        return []
    return [f"the scene has {model.nlight} lights, and MuJoCo draws {_LIGHTS_DRAWN} beside the headlight"]


def _refuse_keyframes_of_things(placed: Sequence[PlacedActor]) -> None:
    for one in placed:
        if one.actor.keyframe and not one.blueprint.is_articulation:
            raise CompileError(
                f"actor {one.actor.name!r} has no joints to move or actuators, so it cannot start from keyframe "
                f"{one.actor.keyframe!r}; give it a location instead"
            )


def _move_keyframes(model: Any, spec: Any, placed: Sequence[PlacedActor]) -> None:
    """Shift free joints and mocap bodies of every keyframe by the pose of the actor that it belongs to.

    What a keyframe leaves out, MuJoCo has filled in from the placed bodies: that is where it belongs already.
    """
    by_name = {one.actor.name: one for one in placed}
    for index in range(model.nkey):
        name = model.key(index).name
        owner = by_name.get(owner_of(name, frozenset(by_name)) or "")
        if owner is not None and not owner.actor.pose.is_identity:
            _move_keyframe(model, index, owner)
            key = spec.key(name)
            key.qpos = model.key_qpos[index]
            key.mpos = model.key_mpos[index].reshape(-1)
            key.mquat = model.key_mquat[index].reshape(-1)


def _move_keyframe(model: Any, index: int, owner: PlacedActor) -> None:
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
