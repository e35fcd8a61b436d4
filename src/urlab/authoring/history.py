"""The edits of the open level, to be taken back and made again: of each, the level before it, which is a value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from urlab.authoring.actor_index import ActorIndex, Placed
from urlab.errors import EditError
from urlab.scene.level import Actor, Level

MOST_EDITS = 200
MOST_ACTORS = 2_000_000
"""In all levels that are kept together, 8 bytes each: very large levels have fewer edits to take back."""


class LevelEdit:
    """One edit under way: what it puts into the index and takes out of it. ``verb`` is for its label."""

    def __init__(self, index: ActorIndex) -> None:
        self.index = index
        self._done: list[tuple[str, str]] = []

    @property
    def label(self) -> str:
        """What a person would call it: "move panda", "spawn 12 actors"."""
        if not self._done:
            return ""
        verb, name = self._done[0]
        return f"{verb} {name}" if len(self._done) == 1 else f"{verb} {len(self._done)} actors"

    def put(self, one: Placed, verb: str, of: str = "") -> None:
        """Add an actor or a light, or replace the one of the same name. The label names it, or what it is made of."""
        self.index.put(one)
        self._done.append((verb, of or one.name))

    def remove(self, one: Placed, verb: str) -> None:
        """Take an actor or a light away."""
        self.index.remove(one)
        self._done.append((verb, one.name))


@dataclass(frozen=True, slots=True)
class KeptEdit:
    """A level to go to, and what was done between it and the next one."""

    level: Level
    label: str


class EditHistory:
    """What has been done to one open level. Not thread-safe; the owner of the world's lock uses it.

    Of a level only actors and lights count: its name and its manager are not taken back.
    """

    def __init__(self) -> None:
        self._done: list[KeptEdit] = []
        self._undone: list[KeptEdit] = []

    @property
    def can_undo(self) -> str | None:
        """What `undo` would take back."""
        return self._done[-1].label if self._done else None

    @property
    def can_redo(self) -> str | None:
        """What `redo` would make again."""
        return self._undone[-1].label if self._undone else None

    def record(self, before: Level, after: Level, label: str) -> None:
        """Keep an edit, unless it changed nothing; what was taken back before it cannot be made again."""
        if differ(before, after):
            self._done.append(KeptEdit(before, label))
            self._undone.clear()
            self._bound()

    def undo(self, now: Level) -> tuple[Level, str]:
        """The open level as it was before its last edit, and what that was; EditError when there is none."""
        return _taken("undo", self._done, self._undone, now)

    def redo(self, now: Level) -> tuple[Level, str]:
        """The open level with the edit that was taken back last, and what that is; EditError when there is none."""
        return _taken("redo", self._undone, self._done, now)

    def rewrite(self, change: Callable[[Level], Level], now: Level) -> None:
        """Change all levels that are kept as the open one was changed, which is ``now``; edits of nothing go."""
        self._done = _without_idle([replace(one, level=change(one.level)) for one in self._done], now)
        self._undone = _without_idle([replace(one, level=change(one.level)) for one in self._undone], now)

    def _bound(self) -> None:
        while len(self._done) > MOST_EDITS:
            del self._done[0]
        actors = sum(len(one.level.actors) for one in self._done)
        while actors > MOST_ACTORS:
            actors -= len(self._done.pop(0).level.actors)


def differ(one: Level, other: Level) -> bool:
    """Whether two levels have other actors or lights, or these in another order."""
    return one.actors != other.actors or one.lights != other.lights


# -- changes of every level that is kept --------------------------------------------------------------------------


def with_words(words: Mapping[str, str]) -> Callable[[Level], Level]:
    """Makes levels in which blueprints have other words; levels that share an actor share the new one."""
    made: dict[int, tuple[Actor, Actor]] = {}

    def actor_of(one: Actor) -> Actor:
        if one.blueprint not in words:
            return one
        if id(one) not in made:
            made[id(one)] = one, replace(one, blueprint=words[one.blueprint])
        return made[id(one)][1]

    return lambda level: replace(level, actors=tuple(map(actor_of, level.actors))) if words else level


def without(level: Level, blueprint: str) -> Level:
    """The level without the actors of a blueprint."""
    return replace(level, actors=tuple(one for one in level.actors if one.blueprint != blueprint))


# -- inside -------------------------------------------------------------------------------------------------------


def _taken(word: str, source: list[KeptEdit], target: list[KeptEdit], now: Level) -> tuple[Level, str]:
    if not source:
        raise EditError(f"there is nothing to {word} in level {now.name!r}")
    edit = source.pop()
    target.append(KeptEdit(now, edit.label))
    return replace(now, actors=edit.level.actors, lights=edit.level.lights), edit.label


def _without_idle(edits: list[KeptEdit], now: Level) -> list[KeptEdit]:
    """Without those that lead from a level to the same level; the last one leads to ``now``."""
    left: list[KeptEdit] = []
    for edit in reversed(edits):
        if differ(edit.level, now):
            left.append(edit)
        now = edit.level
    return left[::-1]
