"""Actors and lights -> one root spec. Each actor's model is attached under its own prefix, at its own pose."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco

from urlab.compile.attach import BodyReferences, SharedAssets
from urlab.compile.blueprint import MUJOCO_ERRORS, Blueprint
from urlab.compile.library import Library
from urlab.compile.scene_settings import agree_on_inertia, share_globals, take_globals
from urlab.errors import CompileError, UrlabError
from urlab.geometry import rotate
from urlab.physics.options import read_options
from urlab.scene.level import DEFAULT_INTENSITY, Actor, Level, Light
from urlab_wire.enums import LightKind

_FORWARD = (1.0, 0.0, 0.0)
_USUAL_BRIGHTNESS = 0.7
"""MuJoCo's own default for a light's diffuse colour."""
_ALL_ROUND_DEG = 180.0
"""MuJoCo's renderer leaves out lights of its type point; a spot that opens all the way is one, and is drawn."""
_LIGHT_TYPES = {
    LightKind.DIRECTIONAL: mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
    LightKind.POINT: mujoco.mjtLightType.mjLIGHT_SPOT,
    LightKind.SPOT: mujoco.mjtLightType.mjLIGHT_SPOT,
}


@dataclass(frozen=True)
class PlacedActor:
    """An actor and its model. ``body_names`` are the compiled names of the bodies that it brings."""

    actor: Actor
    blueprint: Blueprint
    body_names: tuple[str, ...]


@dataclass(frozen=True)
class Assembly:
    """The root spec, not compiled yet, with what was put into it."""

    root: Any
    placed: tuple[PlacedActor, ...]
    notes: tuple[str, ...]


def assemble(level: Level, library: Library, settled: Collection[str] = ()) -> Assembly:
    """Put all actors and lights into one spec; CompileError names the actor that cannot be used.

    About ``settled`` options, which the level or the server decides, nothing is noted.
    """
    root, actors = mujoco.MjSpec(), level.actors
    blueprints = agree_on_inertia(root, [_load(actor, library) for actor in actors])
    # The scene takes the global settings of the first articulation, else of the first model of all.
    leader = next(iter([one for one in blueprints if one.is_articulation] or blueprints), None)
    if leader is not None:
        take_globals(root, leader.spec, [one.spec for one in blueprints])
    assets = SharedAssets()
    placed = tuple(_place(root, actor, one, assets) for actor, one in zip(actors, blueprints, strict=True))
    for light in level.lights:
        try:
            _add_light(root, light)
        except MUJOCO_ERRORS as refused:
            raise CompileError(f"light {light.name!r} does not fit in: {refused}") from refused
    return Assembly(
        root,
        placed,
        (*_left_out(placed), *_differences(placed, leader, settled), *_unscaled(placed), *_unfitted(placed, root)),
    )


def _load(actor: Actor, library: Library) -> Blueprint:
    try:
        return library.blueprint(actor)
    except UrlabError as failed:
        raise CompileError(f"actor {actor.name!r}: {failed.message}") from failed


def _place(root: Any, actor: Actor, blueprint: Blueprint, assets: SharedAssets) -> PlacedActor:
    try:
        child, restore = assets.child(blueprint, actor.name)
        names = _attach(root, actor, blueprint, child)
        restore()
        return PlacedActor(actor, blueprint, names)
    except MUJOCO_ERRORS as refused:
        raise CompileError(f"actor {actor.name!r} ({blueprint.path}) does not fit in: {refused}") from refused


def _attach(root: Any, actor: Actor, blueprint: Blueprint, child: Any) -> tuple[str, ...]:
    """Attach a copy of the model; returns the compiled names of its bodies."""
    prefix, name = f"{actor.name}_", actor.name
    share_globals(child, root)
    bodies = [body.name for body in child.bodies[1:]]
    references = BodyReferences(child)
    if not blueprint.is_articulation and not bodies:
        body = root.worldbody.add_body(name=name, pos=actor.pose.pos, quat=actor.pose.quat_wxyz)
        root.attach(child, prefix=prefix, frame=body.add_frame())
        references.settle_world(root, prefix, origin=name)
        return (name,)
    root.attach(child, prefix=prefix, frame=root.worldbody.add_frame(pos=actor.pose.pos, quat=actor.pose.quat_wxyz))
    if actor.pose.is_identity:
        references.settle_world(root, prefix, origin=root.worldbody.name)
    else:
        references.settle_moved_world(root, prefix)
    if not blueprint.is_articulation and len(bodies) == 1:
        root.body(prefix + bodies[0]).name = name
        references.rename(prefix + bodies[0], name)
        return (name,)
    return tuple(prefix + one for one in bodies)


def _left_out(placed: Sequence[PlacedActor]) -> list[str]:
    """What of the models could not be used, once per model."""
    first = {id(one.blueprint): one for one in reversed(placed)}
    models = [(f"{one.actor.name!r} ({one.blueprint.path})", one.blueprint.notes) for one in first.values()]
    return [f"{model}: {note}" for model, notes in models for note in notes]


def _differences(placed: Sequence[PlacedActor], leader: Blueprint | None, settled: Collection[str]) -> list[str]:
    """What other articulations would have wanted otherwise."""
    notes: list[str] = []
    for one in placed:
        if leader is None or one.blueprint is leader or not one.blueprint.is_articulation:
            continue
        wanted, taken = read_options(one.blueprint.spec.option), read_options(leader.spec.option)
        notes += [
            f"{one.actor.name!r} asks for {name} {wanted[name]}, but the scene runs with {taken[name]} "
            f"of {leader.model_name!r}"
            for name in wanted
            if wanted[name] != taken[name] and name not in settled
        ]
    return notes


def _unscaled(placed: Sequence[PlacedActor]) -> list[str]:
    """Models that want their masses rescaled: MuJoCo can only rescale a whole scene."""
    asked = [(one.actor.name, one.blueprint.spec.compiler.settotalmass) for one in placed if len(placed) > 1]
    return [
        f"{name!r} asks for a total mass of {mass:g} kg (settotalmass), which only a scene of one actor can follow"
        for name, mass in asked
        if mass > 0
    ]


def _unfitted(placed: Sequence[PlacedActor], root: Any) -> list[str]:
    """Models that want geoms fitted to their meshes in the other way: MuJoCo asks the whole scene."""
    ways = {True: "bounding boxes (fitaabb)", False: "inertia boxes"}
    taken = bool(root.compiler.fitaabb)
    odd = [one.actor.name for one in placed if bool(one.blueprint.spec.compiler.fitaabb) is not taken]
    return [f"{name!r} asks for geoms fitted to {ways[not taken]}, but the scene uses {ways[taken]}" for name in odd]


def _add_light(root: Any, light: Light) -> None:
    """Put a light into the world; brightness follows the intensity in proportion."""
    brightness = _USUAL_BRIGHTNESS * light.intensity / DEFAULT_INTENSITY
    added = root.worldbody.add_light(name=light.name, type=_LIGHT_TYPES[light.kind], pos=light.pose.pos)
    added.dir = rotate(light.pose.quat_wxyz, _FORWARD)
    added.diffuse = [brightness * part for part in light.color]
    added.specular = [brightness * part / 2 for part in light.color]
    added.intensity = light.intensity
    if light.kind is LightKind.POINT:
        added.cutoff, added.exponent = _ALL_ROUND_DEG, 0.0
