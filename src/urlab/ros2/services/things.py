"""The entities of a scene, as ROS knows them: what they are called, where they are, and what they belong to."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from urlab.ros2.convert.pose import Array, Pose, at
from urlab.ros2.services.operating import OperatorClient, playing, refresh
from urlab.ros2.services.results import Code, Refused
from urlab_client import SceneSnapshotActor, URLabArticulation, URLabEntity

SPAWNED_TAG = "ros2.spawned"
"""What SpawnEntity brought bears this tag, so that a reset finds it."""

OBJECT, ROBOT, MOVABLE, STATIC = 0, 1, 4, 5
"""Categories of simulation_interfaces: OBJECT (of which no more is known), ROBOT, DYNAMIC_OBJECT, STATIC_OBJECT."""

_NO_ENTITIES = ("AMjManager", "DirectionalLight", "PointLight", "SpotLight")


@dataclass(frozen=True, eq=False)
class Thing:
    """One entity. ``pose`` and the velocities (m/s, rad/s) are of its topmost body, in the world.

    ``handle`` is None while nothing plays; then ``pose`` is the actor's. ``is_whole``: it stands for all of its actor,
    and can be deleted.
    """

    name: str
    actor: SceneSnapshotActor
    handle: URLabEntity | None
    category: int
    pose: Pose
    linear: Array
    angular: Array
    is_whole: bool
    is_mocap: bool = False

    @property
    def is_free(self) -> bool:
        """Whether it moves freely."""
        return self.handle is not None and self.handle.has_free_base

    @property
    def tags(self) -> list[str]:
        """The words that its level has for it."""
        return list(self.actor.tags)

    @property
    def is_spawned(self) -> bool:
        """Whether SpawnEntity brought it."""
        return SPAWNED_TAG in self.actor.tags

    @property
    def description(self) -> str:
        """A sentence for people."""
        kind = {OBJECT: "object", ROBOT: "robot", MOVABLE: "movable body", STATIC: "static body"}[self.category]
        part = "" if self.is_whole else f", a part of {self.actor.name}"
        return f"{kind}{part}; actor {self.actor.name}, class {self.actor.actor_class}"


class Things:
    """Every entity at one moment, by name."""

    def __init__(self, client: OperatorClient) -> None:
        self.is_playing = playing(client) is not None
        if self.is_playing:
            refresh(client)
        actors = client.scene.snapshot().actors
        self.actors = {one.name: one for one in actors if one.actor_class not in _NO_ENTITIES}
        found = self._running(client) if self.is_playing else self._authored()
        self.by_name = {one.name: one for one in found}

    def find(self, name: str) -> Thing:
        """The entity of that name; the actor_id and the prefix of its actor will do. `Refused` when there is none."""
        whole = (one for one in self.by_name.values() if one.is_whole and name in (one.actor.actor_id, one.actor.name))
        thing = self.by_name.get(name) or next((one for one in whole if name), None)
        if thing is None:
            known = ", ".join(self.by_name) or "none"
            raise Refused(Code.NOT_FOUND, f"there is no entity {name!r}; there are: {known}")
        return thing

    def is_taken(self, name: str) -> bool:
        """Whether some entity, actor or id is called that."""
        ids = {one.actor_id for one in self.actors.values()}
        return name in self.by_name or name in self.actors or name in ids

    def frame(self, name: str) -> Pose:
        """Where the frame of that name is in the world: the world's own, or an entity's. `Refused` when unknown."""
        return at() if name in ("", "world") else self.find(name).pose

    def _authored(self) -> Iterator[Thing]:
        for actor in self.actors.values():
            x, y, z, w = actor.rotation_quat
            category = ROBOT if actor.urlab is not None else OBJECT
            name, still = _name(actor, actor.name), np.zeros(3)
            yield Thing(name, actor, None, category, at(actor.location, (w, x, y, z)), still, still, is_whole=True)

    def _running(self, client: OperatorClient) -> Iterator[Thing]:
        seen: set[str] = set()
        mocap_ids = client.model.body_mocapid
        for handle in _robots_first(client):
            actor = self._actor_of(handle.name)
            if actor is not None:
                is_mocap = bool(mocap_ids[handle.body_id] >= 0)
                yield _running_thing(actor, handle, is_mocap=is_mocap, is_whole=actor.name not in seen)
                seen.add(actor.name)

    def _actor_of(self, name: str) -> SceneSnapshotActor | None:
        owners = [one for one in self.actors if name == one or name.startswith(f"{one}_")]
        return self.actors[max(owners, key=len)] if owners else None


def _robots_first(client: OperatorClient) -> list[URLabEntity]:
    """Of an actor's entities the one that stands for it comes first."""
    return sorted(client.entities.values(), key=lambda one: not isinstance(one, URLabArticulation))


def _running_thing(actor: SceneSnapshotActor, handle: URLabEntity, *, is_mocap: bool, is_whole: bool) -> Thing:
    moves = handle.has_free_base or is_mocap
    category = ROBOT if isinstance(handle, URLabArticulation) else MOVABLE if moves else STATIC
    return Thing(
        name=_name(actor, handle.name) if is_whole else handle.name,
        actor=actor,
        handle=handle,
        category=category,
        pose=Pose(handle.root_pos_w, handle.root_quat_w),
        linear=handle.root_lin_vel_w,
        angular=handle.root_ang_vel_w,
        is_whole=is_whole,
        is_mocap=is_mocap,
    )


def _name(actor: SceneSnapshotActor, own: str) -> str:
    """What was spawned has the name that was asked for, everything else its own."""
    return actor.actor_id if SPAWNED_TAG in actor.tags and actor.actor_id else own
