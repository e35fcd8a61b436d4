"""What there is: names, states, kinds, sizes; and where it is put."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from urlab.ros2.convert.pose import Array, Pose
from urlab.ros2.messages import make
from urlab.ros2.services.bounds import bounds_message, box_in, overlap
from urlab.ros2.services.name_filter import name_filter
from urlab.ros2.services.operating import OperatorClient
from urlab.ros2.services.placing import move_actor, needed_pose
from urlab.ros2.services.restarting import change_scene
from urlab.ros2.services.results import INVALID_POSE, Code, Refused, result
from urlab.ros2.services.states import entity_state, read_pose, read_twist, rotated
from urlab.ros2.services.things import Thing, Things
from urlab.ros2.simulation_messages import PACKAGE

_ALL_TAGS = 1


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
    thing = Things(client).find(request.entity)
    return {"result": result(), "state": entity_state(thing, client.sim_time)}


def get_entity_info(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetEntityInfo."""
    thing = Things(client).find(request.entity)
    category = make(f"{PACKAGE}/msg/EntityCategory", category=thing.category)
    info = make(f"{PACKAGE}/msg/EntityInfo", category=category, description=thing.description, tags=thing.tags)
    return {"result": result(), "info": info}


def get_entity_bounds(client: OperatorClient, request: Any) -> dict[str, Any]:
    """GetEntityBounds: a box along the axes of the entity's topmost body."""
    things = Things(client)
    thing = things.find(request.entity)
    _require_playing(things, "bounds are known")
    box = box_in(client, thing, thing.pose)
    if box is None:
        raise Refused(Code.OPERATION_FAILED, f"{thing.name!r} has no geometry of finite size")
    return {"result": result(), "bounds": bounds_message(box)}


def set_entity_state(client: OperatorClient, request: Any) -> dict[str, Any]:
    """SetEntityState; without the flags of later versions pose and twist both count."""
    things = Things(client)
    thing, state = things.find(request.entity), request.state
    frame = _frame(things, state.header.frame_id)
    pose = frame.then(read_pose(state.pose, INVALID_POSE)) if getattr(request, "set_pose", True) else None
    speeds = None
    if getattr(request, "set_twist", True):
        linear, angular = read_twist(state.twist, Code.OPERATION_FAILED)
        speeds = rotated(linear, frame.quat_wxyz), rotated(angular, frame.quat_wxyz)
    return {"result": result(Code.OK, _put(client, thing, pose, speeds))}


def _put(client: OperatorClient, thing: Thing, pose: Pose | None, speeds: tuple[Array, Array] | None) -> str:
    if thing.is_free:
        _put_free(client, thing, pose, speeds)
        return ""
    if speeds is not None and any(np.any(one) for one in speeds):
        raise Refused(
            Code.OPERATION_FAILED, f"{thing.name!r} does not move freely now, so it has no twist to set: ask for zero"
        )
    if pose is None:
        return ""
    if thing.is_mocap and thing.handle is not None:
        client.runtime.set_mocap_pose(thing.handle.name, pos=pose.pos.tolist(), quat=pose.quat_wxyz.tolist())
        client.runtime.forward()
        return ""
    return _put_fixed(client, thing, pose)


def _put_free(client: OperatorClient, thing: Thing, pose: Pose | None, speeds: tuple[Array, Array] | None) -> None:
    """Of a free joint MuJoCo has the linear velocity in the world, the angular one in the body."""
    target = _free_target(thing)
    qpos = [] if pose is None else [*pose.pos.tolist(), *pose.quat_wxyz.tolist()]
    qvel = None
    if speeds is not None:
        quat_wxyz = (pose or thing.pose).quat_wxyz
        qvel = [*speeds[0].tolist(), *rotated(speeds[1], quat_wxyz, back=True).tolist()]
    if qpos or qvel is not None:
        client.runtime.set_qpos(target, qpos, by_name=True, qvel=qvel)


def _free_target(thing: Thing) -> str:
    """What the server calls it: an actor by its own name, a free body within a robot by the body's."""
    if thing.is_whole:
        return thing.actor.name
    if thing.handle is None or thing.actor.urlab is None:
        raise Refused(
            Code.OPERATION_FAILED, f"{thing.name!r} is a part of {thing.actor.name!r}: only the whole can be put"
        )
    return thing.handle.name


def _put_fixed(client: OperatorClient, thing: Thing, pose: Pose) -> str:
    """What is fixed to the world stands where the level says."""
    if not thing.is_whole:
        raise Refused(
            Code.OPERATION_FAILED, f"{thing.name!r} is a part of {thing.actor.name!r}: only the whole can be put"
        )
    place = pose if thing.handle is None else needed_pose(client, thing, pose)
    if place is None:
        return ""
    return change_scene(client, lambda: move_actor(client, thing.actor.name, place))


def _matching(client: OperatorClient, filters: Any) -> Iterator[Thing]:
    things = Things(client)
    name = name_filter(filters.filter)
    categories = {one.category for one in filters.categories}
    region = overlap(filters.bounds) if filters.bounds.type else None
    if region is not None:
        _require_playing(things, "bounds are known")
    for thing in things.by_name.values():
        fits = name.search(thing.name) and (not categories or thing.category in categories)
        if fits and _has_tags(thing, filters.tags) and (region is None or region.meets(client, thing)):
            yield thing


def _has_tags(thing: Thing, wanted: Any) -> bool:
    if not wanted.tags:
        return True
    has = [tag in thing.tags for tag in wanted.tags]
    return all(has) if wanted.filter_mode == _ALL_TAGS else any(has)


def _frame(things: Things, name: str) -> Pose:
    try:
        return things.frame(name)
    except Refused as unknown:
        raise Refused(
            INVALID_POSE, f"the frame {name!r} is neither 'world' nor an entity: {unknown.message}"
        ) from unknown


def _require_playing(things: Things, what: str) -> None:
    if not things.is_playing:
        raise Refused(
            Code.INCORRECT_STATE, f"{what} while the level plays: set the simulation to playing or paused first"
        )
