"""Large state replies, of which most is the same every time: the poses of bodies that stand still.

A server sends every entity with every state. Where thousands of them never move, their bytes come again and again; they
are decoded once, and then recognised by comparing bytes, which costs microseconds instead of milliseconds.
"""

from itertools import groupby
from typing import Any, NamedTuple

from urlab_wire.codec import Tree, decode, encode

LARGE_BYTES = 16384
"""In a smaller frame there is nothing to be won."""

_FEWEST = 64
_ENTITIES = b"\xa8entities"
_MAP16, _MAP32, _FIXMAP = 0xDE, 0xDF, 0x80
_MOST_FIX, _MOST_16 = 15, 0xFFFF
_POSE = frozenset({"xpos", "xquat"})
_GIVE_UP = 16


class KnownEntities(dict[str, Any]):
    """The entities of a reply, of which those that stand still were recognised as those of an earlier one."""


class _Run(NamedTuple):
    """A stretch of equal bytes. ``entities`` has all names in order, with the blocks of the stretch."""

    op: Any
    head: int
    first: int
    start: int
    content: bytes
    remaining: bytes
    entities: dict[str, Any]


class RepeatedBlocks:
    """Decodes the large frames of one connection. The entities that stand still are the same objects in every reply.

    Any thread; what one learns, others may use.
    """

    def __init__(self) -> None:
        self._run: _Run | None = None
        self._moved: set[str] = set()
        self._missed = 0

    def decode(self, frame: bytes) -> Tree:
        """What `urlab_wire.codec.decode` gives; DecodeError likewise."""
        run = self._run
        if run is not None and frame.startswith(run.content, run.start):
            parts = (frame[: run.head], run.remaining, frame[run.first : run.start])
            tree = decode(b"".join((*parts, frame[run.start + len(run.content) :])))
            tree["entities"] = KnownEntities(run.entities | tree["entities"])
            return tree
        tree = decode(frame)
        if self._missed < _GIVE_UP and (run is None or run.op == tree.get("op")):
            self._learn(frame, tree, run)
        return tree

    def _learn(self, frame: bytes, tree: Tree, last: _Run | None) -> None:
        """Find the longest stretch of entities that have a pose and no more, and have not been seen to move."""
        entities = tree.get("entities") or {}
        if last is not None:
            self._missed += 1
            self._moved |= {name for name, block in entities.items() if last.entities.get(name) not in (None, block)}
        names = list(entities)
        stretches = [
            [place for place, _ in group]
            for still, group in groupby(enumerate(names), key=lambda one: self._stands_still(one[1], entities))
            if still
        ]
        longest = max(stretches, key=len, default=[])
        self._run = _find(frame, tree, names, longest) if len(longest) >= _FEWEST else None

    def _stands_still(self, name: str, entities: Tree) -> bool:
        return name not in self._moved and entities[name].keys() == _POSE


def _find(frame: bytes, tree: Tree, names: list[str], places: list[int]) -> _Run | None:
    """The stretch in the frame; None when it is not there as our encoder writes it."""
    entities = tree["entities"]
    kept = {names[place]: entities[names[place]] for place in places}
    content = encode(kept)[len(_map_head(len(kept))) :]
    key, head = frame.find(_ENTITIES), _map_head(len(names))
    start = frame.find(content)
    begin = key + len(_ENTITIES)
    if key < 0 or start < 0 or not frame.startswith(head, begin):
        return None
    return _Run(
        op=tree.get("op"),
        head=begin,
        first=begin + len(head),
        start=start,
        content=content,
        remaining=_map_head(len(names) - len(kept)),
        entities={name: kept.get(name) for name in names},
    )


def _map_head(count: int) -> bytes:
    """How msgpack begins a map of so many entries."""
    if count <= _MOST_FIX:
        return bytes((_FIXMAP + count,))
    if count <= _MOST_16:
        return bytes((_MAP16,)) + count.to_bytes(2, "big")
    return bytes((_MAP32,)) + count.to_bytes(4, "big")
