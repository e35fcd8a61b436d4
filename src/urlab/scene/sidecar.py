"""`<stem>.urlab.toml` beside `<stem>.xml`: what a robot has that its model file cannot say.

A file that cannot be used raises `ImportFailed` as ``file:line: field: what is wrong, what is allowed``.
"""

import difflib
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from urlab.errors import ImportFailed
from urlab_wire.enums import ActuatorType, CameraMode

T = TypeVar("T")
_Path = tuple[str | int, ...]
_LARGEST = sys.float_info.max

SIDECAR_SUFFIX = ".urlab.toml"
MAX_PIXELS = 8192
GAINS_BY_KIND: Mapping[ActuatorType, frozenset[str]] = {
    ActuatorType.MOTOR: frozenset(),
    ActuatorType.POSITION: frozenset({"kp", "kv"}),
    ActuatorType.VELOCITY: frozenset({"kv"}),
    ActuatorType.DAMPER: frozenset({"kv"}),
}
"""The actuators that a sidecar can add, and the gains that each one understands."""


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """The controller of an articulation. ``params`` are the controller's own to judge."""

    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CameraConfig:
    """One camera, by short name. ``resolution`` is (width, height) in pixels, None = what the model states."""

    mode: CameraMode = CameraMode.REAL
    resolution: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ActuatorConfig:
    """An actuator to add on a joint of a model that has none, as a URDF. None = MuJoCo's default, or unlimited."""

    name: str
    joint: str
    kind: ActuatorType = ActuatorType.MOTOR
    kp: float | None = None
    kv: float | None = None
    ctrlrange: tuple[float, float] | None = None
    forcerange: tuple[float, float] | None = None
    gear: float = 1.0


@dataclass(frozen=True, slots=True)
class Sidecar:
    """All that one sidecar says; the default is what a model without a sidecar has.

    ``semantic_class`` None = the blueprint's short name; ``semantic_bodies`` maps a body's name in the model file
    to the class that it has instead.
    """

    controller: ControllerConfig | None = None
    twist: bool = True
    cameras: Mapping[str, CameraConfig] = field(default_factory=dict)
    semantic_class: str | None = None
    semantic_bodies: Mapping[str, str] = field(default_factory=dict)
    actuators: tuple[ActuatorConfig, ...] = ()


def sidecar_path(model_path: Path) -> Path:
    """Where the sidecar of a model file would be."""
    return model_path.with_name(model_path.stem + SIDECAR_SUFFIX)


def read_sidecar(model_path: Path, replaced: Mapping[str, Any] | None = None) -> Sidecar:
    """The sidecar of that model file; `Sidecar()` when there is none. ``replaced`` are fields that an actor has."""
    path = sidecar_path(model_path)
    try:
        sidecar = parse_sidecar(path.read_text(encoding="utf-8"), source=str(path))
    except FileNotFoundError:
        sidecar = Sidecar()
    except (OSError, UnicodeDecodeError) as error:
        raise ImportFailed(f"{path}: cannot read the sidecar: {error}") from error
    return _with_config(sidecar, replaced) if replaced else sidecar


def check_config(config: Mapping[str, Any]) -> None:
    """ImportFailed when these are not fields of a sidecar."""
    _sidecar(_Table("config", "", (), dict(config)))


def _with_config(sidecar: Sidecar, config: Mapping[str, Any]) -> Sidecar:
    said = _sidecar(_Table("config", "", (), dict(config)))
    names = [name for key in config for name in _FIELDS_OF.get(key, (key,))]
    return replace(sidecar, **{name: getattr(said, name) for name in names})


_FIELDS_OF = {"semantic": ("semantic_class", "semantic_bodies")}


def parse_sidecar(text: str, *, source: str) -> Sidecar:
    """Parse a sidecar's text; ``source`` is what messages call it."""
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ImportFailed(_syntax_message(str(error), text, source)) from error
    return _sidecar(_Table(source, text, (), content))


class _Table:
    """One table of the file: typed reads that fail with file, line and field."""

    def __init__(self, source: str, text: str, path: _Path, content: Any) -> None:
        self.source, self.text, self.path = source, text, path
        if not isinstance(content, dict):
            self.fail(f"is {content!r}, expected a table")
        self.content: dict[str, Any] = content

    def fail(self, problem: str, *keys: str | int) -> NoReturn:
        path = (*self.path, *keys)
        line = _line_of(path, self.text)
        raise ImportFailed(f"{self.source}{f':{line}' if line else ''}: {_dotted(path)}: {problem}")

    def allow(self, *keys: str) -> None:
        for key in self.content:
            if key not in keys:
                self.fail(f"unknown key{_did_you_mean(key, keys)}; allowed: {', '.join(keys)}", key)

    def read(self, key: str, check: Callable[[Any], T]) -> T | None:
        """The checked value, or None when the key is absent."""
        if key not in self.content:
            return None
        try:
            return check(self.content[key])
        except ValueError as expected:
            self.fail(f"is {self.content[key]!r}, expected {expected}", key)

    def require(self, key: str, check: Callable[[Any], T]) -> T:
        value = self.read(key, check)
        return self.fail(f"needs the key {key!r}") if value is None else value

    def table(self, key: str) -> "_Table":
        """The table of that key; empty when it is absent."""
        return _Table(self.source, self.text, (*self.path, key), self.content.get(key, {}))

    def tables(self, key: str) -> list["_Table"]:
        """The array of tables of that key; empty when it is absent."""
        rows = self.content.get(key, [])
        if not isinstance(rows, list):
            self.fail(f"is {rows!r}, expected an array of tables: [[{key}]]", key)
        return [_Table(self.source, self.text, (*self.path, key, i), row) for i, row in enumerate(rows)]


def _sidecar(root: _Table) -> Sidecar:
    root.allow("controller", "twist", "cameras", "semantic", "actuators")
    cameras = root.table("cameras")
    semantic = root.table("semantic")
    semantic.allow("class", "bodies")
    bodies = semantic.table("bodies")
    return Sidecar(
        controller=_controller(root.table("controller")) if "controller" in root.content else None,
        twist=root.read("twist", _boolean) is not False,
        cameras={name: _camera(cameras.table(name)) for name in cameras.content},
        semantic_class=semantic.read("class", _name),
        semantic_bodies={body: bodies.require(body, _name) for body in bodies.content},
        actuators=_actuators(root.tables("actuators")),
    )


def _controller(table: _Table) -> ControllerConfig:
    table.allow("kind", "params")
    return ControllerConfig(kind=table.require("kind", _name), params=table.table("params").content)


def _camera(table: _Table) -> CameraConfig:
    table.allow("mode", "resolution")
    return CameraConfig(
        mode=table.read("mode", _camera_mode) or CameraMode.REAL,
        resolution=table.read("resolution", _resolution),
    )


def _actuators(tables: list[_Table]) -> tuple[ActuatorConfig, ...]:
    actuators: dict[str, ActuatorConfig] = {}
    for table in tables:
        actuator = _actuator(table)
        if actuator.name in actuators:
            table.fail(f"is {actuator.name!r}, which an actuator above has already", "name")
        actuators[actuator.name] = actuator
    return tuple(actuators.values())


def _actuator(table: _Table) -> ActuatorConfig:
    table.allow("name", "joint", "kind", "kp", "kv", "ctrlrange", "forcerange", "gear")
    name = table.require("name", _name)
    kind = table.read("kind", _actuator_kind) or ActuatorType.MOTOR
    for gain in {"kp", "kv"} - GAINS_BY_KIND[kind]:
        if gain in table.content:
            table.fail(f"a {kind} actuator has no {gain}", gain)
    gear = table.read("gear", _number)
    return ActuatorConfig(
        name=name,
        joint=table.read("joint", _name) or name,
        kind=kind,
        kp=table.read("kp", _gain),
        kv=table.read("kv", _gain),
        ctrlrange=table.read("ctrlrange", _range),
        forcerange=table.read("forcerange", _range),
        gear=1.0 if gear is None else gear,
    )


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a non-empty string")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise ValueError("a finite number")
    return float(value)


def _gain(value: Any) -> float:
    if _number(value) < 0:
        raise ValueError("a number that is not negative")
    return float(value)


def _range(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2 or not _number(value[0]) < _number(value[1]):
        raise ValueError("two numbers, [lower, upper], lower < upper")
    return float(value[0]), float(value[1])


def _resolution(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2 or not all(map(_is_pixel_count, value)):
        raise ValueError(f"[width, height], two whole numbers from 1 to {MAX_PIXELS}")
    return value[0], value[1]


def _is_pixel_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_PIXELS


def _camera_mode(value: Any) -> CameraMode:
    return CameraMode(_word(value, [mode.value for mode in CameraMode]))


def _actuator_kind(value: Any) -> ActuatorType:
    return ActuatorType(_word(value, [kind.value for kind in GAINS_BY_KIND]))


def _word(value: Any, words: Collection[str]) -> str:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"one of {', '.join(words)}{_did_you_mean(value, words)}")
    return value


def _did_you_mean(word: Any, words: Collection[str]) -> str:
    close = difflib.get_close_matches(str(word), words, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _dotted(path: _Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _syntax_message(reason: str, text: str, source: str) -> str:
    at = re.search(r" \(at line (\d+), column (\d+)\)", reason)
    if at is None:
        return f"{source}:{text.count(chr(10)) + 1}: not TOML: {reason}"
    return f"{source}:{at[1]}:{at[2]}: not TOML: {reason[: at.start()]}"


def _line_of(path: _Path, text: str) -> int | None:
    """The line that states the longest beginning of ``path``: an inline table's keys are on its own line."""
    best, best_line = 0, None
    for line, stated in _stated_paths(text):
        shared = min(len(stated), len(path))
        if shared > best and stated[:shared] == path[:shared]:
            best, best_line = shared, line
    return best_line


def _stated_paths(text: str) -> Iterator[tuple[int, _Path]]:
    """Every table header and key of a valid document, in order, with its line number."""
    header: _Path = ()
    rows: Counter[_Path] = Counter()
    for number, line in enumerate(text.splitlines(), start=1):
        if (opened := _HEADER.match(line)) and (keys := _keys(opened[0])):
            header = (*keys, rows[keys]) if opened[1] == "[[" else keys
            rows[keys] += 1
            yield number, header
        elif assigned := _ASSIGNMENT.match(line):
            yield number, (*header, *_keys(f"{assigned[1]} = 0"))


_ONE_KEY = r"""(?:"[^"]*"|'[^']*'|[\w-]+)"""
_ASSIGNMENT = re.compile(rf"\s*({_ONE_KEY}(?:\s*\.\s*{_ONE_KEY})*)\s*=")
_HEADER = re.compile(r"\s*(\[\[?).*")


def _keys(line: str) -> tuple[str, ...]:
    """The keys that a line opens when TOML reads it alone: ``[a."b c"]`` gives a, b c; () for what is not TOML."""
    try:
        content: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys: tuple[str, ...] = ()
    while isinstance(content, dict) and content:
        key, content = next(iter(content.items()))
        keys = (*keys, key)
    return keys
