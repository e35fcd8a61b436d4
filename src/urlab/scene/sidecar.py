"""`<stem>.urlab.toml` beside `<stem>.xml`: what a robot has that its model file cannot say.

A file that cannot be used raises `ImportFailed` as ``file:line: field: what is wrong, what is allowed``.
"""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from urlab.errors import ImportFailed, did_you_mean
from urlab.toml_tables import TomlTable
from urlab_wire.enums import ActuatorType, CameraMode

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
    free_joint: bool | None = None
    """Whether the model's root gets a free joint. None = it stays as the file has it, and a URDF says so."""


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
    _sidecar(TomlTable("config", config, error=ImportFailed))


def _with_config(sidecar: Sidecar, config: Mapping[str, Any]) -> Sidecar:
    said = _sidecar(TomlTable("config", config, error=ImportFailed))
    names = [name for key in config for name in _FIELDS_OF.get(key, (key,))]
    return replace(sidecar, **{name: getattr(said, name) for name in names})


_FIELDS_OF = {"semantic": ("semantic_class", "semantic_bodies")}


def parse_sidecar(text: str, *, source: str) -> Sidecar:
    """Parse a sidecar's text; ``source`` is what messages call it."""
    return _sidecar(TomlTable.parse(text, source=source, error=ImportFailed))


def _sidecar(root: TomlTable) -> Sidecar:
    root.allow("controller", "twist", "cameras", "semantic", "actuators", "free_joint")
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
        free_joint=root.read("free_joint", _boolean),
    )


def _controller(table: TomlTable) -> ControllerConfig:
    table.allow("kind", "params")
    return ControllerConfig(kind=table.require("kind", _name), params=table.table("params").content)


def _camera(table: TomlTable) -> CameraConfig:
    table.allow("mode", "resolution")
    return CameraConfig(
        mode=table.read("mode", lambda value: CameraMode(_word(value, list(CameraMode)))) or CameraMode.REAL,
        resolution=table.read("resolution", _resolution),
    )


def _actuators(tables: list[TomlTable]) -> tuple[ActuatorConfig, ...]:
    actuators: dict[str, ActuatorConfig] = {}
    for table in tables:
        actuator = _actuator(table)
        if actuator.name in actuators:
            table.fail(f"is {actuator.name!r}, which an actuator above has already", "name")
        actuators[actuator.name] = actuator
    return tuple(actuators.values())


def _actuator(table: TomlTable) -> ActuatorConfig:
    table.allow("name", "joint", "kind", "kp", "kv", "ctrlrange", "forcerange", "gear")
    name = table.require("name", _name)
    kind = table.read("kind", lambda value: ActuatorType(_word(value, list(GAINS_BY_KIND)))) or ActuatorType.MOTOR
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
    if (
        not isinstance(value, list)
        or len(value) != 2
        or not all(type(one) is int and 1 <= one <= MAX_PIXELS for one in value)
    ):
        raise ValueError(f"[width, height], two whole numbers from 1 to {MAX_PIXELS}")
    return value[0], value[1]


def _word(value: Any, words: Collection[str]) -> str:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"one of {', '.join(words)}{did_you_mean(value, words)}")
    return value
