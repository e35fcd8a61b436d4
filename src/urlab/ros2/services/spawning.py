"""What can be brought into the scene, bringing it, and taking it away."""

import itertools
import re
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from urlab.ros2.convert.pose import Pose
from urlab.ros2.messages import make
from urlab.ros2.services.name_filter import LONGEST_NAME
from urlab.ros2.services.operating import OperatorClient
from urlab.ros2.services.placing import move_actor, needed_pose
from urlab.ros2.services.restarting import change_scene
from urlab.ros2.services.results import Code, Refused, SpawnCode, result
from urlab.ros2.services.states import read_pose
from urlab.ros2.services.things import SPAWNED_TAG, Things
from urlab.ros2.simulation_messages import GENERATION, PACKAGE
from urlab_client import BlueprintInfo, URLabRPCError
from urlab_wire.errors import ErrorCode

FORMATS = ("mjcf", "urdf", "stl", "obj", "glb")
_SUFFIXES = (".xml", ".mjcf", ".urdf", ".stl", ".obj", ".glb")
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_./-]*[A-Za-z0-9_])?")


def get_spawnables(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetSpawnables: what the project has and what the server ships."""
    known = [_spawnable(one) for one in client.outliner.list_blueprints()]
    strange = ", ".join(request.sources)
    note = f"these sources are not known and were left out: {strange}" if strange else ""
    return {"result": result(Code.OK, note), "spawnables": known}


def spawn_entity(client: OperatorClient, request: Any) -> dict[str, Any]:
    """SpawnEntity. The name becomes the actor_id; topics are below the prefix that the server gives the actor."""
    things = Things(client)
    if request.entity_namespace:
        raise Refused(
            Code.FEATURE_UNSUPPORTED,
            "entity_namespace cannot be chosen: the topics of a robot are below its own prefix. Leave it empty.",
        )
    blueprint = _blueprint(request)
    name = _free_name(things, request.name, allow_renaming=request.allow_renaming, stem=_stem(blueprint))
    pose = _initial_pose(things, request.initial_pose)
    note = _spawn(client, blueprint, name, pose)
    return {"result": result(Code.OK, note), "entity_name": name}


def delete_entity(client: OperatorClient, request: Any) -> dict[str, Any]:
    """DeleteEntity."""
    thing = Things(client).find(request.entity)
    if not thing.is_whole:
        raise Refused(
            Code.OPERATION_FAILED, f"{thing.name!r} is a part of {thing.actor.name!r}: only the whole can be deleted"
        )
    note = change_scene(client, lambda: client.scene.destroy_actor(thing.actor.name, by_name=True))
    return {"result": result(Code.OK, note)}


def _spawn(client: OperatorClient, blueprint: str, name: str, pose: Pose) -> str:
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


def _settle(client: OperatorClient, name: str, pose: Pose) -> str:
    """See to it that the topmost body is at the pose: the model file may put it elsewhere in its own frame."""
    things = Things(client)
    if not things.is_playing:
        return ""
    thing = things.find(name)
    place = needed_pose(client, thing, pose)
    if place is None:
        return ""
    name = thing.actor.name
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
        raise Refused(
            Code.FEATURE_UNSUPPORTED,
            "a model as a string cannot be spawned: save it where the server can read it, and give its uri",
        )
    if not resource.uri:
        raise Refused(SpawnCode.NO_RESOURCE, "uri is empty: give one of get_spawnables, or the path of a model file")
    split = urlsplit(resource.uri)
    if split.scheme not in ("", "file"):
        raise Refused(
            SpawnCode.UNSUPPORTED_FORMAT,
            f"{resource.uri!r}: {split.scheme!r} cannot be read. Give one of get_spawnables, or file:///path/of/model.xml",
        )
    path = unquote(split.path) if split.scheme else str(resource.uri)
    suffix = PurePosixPath(path).suffix.lower()
    if path.startswith("/") and not path.startswith("/Game/") and suffix not in _SUFFIXES:
        raise Refused(
            SpawnCode.UNSUPPORTED_FORMAT,
            f"a file {suffix or 'without a suffix'} cannot be spawned; {', '.join(_SUFFIXES)} can",
        )
    return path


def _stem(blueprint: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", PurePosixPath(blueprint).name.partition(".")[0]) or "entity"


def _free_name(things: Things, wanted: str, *, allow_renaming: bool, stem: str) -> str:
    if not wanted and not allow_renaming:
        raise Refused(SpawnCode.NAME_INVALID, "name is empty: give one, or set allow_renaming to have one made")
    if wanted and not _NAME.fullmatch(wanted):
        raise Refused(
            SpawnCode.NAME_INVALID, f"{wanted!r} is not a name: letters, digits and _ it is, with - . / between them"
        )
    if len(wanted) > LONGEST_NAME:
        raise Refused(SpawnCode.NAME_INVALID, f"the name has {len(wanted)} characters; {LONGEST_NAME} are allowed")
    base = wanted or stem
    if not things.is_taken(base):
        return base
    if not allow_renaming:
        raise Refused(SpawnCode.NAME_NOT_UNIQUE, f"{base!r} is taken: choose another name, or set allow_renaming")
    return next(name for n in itertools.count(2) if not things.is_taken(name := f"{base}_{n}"))


def _initial_pose(things: Things, stamped: Any) -> Pose:
    try:
        frame = things.frame(stamped.header.frame_id)
    except Refused as unknown:
        raise Refused(
            SpawnCode.INVALID_POSE,
            f"the frame {stamped.header.frame_id!r} is neither 'world' nor an entity: {unknown.message}",
        ) from unknown
    return frame.then(read_pose(stamped.pose, SpawnCode.INVALID_POSE))


def _spawn_failure(client: OperatorClient, blueprint: str, failed: URLabRPCError) -> Exception:
    if failed.code not in (ErrorCode.SPAWN_FAILED, ErrorCode.IMPORT_FAILED, ErrorCode.PATH_NOT_READABLE):
        return failed
    is_file = PurePosixPath(blueprint).suffix.lower() in _SUFFIXES
    if is_file:
        return Refused(SpawnCode.RESOURCE_PARSE_ERROR, failed.message)
    known = ", ".join(one.short_name for one in client.outliner.list_blueprints())
    return Refused(Code.NOT_FOUND, f"{blueprint!r} cannot be spawned: {failed.message}. There are: {known}")
