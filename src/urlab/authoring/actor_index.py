"""The actors and lights of a level, found by name and by id."""

from collections.abc import Iterator
from dataclasses import replace

from urlab.errors import EditError, UnknownActor, known
from urlab.scene.level import MANAGER_NAME, Actor, Level, Light
from urlab.scene.names import ActorNames

Placed = Actor | Light


class ActorIndex:
    """A level that is being changed. Not thread-safe; the owner of the world's lock uses it.

    Every change costs the same, however many actors there are; only `level` is made anew when it is asked for.
    """

    def __init__(self, level: Level) -> None:
        self._level = level
        self._actors = {actor.name: actor for actor in level.actors}
        self._lights = {light.name: light for light in level.lights}
        self._by_id = {one.actor_id: one.name for one in self if one.actor_id}
        self._names: ActorNames | None = None
        self._changed = False

    def __iter__(self) -> Iterator[Placed]:
        yield from self._actors.values()
        yield from self._lights.values()

    def __contains__(self, name: str) -> bool:
        return name in self._actors or name in self._lights

    @property
    def actor_count(self) -> int:
        """How many actors there are, without lights."""
        return len(self._actors)

    @property
    def level(self) -> Level:
        """The level as it is now."""
        if self._changed:
            self._level = replace(self._level, actors=tuple(self._actors.values()), lights=tuple(self._lights.values()))
            self._changed = False
        return self._level

    def find(self, target: str, *, by_name: bool = False) -> Placed:
        """The actor of that id or else of that name; UnknownActor lists those that exist."""
        name = target if by_name else self._by_id.get(target, target)
        found = self._actors.get(name) or self._lights.get(name)
        if found is None:
            kind = "name" if by_name else "actor_id or name"
            there = [one.name if by_name else one.actor_id or one.name for one in self]
            raise UnknownActor(f"no actor has the {kind} {target!r}; there are: {known(there)}")
        return found

    def with_id(self, actor_id: str) -> Placed | None:
        """The actor of that id, or None."""
        name = self._by_id.get(actor_id) if actor_id else None
        return None if name is None else self._actors.get(name) or self._lights[name]

    def take_name(self, wanted: str) -> str:
        """A name for one more actor."""
        if self._names is None:
            self._names = ActorNames([MANAGER_NAME, *self._actors, *self._lights])
        return self._names.take_unique(wanted)

    def put(self, one: Placed) -> None:
        """Add an actor or a light, or replace the one of the same name."""
        owner = self._by_id.get(one.actor_id)
        if one.actor_id and owner is not None and owner != one.name:
            raise EditError(f"actor_id {one.actor_id!r} belongs to {owner!r} already")
        if isinstance(one, Actor):
            self._actors[one.name] = one
        else:
            self._lights[one.name] = one
        if one.actor_id:
            self._by_id[one.actor_id] = one.name
        self._changed = True

    def remove(self, one: Placed) -> None:
        """Take an actor or a light away."""
        self._actors.pop(one.name, None)
        self._lights.pop(one.name, None)
        self._by_id.pop(one.actor_id, None)
        self._names = None
        self._changed = True
