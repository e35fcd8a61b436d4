"""Requests about entities: which there are, their states, kinds and sizes; placing, spawning and deleting them.

Names are searched by regular expressions of the caller. Python's matcher goes back over what it has read, and lets no
other thread run meanwhile: an expression of ten characters can keep it, and with it the clock, busy for hours. So only
those pass that cannot take long with names of `LONGEST_NAME` characters.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import numpy as np

from urlab.ros2.geometry import Array, RigidTransform, at
from urlab.ros2.messages import make
from urlab.ros2.services.entity_table import (
    Entity,
    EntityTable,
    bounds_message,
    box_in,
    entity_state,
    move_actor,
    needed_pose,
    read_pose,
    read_twist,
    region_of,
    rotated,
)
from urlab.ros2.services.messages import (
    GENERATION,
    INVALID_POSE,
    PACKAGE,
    ResultCode,
    ServiceRefused,
    SpawnCode,
    result,
)
from urlab.ros2.services.simulation import SPAWNED_TAG, OperatorClient, change_scene
from urlab_client import BlueprintInfo, URLabRPCError
from urlab_wire.errors import ErrorCode

LONGEST_NAME: Final = 100
_LONGEST_PATTERN: Final = 500
_MOST_REPEATS: Final = 3
_PART: Final = re.compile(
    r"(?P<one>\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<special>\(\?)|(?P<group>\)[*+{])|(?P<repeat>[*+?{][?+]?)", re.DOTALL
)
"""What reads an expression: a single character, which is passed over; the rest is counted."""

_ALL_TAGS = 1
FORMATS = ("mjcf", "urdf", "stl", "obj", "glb")
_SUFFIXES = (".xml", ".mjcf", ".urdf", ".stl", ".obj", ".glb")
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_./-]*[A-Za-z0-9_])?")


def get_entities(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetEntities."""
    return {"result": result(), "entities": [one.name for one in _matching(client, request.filters)]}


def get_entities_states(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetEntitiesStates."""
    found = [*_matching(client, request.filters)]
    states = [entity_state(one, client.sim_time) for one in found]
    return {"result": result(), "entities": [one.name for one in found], "states": states}


def get_entity_state(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetEntityState."""
    entity = EntityTable(client).find(request.entity)
    return {"result": result(), "state": entity_state(entity, client.sim_time)}


def get_entity_info(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetEntityInfo."""
    entity = EntityTable(client).find(request.entity)
    category = make(f"{PACKAGE}/msg/EntityCategory", category=entity.category)
    info = make(f"{PACKAGE}/msg/EntityInfo", category=category, description=entity.description, tags=entity.tags)
    return {"result": result(), "info": info}


def get_entity_bounds(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetEntityBounds: a box along the axes of the entity's topmost body."""
    table = EntityTable(client)
    entity = table.find(request.entity)
    table.require_playing()
    box = box_in(client, entity, entity.pose)
    if box is None:
        raise ServiceRefused(f"{entity.name!r} has no geometry of finite size")
    return {"result": result(), "bounds": bounds_message(box)}


def set_entity_state(client: OperatorClient, request: Any) -> dict[str, Any]:
    """SetEntityState; without the flags of later versions pose and twist both count."""
    table = EntityTable(client)
    entity, state = table.find(request.entity), request.state
    frame = table.frame(state.header.frame_id, INVALID_POSE)
    pose = frame.then(read_pose(state.pose, INVALID_POSE)) if getattr(request, "set_pose", True) else None
    speeds = None
    if getattr(request, "set_twist", True):
        linear, angular = read_twist(state.twist)
        speeds = rotated(linear, frame.quat_wxyz), rotated(angular, frame.quat_wxyz)
    return {"result": result(_put(client, entity, pose, speeds))}


def _put(
    client: OperatorClient, entity: Entity, pose: RigidTransform | None, speeds: tuple[Array, Array] | None
) -> str:
    if entity.is_free:
        _put_free(client, entity, pose, speeds)
        return ""
    if speeds is not None and any(np.any(one) for one in speeds):
        raise ServiceRefused(f"{entity.name!r} does not move freely now, so it has no twist to set: ask for zero")
    if pose is None:
        return ""
    if entity.is_mocap and entity.handle is not None:
        client.runtime.set_mocap_pose(entity.handle.name, pos=pose.pos.tolist(), quat=pose.quat_wxyz.tolist())
        client.runtime.forward()
        return ""
    return _put_fixed(client, entity, pose)


def _put_free(
    client: OperatorClient, entity: Entity, pose: RigidTransform | None, speeds: tuple[Array, Array] | None
) -> None:
    """Of a free joint MuJoCo has the linear velocity in the world, the angular one in the body."""
    target = _free_target(entity)
    qpos = [] if pose is None else [*pose.pos.tolist(), *pose.quat_wxyz.tolist()]
    qvel = None
    if speeds is not None:
        quat_wxyz = (pose or entity.pose).quat_wxyz
        qvel = [*speeds[0].tolist(), *rotated(speeds[1], quat_wxyz, back=True).tolist()]
    if qpos or qvel is not None:
        client.runtime.set_qpos(target, qpos, by_name=True, qvel=qvel)


def _free_target(entity: Entity) -> str:
    """What the server calls it: an actor by its own name, a free body within a robot by the body's."""
    if entity.handle is not None and entity.actor.urlab is not None and not entity.is_whole:
        return entity.handle.name
    _require_whole(entity, "put")
    return entity.actor.name


def _require_whole(entity: Entity, done: str) -> None:
    if not entity.is_whole:
        raise ServiceRefused(f"{entity.name!r} is a part of {entity.actor.name!r}: only the whole can be {done}")


def _put_fixed(client: OperatorClient, entity: Entity, pose: RigidTransform) -> str:
    """What is fixed to the world stands where the level says."""
    _require_whole(entity, "put")
    place = pose if entity.handle is None else needed_pose(client, entity, pose)
    if place is None:
        return ""
    return change_scene(client, lambda: move_actor(client, entity.actor.name, place))


def _matching(client: OperatorClient, filters: Any) -> Iterator[Entity]:
    table = EntityTable(client)
    name = name_filter(filters.filter)
    categories = {one.category for one in filters.categories}
    region = region_of(filters.bounds) if filters.bounds.type else None
    if region is not None:
        table.require_playing()
    for entity in table.by_name.values():
        fits = name.search(entity.name) and (not categories or entity.category in categories)
        if fits and _has_tags(entity, filters.tags) and (region is None or region(box_in(client, entity, at()))):
            yield entity


def _has_tags(entity: Entity, wanted: Any) -> bool:
    if not wanted.tags:
        return True
    has = [tag in entity.tags for tag in wanted.tags]
    return all(has) if wanted.filter_mode == _ALL_TAGS else any(has)


# -- filtering names ---------------------------------------------------------------------------------------------------


def name_filter(text: str) -> re.Pattern[str]:
    """The expression, to search names with; `ServiceRefused` when it is none, or one that could take too long."""
    kinds = [part.lastgroup for part in _PART.finditer(text)]
    if len(text) > _LONGEST_PATTERN:
        raise ServiceRefused(f"the filter has {len(text)} characters; {_LONGEST_PATTERN} are enough")
    if "special" in kinds or "group" in kinds or kinds.count("repeat") > _MOST_REPEATS:
        raise ServiceRefused(
            f"the filter {text!r} could take too long: it may have {_MOST_REPEATS} of * + ? {{}}, * + {{}} not behind a"
            " bracket, and no (?",
            ResultCode.FEATURE_UNSUPPORTED,
        )
    try:
        return re.compile(text)
    except re.error as broken:
        raise ServiceRefused(f"the filter {text!r} is not a regular expression: {broken}") from broken


# -- spawning and deleting ---------------------------------------------------------------------------------------------


def get_spawnables(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetSpawnables: what the project has and what the server ships."""
    known = [_spawnable(one) for one in client.outliner.list_blueprints()]
    strange = ", ".join(request.sources)
    note = f"these sources are not known and were left out: {strange}" if strange else ""
    return {"result": result(note), "spawnables": known}


def spawn_entity(client: OperatorClient, request: Any) -> dict[str, Any]:
    """SpawnEntity. The name becomes the actor_id; topics are below the prefix that the server gives the actor."""
    table = EntityTable(client)
    if request.entity_namespace:
        raise ServiceRefused(
            "entity_namespace cannot be chosen: the topics of a robot are below its own prefix. Leave it empty.",
            ResultCode.FEATURE_UNSUPPORTED,
        )
    blueprint = _blueprint(request)
    name = _free_name(table, request.name, allow_renaming=request.allow_renaming, stem=_stem(blueprint))
    frame = table.frame(request.initial_pose.header.frame_id, SpawnCode.INVALID_POSE)
    pose = frame.then(read_pose(request.initial_pose.pose, SpawnCode.INVALID_POSE))
    note = _spawn(client, blueprint, name, pose)
    return {"result": result(note), "entity_name": name}


def delete_entity(client: OperatorClient, request: Any) -> dict[str, Any]:
    """DeleteEntity."""
    entity = EntityTable(client).find(request.entity)
    _require_whole(entity, "deleted")
    note = change_scene(client, lambda: client.scene.destroy_actor(entity.actor.name, by_name=True))
    return {"result": result(note)}


def _spawn(client: OperatorClient, blueprint: str, name: str, pose: RigidTransform) -> str:
    w, x, y, z = (float(one) for one in pose.quat_wxyz)

    def edit() -> None:
        try:
            client.scene.spawn_actor(
                blueprint, name, location=pose.pos.tolist(), rotation_quat=(x, y, z, w), tags=[SPAWNED_TAG]
            )
        except URLabRPCError as failed:
            raise _spawn_failure(client, blueprint, failed) from failed

    note = change_scene(client, edit, undo=lambda: client.scene.destroy_actor(name))
    return _settle(client, name, pose) or note


def _settle(client: OperatorClient, name: str, pose: RigidTransform) -> str:
    """See to it that the topmost body is at the pose: the model file may put it elsewhere in its own frame."""
    table = EntityTable(client)
    if not table.is_playing:
        return ""
    entity = table.find(name)
    place = needed_pose(client, entity, pose)
    if place is None:
        return ""
    name = entity.actor.name
    return change_scene(client, lambda: move_actor(client, name, place), anew=name)


def _spawnable(one: BlueprintInfo) -> Any:
    uri = one.class_path
    named = {"uri": uri}
    if GENERATION.has_resource:
        named = {"entity_resource": make(f"{PACKAGE}/msg/Resource", uri=uri)}
    return make(f"{PACKAGE}/msg/Spawnable", description=one.short_name, **named)


def _blueprint(request: Any) -> str:
    """What the server is asked for: a blueprint's class path or name, or a file."""
    resource = getattr(request, "entity_resource", request)
    if not resource.uri and resource.resource_string:
        raise ServiceRefused(
            "a model as a string cannot be spawned: save it where the server can read it, and give its uri",
            ResultCode.FEATURE_UNSUPPORTED,
        )
    if not resource.uri:
        raise ServiceRefused(
            "uri is empty: give one of get_spawnables, or the path of a model file", SpawnCode.NO_RESOURCE
        )
    split = urlsplit(resource.uri)
    if split.scheme not in ("", "file"):
        raise ServiceRefused(
            f"{resource.uri!r}: {split.scheme!r} cannot be read. Give one of get_spawnables, or file:///path/of/model.xml",
            SpawnCode.UNSUPPORTED_FORMAT,
        )
    path = unquote(split.path) if split.scheme else str(resource.uri)
    suffix = PurePosixPath(path).suffix.lower()
    if path.startswith("/") and not path.startswith("/Game/") and suffix not in _SUFFIXES:
        raise ServiceRefused(
            f"a file {suffix or 'without a suffix'} cannot be spawned; {', '.join(_SUFFIXES)} can",
            SpawnCode.UNSUPPORTED_FORMAT,
        )
    return path


def _stem(blueprint: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", PurePosixPath(blueprint).name.partition(".")[0]) or "entity"


def _free_name(table: EntityTable, wanted: str, *, allow_renaming: bool, stem: str) -> str:
    if not wanted and not allow_renaming:
        raise ServiceRefused("name is empty: give one, or set allow_renaming to have one made", SpawnCode.NAME_INVALID)
    if wanted and not _NAME.fullmatch(wanted):
        raise ServiceRefused(
            f"{wanted!r} is not a name: letters, digits and _ it is, with - . / between them", SpawnCode.NAME_INVALID
        )
    if len(wanted) > LONGEST_NAME:
        raise ServiceRefused(
            f"the name has {len(wanted)} characters; {LONGEST_NAME} are allowed", SpawnCode.NAME_INVALID
        )
    base = wanted or stem
    if not table.is_taken(base):
        return base
    if not allow_renaming:
        raise ServiceRefused(
            f"{base!r} is taken: choose another name, or set allow_renaming", SpawnCode.NAME_NOT_UNIQUE
        )
    return next(name for n in itertools.count(2) if not table.is_taken(name := f"{base}_{n}"))


def _spawn_failure(client: OperatorClient, blueprint: str, failed: URLabRPCError) -> Exception:
    if failed.code not in (ErrorCode.SPAWN_FAILED, ErrorCode.IMPORT_FAILED, ErrorCode.PATH_NOT_READABLE):
        return failed
    is_file = PurePosixPath(blueprint).suffix.lower() in _SUFFIXES
    if is_file:
        return ServiceRefused(failed.message, SpawnCode.RESOURCE_PARSE_ERROR)
    known = ", ".join(one.short_name for one in client.outliner.list_blueprints())
    return ServiceRefused(
        f"{blueprint!r} cannot be spawned: {failed.message}. There are: {known}", ResultCode.NOT_FOUND
    )
