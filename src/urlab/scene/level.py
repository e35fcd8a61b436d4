"""A level: actors in order, and the physics options that it overrides.

A level is a TOML file::

    version = 1
    name = "demo"

    [options]                # fields of set_sim_options; the others stay as the robots ask
    timestep = 0.002

    [[actors]]
    blueprint = "panda"      # an import, a shipped model, or a model file (relative to this file)
    name = "panda"           # prefix of its compiled names; unique
    actor_id = "arm"
    location = [0.0, 0.0, 0.4]
    rotation_quat = [0.0, 0.0, 0.0, 1.0]    # x, y, z, w
    keyframe = "home"        # where it starts: a keyframe of its model; without one, as MuJoCo does
"""

import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from urlab.errors import LoadLevelFailed
from urlab.geometry import Pose, normalised, wxyz_from_xyzw
from urlab.scene.actor import Actor

LEVEL_VERSION = 1
_WORLD = "world"
"""MuJoCo's own body: no actor of one body can be called that."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True, slots=True)
class Level:
    """What exists, as data. Immutable: an edit makes another level."""

    name: str
    actors: tuple[Actor, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def actor(self, name: str) -> Actor | None:
        """The actor of that name, or None."""
        return next((one for one in self.actors if one.name == name), None)


def legal_name(wanted: str) -> str:
    """The nearest name that can be a prefix: letters, digits, dots, hyphens and single inner underscores."""
    name = _ILLEGAL.sub("_", wanted).strip("_") or "actor"
    return f"{name}-1" if name == _WORLD else name


def unique_name(wanted: str, taken: Iterable[str]) -> str:
    """``wanted``, or the first of ``wanted-2``, ``wanted-3`` ... that collides with no taken name.

    Names collide when ``a_`` begins ``b_``: clients find a robot's elements by its prefix and an underscore.
    """
    base, used = legal_name(wanted), tuple(taken)
    for candidate in _candidates(base):
        if not any(collide(candidate, other) for other in used):
            return candidate
    raise AssertionError("unreachable: the candidates never end")


def collide(a: str, b: str) -> bool:
    """Whether the compiled names of one actor could be taken for those of the other."""
    return f"{a}_".startswith(f"{b}_") or f"{b}_".startswith(f"{a}_")


def _candidates(base: str) -> Iterator[str]:
    yield base
    hyphened = base.replace("_", "-")
    if hyphened != base:
        yield hyphened
    for number in itertools.count(2):
        yield f"{base}-{number}"
        if hyphened != base:
            yield f"{hyphened}-{number}"


def read_level(path: Path) -> Level:
    """Read a level file; LoadLevelFailed says what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as unreadable:
        raise LoadLevelFailed(f"level {path} cannot be read: {unreadable}") from unreadable
    return parse_level(text, source=str(path), folder=path.parent)


def parse_level(text: str, *, source: str, folder: Path | None = None) -> Level:
    """A level from TOML text. Relative model files are resolved against ``folder``."""
    try:
        record = msgspec.convert(tomllib.loads(text), _LevelRecord)
    except (ValueError, RecursionError, msgspec.ValidationError) as broken:
        raise LoadLevelFailed(f"{source}: {broken}") from broken
    if record.version != LEVEL_VERSION:
        raise LoadLevelFailed(f"{source}: version {record.version} is not {LEVEL_VERSION}, which this server reads")
    actors = tuple(_actor(one, source, folder) for one in record.actors)
    _refuse_repeats(actors, source)
    return Level(record.name, actors, record.options)


class _ActorRecord(msgspec.Struct, forbid_unknown_fields=True):
    blueprint: str
    name: str
    actor_id: str = ""
    location: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation_quat: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    keyframe: str = ""


class _LevelRecord(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    name: str
    actors: list[_ActorRecord] = []
    options: dict[str, Any] = {}


def _actor(record: _ActorRecord, source: str, folder: Path | None) -> Actor:
    if record.name != legal_name(record.name):
        raise LoadLevelFailed(f"{source}: actor name {record.name!r} is not legal; {legal_name(record.name)!r} is")
    try:
        quat = normalised(wxyz_from_xyzw(record.rotation_quat))
    except ValueError as zero:
        raise LoadLevelFailed(f"{source}: actor {record.name!r}: rotation_quat: {zero}") from zero
    if not all(math.isfinite(number) for number in record.location):
        raise LoadLevelFailed(f"{source}: actor {record.name!r}: location: {record.location} is nowhere")
    blueprint, pose = _blueprint(record.blueprint, folder), Pose(record.location, quat)
    return Actor(record.name, blueprint, record.actor_id, pose, record.keyframe)


def _blueprint(word: str, folder: Path | None) -> str:
    looks_like_file = Path(word).suffix.lower() in {".xml", ".mjcf", ".urdf"}
    return str(folder / word) if looks_like_file and folder is not None else word


def _refuse_repeats(actors: tuple[Actor, ...], source: str) -> None:
    ids = [actor.actor_id for actor in actors if actor.actor_id]
    for repeated in {one for one in ids if ids.count(one) > 1}:
        raise LoadLevelFailed(f"{source}: two actors have the actor_id {repeated!r}")
    owner: dict[str, str] = {}
    for actor in actors:
        for head in _heads(actor.name):
            if head in owner:
                raise LoadLevelFailed(_collision(source, owner[head], actor.name))
        owner[actor.name] = actor.name
    for actor in actors:
        for head in _heads(actor.name)[:-1]:
            if head in owner:
                raise LoadLevelFailed(_collision(source, owner[head], actor.name))


def _heads(name: str) -> list[str]:
    parts = name.split("_")
    return ["_".join(parts[: count + 1]) for count in range(len(parts))]


def _collision(source: str, first: str, second: str) -> str:
    if first == second:
        return f"{source}: two actors are named {first!r}"
    return f"{source}: the actor names {first!r} and {second!r} collide: use a hyphen instead of the underscore"
