"""Level files: a level as TOML text, and back.

::

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

    [randomize.panda_base]   # what a reset with a seed draws: see urlab.scene.randomisation
    kind = "body"
    name = "panda_link0"
    field = "mass"
    distribution = "uniform"
    low = 0.9
    high = 1.1
    apply = "scale"

    [[lights]]
    name = "sun"
    kind = "directional"
    rotation_euler = [0.0, 60.0, 0.0]       # it shines along its +X axis; degrees
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from urlab.errors import BadValue, LoadLevelFailed
from urlab.geometry import Pose, all_finite, normalised, wxyz_from_euler_deg, wxyz_from_xyzw, xyzw_from_wxyz
from urlab.paths import BadPath, FileKind, open_to_read
from urlab.scene.blueprint_record import MODEL_SUFFIXES
from urlab.scene.level import (
    DEFAULT_INTENSITY,
    MAX_THRESHOLD,
    MIN_THRESHOLD,
    UNIT_SCALE,
    Actor,
    Level,
    Light,
    QuickConvert,
)
from urlab.scene.names import ActorNames, legal_name
from urlab.scene.randomisation import parse_randomisation
from urlab.toml_tables import TomlTable, assignment, table_lines, toml_key
from urlab_wire.enums import LightKind

LEVEL_VERSION = 1
MAX_LEVEL_BYTES = 16 << 20
_TABLE = re.compile(rb"^\s*\[", re.MULTILINE)
_HEADER = re.compile(rb"^\s*(version|name)\s*=", re.MULTILINE)
LEVEL = FileKind("a level", ".toml", lambda head: {b"version", b"name"} <= set(_HEADER.findall(_TABLE.split(head)[0])))
"""Known by its header: the version and the name, before the first table."""

Numbers3 = tuple[float, float, float]
Numbers4 = tuple[float, float, float, float]


class ActorRecord(msgspec.Struct, forbid_unknown_fields=True):
    """`Actor` as a level file writes it."""

    blueprint: str
    name: str
    actor_id: str = ""
    location: Numbers3 = (0.0, 0.0, 0.0)
    rotation_quat: Numbers4 = (0.0, 0.0, 0.0, 1.0)
    scale: Numbers3 = UNIT_SCALE
    keyframe: str = ""
    tags: list[str] = []
    config: dict[str, Any] = {}
    quick_convert: QuickConvert | None = None


class LightRecord(msgspec.Struct, forbid_unknown_fields=True):
    """`Light` as a level file writes it."""

    name: str
    kind: LightKind = LightKind.DIRECTIONAL
    actor_id: str = ""
    location: Numbers3 = (0.0, 0.0, 0.0)
    rotation_euler: Numbers3 = (0.0, 0.0, 0.0)
    intensity: float = DEFAULT_INTENSITY
    color: Numbers3 = (1.0, 1.0, 1.0)


class LevelRecord(msgspec.Struct, forbid_unknown_fields=True):
    """`Level` as a level file writes it."""

    version: int
    name: str
    manager: bool = False
    options: dict[str, Any] = {}
    randomize: dict[str, dict[str, Any]] = {}
    actors: list[ActorRecord] = []
    lights: list[LightRecord] = []


def read_level(path: Path, real: Path | None = None) -> Level:
    """Read a level file; LoadLevelFailed says what is wrong with it.

    ``real`` is the same path with links resolved, for a caller that has judged it.
    """
    try:
        with open_to_read(real or Path(os.path.realpath(path))) as file:
            content = file.read(MAX_LEVEL_BYTES + 1)
        if len(content) > MAX_LEVEL_BYTES:
            raise BadPath(f"it has more than {MAX_LEVEL_BYTES >> 20} MiB")
        text = content.decode()
    except (OSError, ValueError) as unreadable:
        raise LoadLevelFailed(f"level {path} cannot be read: {unreadable}") from unreadable
    return parse_level(text, source=str(path), folder=path.parent)


def parse_level(text: str, *, source: str, folder: Path | None = None) -> Level:
    """A level from TOML text. Relative model files are resolved against ``folder``."""
    record = TomlTable.parse(text, source=source, error=LoadLevelFailed).convert(LevelRecord)
    if record.version != LEVEL_VERSION:
        raise LoadLevelFailed(f"{source}: version {record.version} is not {LEVEL_VERSION}, which this server reads")
    try:
        actors = tuple(_actor(one, folder) for one in record.actors)
        lights = tuple(_light(one) for one in record.lights)
        _refuse_repeats([*actors, *lights])
        parse_randomisation(record.randomize)
    except BadValue as wrong:
        raise LoadLevelFailed(f"{source}: {wrong.message}") from wrong
    except ValueError as wrong:
        raise LoadLevelFailed(f"{source}: {wrong}") from wrong
    return Level(record.name, actors, record.options, lights, record.manager, record.randomize)


def level_text(level: Level) -> str:
    """The level as TOML, for people to read and `parse_level` to restore exactly."""
    return "\n".join(_lines(level)) + "\n"


def _lines(level: Level) -> Iterator[str]:
    yield from (assignment("version", LEVEL_VERSION), assignment("name", level.name))
    if level.has_manager:
        yield assignment("manager", value=True)
    if level.options:
        yield from ("", "[options]", *(assignment(key, value) for key, value in level.options.items()))
    for key, entry in level.randomize.items():
        yield from ("", *table_lines(f"[randomize.{toml_key(key)}]", entry))
    for actor in level.actors:
        yield from ("", *table_lines("[[actors]]", _fields(_actor_record(actor))))
    for light in level.lights:
        yield from ("", *table_lines("[[lights]]", _fields(_light_record(light))))


def _fields(record: msgspec.Struct) -> dict[str, Any]:
    """What a record says beyond its defaults."""
    stated = {one.name: getattr(record, one.name) for one in msgspec.structs.fields(record) if _is_stated(record, one)}
    return {key: _fields(value) if isinstance(value, msgspec.Struct) else value for key, value in stated.items()}


def _is_stated(record: msgspec.Struct, field: msgspec.structs.FieldInfo) -> bool:
    default = field.default_factory() if callable(field.default_factory) else field.default
    return bool(getattr(record, field.name) != default)


def _actor_record(actor: Actor) -> ActorRecord:
    return ActorRecord(
        blueprint=actor.blueprint,
        name=actor.name,
        actor_id=actor.actor_id,
        location=actor.pose.pos,
        rotation_quat=xyzw_from_wxyz(actor.pose.quat_wxyz),
        scale=actor.scale,
        keyframe=actor.keyframe,
        tags=list(actor.tags),
        config=dict(actor.config),
        quick_convert=actor.quick_convert,
    )


def _light_record(light: Light) -> LightRecord:
    return LightRecord(
        name=light.name,
        kind=light.kind,
        actor_id=light.actor_id,
        location=light.pose.pos,
        rotation_euler=light.rotation_euler,
        intensity=light.intensity,
        color=light.color,
    )


def _actor(record: ActorRecord, folder: Path | None) -> Actor:
    _check_name(record.name)
    where = f"actor {record.name!r}"
    try:
        quat = _rotation(record.rotation_quat)
    except ValueError as zero:
        raise ValueError(f"{where}: rotation_quat: {zero}") from zero
    _check_finite(where, location=record.location, scale=record.scale)
    if not all(factor > 0 for factor in record.scale):
        raise ValueError(f"{where}: scale must be above 0, but is {list(record.scale)}")
    if record.quick_convert is not None:
        _check_quick_convert(record.quick_convert, where)
    return Actor(
        name=record.name,
        blueprint=_blueprint(record.blueprint, folder),
        actor_id=record.actor_id,
        pose=Pose(record.location, quat),
        keyframe=record.keyframe,
        scale=record.scale,
        tags=tuple(record.tags),
        config=record.config,
        quick_convert=record.quick_convert,
    )


def _rotation(xyzw: Numbers4) -> Numbers4:
    """Unit quaternions stay what they are, to the last bit: a level that is saved again does not drift."""
    given, unit = wxyz_from_xyzw(xyzw), normalised(wxyz_from_xyzw(xyzw))
    return given if max(abs(a - b) for a, b in zip(given, unit, strict=True)) < 1e-15 else unit


def _check_quick_convert(record: QuickConvert, where: str) -> None:
    _check_finite(where, friction=record.friction, coacd_threshold=(record.coacd_threshold,))
    if min(record.friction) < 0:
        raise ValueError(f"{where}: friction must not be negative, but is {list(record.friction)}")
    if not MIN_THRESHOLD <= record.coacd_threshold <= MAX_THRESHOLD:
        raise ValueError(
            f"{where}: coacd_threshold is from {MIN_THRESHOLD} to {MAX_THRESHOLD}, not {record.coacd_threshold}"
        )
    if record.static and record.driven:
        raise ValueError(f"{where}: a body is static or driven, not both")


def _light(record: LightRecord) -> Light:
    _check_name(record.name)
    numbers = {"location": record.location, "rotation_euler": record.rotation_euler, "color": record.color}
    _check_finite(f"light {record.name!r}", intensity=(record.intensity,), **numbers)
    if record.intensity < 0 or min(record.color) < 0 or max(record.color) > 1:
        raise ValueError(f"light {record.name!r}: intensity is at least 0, and color is in 0..1")
    return Light(
        name=record.name,
        kind=record.kind,
        actor_id=record.actor_id,
        pose=Pose(record.location, wxyz_from_euler_deg(record.rotation_euler)),
        rotation_euler=record.rotation_euler,
        intensity=record.intensity,
        color=record.color,
    )


def _check_name(name: str) -> None:
    if name != legal_name(name):
        raise ValueError(f"actor name {name!r} is not legal; {legal_name(name)!r} is")


def _check_finite(where: str, **numbers: tuple[float, ...]) -> None:
    for field, values in numbers.items():
        if not all_finite(values):
            raise ValueError(f"{where}: {field} must be finite, but is {list(values)}")


def _blueprint(word: str, folder: Path | None) -> str:
    looks_like_file = Path(word).suffix.lower() in MODEL_SUFFIXES
    return str(folder / word) if looks_like_file and folder is not None else word


def _refuse_repeats(actors: list[Actor | Light]) -> None:
    ids: set[str] = set()
    names = ActorNames()
    for actor in actors:
        if actor.actor_id in ids:
            raise ValueError(f"two actors have the actor_id {actor.actor_id!r}")
        ids |= {actor.actor_id} - {""}
        rival = names.rival(actor.name)
        if rival == actor.name:
            raise ValueError(f"two actors are named {rival!r}")
        if rival is not None:
            first, second = sorted((rival, actor.name))
            collision = f"the actor names {first!r} and {second!r} collide"
            raise ValueError(f"{collision}: use a hyphen instead of the underscore")
        names.take(actor.name)
