"""The file of a policy: which network, on which robot, what it sees, what its numbers move, and how often.

    network = "walk.onnx"        # beside this file
    robot = "quadruped"          # may be left out where there is one robot
    timestep = 0.002             # of the physics that it was trained with, seconds
    n_steps = 10                 # physics steps per action

    [action]
    joints = [".*_hip", ".*_thigh", ".*_calf"]
    scale = 0.5
    offset = "home"

    [[observations]]
    term = "projected_gravity"

Joints are named by patterns that must match whole names; each joint goes with the first pattern that fits it. A number
per joint is one number for all, or a table by pattern.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from urlab.errors import UrlabError, known
from urlab.policies.observation_terms import TERMS
from urlab.toml_tables import TomlTable

PerJoint = float | dict[str, float]
"""One number for every joint, or a table by pattern."""

Positive = Annotated[float, Meta(gt=0.0)]
Count = Annotated[int, Meta(ge=1)]

SHIPPED = Path(__file__).resolve().parent / "shipped"

_MAX_BYTES = 1 << 20


class PolicyFileError(UrlabError):
    """A policy file that cannot be read, or a policy that does not fit its robot."""


class ActionSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Setpoint of each joint's actuator = offset + scale * number of the network.

    ``offset`` is a number per joint, or the name of a keyframe of the robot, whose joints are meant. ``clip`` bounds
    the network's numbers before that.
    """

    joints: tuple[str, ...] = (".*",)
    scale: PerJoint = 1.0
    offset: float | dict[str, float] | str = 0.0
    clip: Positive | None = None


class GainsSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Gains for the robot's PD controller, by joint."""

    kp: PerJoint
    kv: PerJoint
    torque_limit: PerJoint | None = None


class TermSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One part of the observation: its term, times ``scale``, within ``clip``, the last ``history`` ones in order.

    ``sensor``, ``entity`` and ``period`` are for the terms that need them.
    """

    term: str
    scale: float = 1.0
    clip: Positive | None = None
    history: Count = 1
    sensor: str | None = None
    entity: str | None = None
    period: Positive | None = None


class PolicyContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of the file."""

    network: str
    n_steps: Count
    action: ActionSpec
    observations: list[TermSpec]
    robot: str | None = None
    scene: str | list[str] | None = None
    timestep: Positive | None = None
    keyframe: str | None = None
    gains: GainsSpec | None = None


class PolicyFile(msgspec.Struct, frozen=True):
    """A file that was read and found good: its content, and where its network is."""

    path: Path
    network: Path
    content: PolicyContent


def find_policy_file(name: str) -> Path:
    """A policy file by its path, or by the name of one that we ship."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path
    shipped = SHIPPED / f"{name}.toml"
    if not shipped.is_file():
        names = sorted(one.stem for one in SHIPPED.glob("*.toml"))
        raise PolicyFileError(f"there is no file {name} and no policy of that name; we ship {known(names)}")
    return shipped


def read_policy_file(path: Path, *, with_network: bool = True) -> PolicyFile:
    """Read a policy file; PolicyFileError says file, line, field and what is allowed.

    Its network must be there, unless it is to be trained first.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as failed:
        raise PolicyFileError(f"{path}: cannot be read: {failed}") from failed
    table = TomlTable.parse(text, source=str(path), error=PolicyFileError)
    content = table.convert(PolicyContent)
    _check(table, content)
    network = path.parent / content.network
    if with_network and not network.is_file():
        table.fail(f"there is no file {network}", "network")
    return PolicyFile(path, network, content)


def _check(table: TomlTable, content: PolicyContent) -> None:
    if not content.observations:
        table.fail("is missing: a policy sees something: [[observations]]", "observations")
    for index, one in enumerate(content.observations):
        place = ("observations", index)
        kind = TERMS.get(one.term)
        if kind is None:
            table.fail(f"is {one.term!r}, expected one of {', '.join(sorted(TERMS))}", *place, "term")
        for name in ("sensor", "entity", "period"):
            given = getattr(one, name) is not None
            if name in kind.needs and not given:
                table.fail(f"is missing: the term {one.term!r} needs it", *place, name)
            if given and name not in kind.needs:
                table.fail(f"has no effect: the term {one.term!r} does not use it", *place, name)
    for pattern in content.action.joints:
        _compiled(table, pattern)


def _compiled(table: TomlTable, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as broken:
        return table.fail(f"{pattern!r} is no regular expression: {broken}", "action", "joints")


def matching(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names that a pattern matches whole: in the order of the patterns, and of the names within one.

    PolicyFileError for a pattern that matches none.
    """
    found: list[str] = []
    for pattern in patterns:
        fits = [name for name in names if re.fullmatch(pattern, name)]
        if not fits:
            raise PolicyFileError(f"no joint matches {pattern!r}; there are {known(names)}")
        found += [name for name in fits if name not in found]
    return found


def per_joint(field: str, value: PerJoint | Mapping[str, float], names: Sequence[str]) -> list[float]:
    """A number for each joint; PolicyFileError if a pattern matches none, or a joint has none."""
    if not isinstance(value, Mapping):
        return [float(value)] * len(names)
    matching(list(value), names)
    numbers: list[float] = []
    for name in names:
        fits: Any = next((number for pattern, number in value.items() if re.fullmatch(pattern, name)), None)
        if fits is None:
            raise PolicyFileError(f"{field}: no pattern matches the joint {name!r}; add one, or one number for all")
        numbers.append(float(fits))
    return numbers
