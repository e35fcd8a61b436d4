"""Distributions over parameters of a scene, as data, and what is drawn from them with a seed. No MuJoCo here.

A table of entries by name, in a level file, a task or a request::

    [randomize.cube_mass]
    kind = "body"                # what is drawn for: docs/randomisation.md lists kinds and fields
    name = "cube"                # compiled or short; "finger_*" is every one that fits, each with a draw of its own
    field = "mass"
    distribution = "uniform"     # or log_uniform, normal, choice, rotation
    low = 0.8
    high = 1.2
    apply = "scale"              # the number is a factor on what was compiled; "add" is added to it; else it is set

What is drawn for an element depends on the seed, the entry's name and the element's name alone: not on other entries,
their order, or how many simulations there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from math import cos, isfinite, pi, radians, sin
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.errors import BadValue, known
from urlab_wire.ops.stepping import ModelChange

Values = NDArray[np.float64]
Numbers = float | list[float]
NAMED_FIELDS = {("material", "texture")}
"""Kinds and fields whose value is the name of another element: of a texture."""

_WILD = "*?["
_MAX_PUSHES = 1000


class SeededNumbers:
    """Random numbers that depend on a seed and some words alone, the same with every version of NumPy.

    They are made here of the raw output of PCG64, which NumPy promises never to change.
    """

    def __init__(self, seed: int, *words: str) -> None:
        self._source = np.random.PCG64(_digest(seed, words))

    def random(self, count: int) -> Values:
        """Evenly from [0, 1), multiples of 2**-53."""
        return (self._source.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def standard_normal(self, count: int) -> Values:
        """Around 0 with a standard deviation of 1 (Box and Muller)."""
        radius = np.sqrt(-2 * np.log1p(-self.random(count)))
        return np.asarray(radius * np.cos(2 * pi * self.random(count)))


class ParameterSource(Protocol):
    """What a scene has to draw for. Every method raises BadValue for a kind, name or field that is not there."""

    def names(self, kind: str, field: str) -> Sequence[str]:
        """The compiled names of the elements of a kind."""

    def find(self, kind: str, name: str, field: str) -> str:
        """The compiled name that a name means; of the kind ``texture`` too, which values of fields can name."""

    def width(self, kind: str, name: str, field: str) -> tuple[int, int]:
        """The fewest and the most numbers that the field takes."""

    def value(self, kind: str, name: str, field: str) -> list[float]:
        """The numbers that it has without randomisation."""

    def limits(self, kind: str, name: str, field: str) -> tuple[float, float]:
        """Between what its numbers are kept when a draw goes beyond."""


class Entry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="distribution", omit_defaults=True):
    """What all entries say. ``shared`` gives all elements that fit ``name`` the same draw.

    A push has ``count`` forces (N, in the world), each for ``duration_s``, at times within ``within_s`` (low, high).
    """

    kind: str
    field: str
    name: str | list[str] = ""
    apply: Literal["set", "scale", "add"] = "set"
    shared: bool = False
    count: int | None = None
    within_s: tuple[float, float] | None = None
    duration_s: float | None = None

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        pushes = (self.count, self.within_s, self.duration_s)
        if self.kind != "push":
            return "count, within_s and duration_s are for pushes" if any(one is not None for one in pushes) else ""
        if self.count is None or self.within_s is None or self.duration_s is None:
            return "a push needs count, within_s and duration_s"
        if not 1 <= self.count <= _MAX_PUSHES or self.duration_s <= 0 or not 0 <= self.within_s[0] <= self.within_s[1]:
            return (
                f"a push has a count of 1 to {_MAX_PUSHES}, a duration_s above 0, and within_s = [low, high] from 0 on"
            )
        return ""

    def sizes(self) -> set[int]:
        """How many numbers its parameters name at once; empty when they are single numbers."""
        return set()

    def draw(self, rng: SeededNumbers, width: int) -> Values:
        """That many numbers."""
        raise NotImplementedError


class Uniform(Entry, tag="uniform"):
    """From ``low`` to ``high``, evenly."""

    low: Numbers
    high: Numbers

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        return Entry.problem(self) or _low_high(self.low, self.high)

    def sizes(self) -> set[int]:
        """How many numbers its parameters name at once."""
        return _sizes(self.low, self.high)

    def draw(self, rng: SeededNumbers, width: int) -> Values:
        """That many numbers."""
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        return np.asarray(low + (high - low) * rng.random(width))


class LogUniform(Entry, tag="log_uniform"):
    """From ``low`` to ``high``, both above zero: every factor is as likely as every other."""

    low: Numbers
    high: Numbers

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        if np.min(self.low) <= 0:
            return "low of log_uniform must be above zero"
        return Entry.problem(self) or _low_high(self.low, self.high)

    def sizes(self) -> set[int]:
        """How many numbers its parameters name at once."""
        return _sizes(self.low, self.high)

    def draw(self, rng: SeededNumbers, width: int) -> Values:
        """That many numbers."""
        low, high = np.log(np.asarray(self.low, float)), np.log(np.asarray(self.high, float))
        return np.asarray(np.exp(low + (high - low) * rng.random(width)))


class Normal(Entry, tag="normal"):
    """Around ``mean`` with the standard deviation ``std``; kept within ``low`` and ``high`` where they are given."""

    mean: Numbers
    std: Numbers
    low: float | None = None
    high: float | None = None

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        if np.min(self.std) < 0:
            return "std must not be negative"
        between = self.low is not None and self.high is not None
        return Entry.problem(self) or (_low_high(self.low or 0.0, self.high or 0.0) if between else "")

    def sizes(self) -> set[int]:
        """How many numbers its parameters name at once."""
        return _sizes(self.mean, self.std)

    def draw(self, rng: SeededNumbers, width: int) -> Values:
        """That many numbers."""
        drawn = np.asarray(self.mean, float) + np.asarray(self.std, float) * rng.standard_normal(width)
        low, high = -np.inf if self.low is None else self.low, np.inf if self.high is None else self.high
        return np.clip(drawn, low, high)


class Choice(Entry, tag="choice"):
    """One of ``values``, each a number, a list of them, or for some fields a name; by ``weights`` if they are given."""

    values: list[Numbers | str]
    weights: list[float] | None = None

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        if not self.values:
            return "choice needs values"
        if any(isinstance(one, str) for one in self.values) and (self.kind, self.field) not in NAMED_FIELDS:
            return f"the values of {self.field} are numbers, not names"
        weights = self.weights
        if weights is not None and (len(weights) != len(self.values) or min(weights) < 0 or sum(weights) <= 0):
            return f"weights are {len(self.values)} numbers, one for each of the values, not negative and not all zero"
        return Entry.problem(self)

    def sizes(self) -> set[int]:
        """How many numbers its parameters name at once."""
        return _sizes(*self.values)

    def pick(self, rng: SeededNumbers) -> Numbers | str:
        """One of the values."""
        weights = np.asarray(self.weights if self.weights is not None else [1.0] * len(self.values), float)
        index = int(np.searchsorted(np.cumsum(weights), rng.random(1)[0] * weights.sum(), side="right"))
        return self.values[index]

    def draw(self, rng: SeededNumbers, width: int) -> Values:
        """That many numbers."""
        return np.array(np.broadcast_to(np.asarray(self.pick(rng), float), (width,)))


class Rotation(Entry, tag="rotation"):
    """A rotation about any axis by at most ``max_angle_deg``, for fields that are quaternions (w, x, y, z)."""

    max_angle_deg: float = 180.0

    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        if not 0 <= self.max_angle_deg <= 180:
            return "max_angle_deg is from 0 to 180"
        if self.field != "quat":
            return f"rotation is for fields named quat, not {self.field!r}"
        return Entry.problem(self)

    def sizes(self) -> set[int]:
        """Four: it is a quaternion."""
        return {4}

    def draw(self, rng: SeededNumbers, width: int) -> Values:  # noqa: ARG002 - always four
        """A unit quaternion; with the largest angle of 180 degrees all are equally likely."""
        if self.max_angle_deg == 180:
            u, v, w = rng.random(3)
            a, b = np.sqrt(1 - u), np.sqrt(u)
            return np.array([b * cos(2 * pi * w), a * sin(2 * pi * v), a * cos(2 * pi * v), b * sin(2 * pi * w)])
        along, around, angle = rng.random(3).tolist()
        z, turn, half = 2 * along - 1, 2 * pi * around, radians(self.max_angle_deg) * angle / 2
        flat = np.sqrt(max(0.0, 1 - z * z))
        return np.array([cos(half), *(sin(half) * np.array([flat * cos(turn), flat * sin(turn), z]))])


_DISTRIBUTIONS: Mapping[str, type[Entry]] = {
    "uniform": Uniform, "log_uniform": LogUniform, "normal": Normal, "choice": Choice, "rotation": Rotation,
}  # fmt: skip

Randomisation = Mapping[str, Entry]
"""Entries by name."""


def parse_randomisation(table: Mapping[str, Any]) -> Randomisation:
    """The entries of a table; BadValue names the entry that is wrong, and what is wrong with it."""
    return {str(key): _entry(str(key), content) for key, content in table.items()}


def _entry(key: str, content: Any) -> Entry:
    where = f"randomize entry {key!r}"
    if not isinstance(content, Mapping):
        raise BadValue(f"{where} is a table with kind, name, field and distribution, not {content!r}")
    word = content.get("distribution")
    kind = _DISTRIBUTIONS.get(word) if isinstance(word, str) else None
    if kind is None:
        raise BadValue(f"{where}: distribution is one of {known(_DISTRIBUTIONS)}, not {word!r}")
    try:
        entry = msgspec.convert(dict(content), kind)
    except msgspec.ValidationError as wrong:
        fields = known(one.name for one in msgspec.structs.fields(kind))
        raise BadValue(f"{where}: {wrong}; a {word} entry has: distribution, {fields}") from None
    problem = _not_finite(entry) or entry.problem() or _not_names(entry)
    if not problem and len(entry.sizes()) > 1:
        problem = f"its parameters are lists of different lengths: {sorted(entry.sizes())}"
    if problem:
        raise BadValue(f"{where}: {problem}")
    return entry


def draw(entries: Randomisation, seed: int, source: ParameterSource) -> list[ModelChange]:
    """What a seed gives, in the order of the entries; of patterns, in the order of the elements."""
    changes: list[ModelChange] = []
    for key, entry, names in _resolved(entries, source):
        for name in names:
            rng = SeededNumbers(seed, key, "" if entry.shared else name)
            value = _value(entry, rng, source, name)
            changes.append(ModelChange(kind=entry.kind, name=name, field=entry.field, value=value))
    return changes


def check(entries: Randomisation, source: ParameterSource) -> None:
    """BadValue when an entry names what the scene does not have, or takes other numbers, or two are for the same."""
    taken: dict[tuple[str, str, str], str] = {}
    for key, entry, names in _resolved(entries, source):
        for name in names:
            place = (entry.kind, name, entry.field)
            if place in taken and entry.kind != "push":
                both = f"entries {taken[place]!r} and {key!r} both"
                raise BadValue(f"randomize: {both} draw {entry.field} of {entry.kind} {name!r}")
            taken[place] = key


def generator(seed: int, *words: str) -> np.random.Generator:
    """Many random numbers, quickly, for noise: they depend on the seed and these words, and on NumPy's version."""
    return np.random.Generator(np.random.PCG64(_digest(seed, words)))


def _digest(seed: int, words: Sequence[str]) -> int:
    text = "\x00".join((str(seed), *words))
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "little")


def _resolved(entries: Randomisation, source: ParameterSource) -> Iterable[tuple[str, Entry, Sequence[str]]]:
    for key, entry in entries.items():
        try:
            names = _names(entry, source)
            for word in _words(entry):
                source.find(entry.field, word, entry.field)
            for name in names:
                _check_width(entry, source.width(entry.kind, name, entry.field))
        except BadValue as wrong:
            raise BadValue(f"randomize entry {key!r}: {wrong.message}") from wrong
        yield key, entry, names


def _names(entry: Entry, source: ParameterSource) -> list[str]:
    asked = [entry.name] if isinstance(entry.name, str) else entry.name
    found: dict[str, None] = {}
    for word in asked:
        if not any(sign in word for sign in _WILD):
            found[source.find(entry.kind, word, entry.field)] = None
            continue
        there = source.names(entry.kind, entry.field)
        fitting = [name for name in there if fnmatchcase(name, word) and _can_change(entry, source, name)]
        if not fitting:
            raise BadValue(f"no {entry.kind} whose {entry.field} can change fits {word!r}; there are: {known(there)}")
        found.update(dict.fromkeys(fitting))
    return list(found)


def _can_change(entry: Entry, source: ParameterSource, name: str) -> bool:
    try:
        source.width(entry.kind, name, entry.field)
    except BadValue:
        return False
    return True


def _check_width(entry: Entry, width: tuple[int, int]) -> None:
    fewest, most = (3, 3) if entry.kind == "push" else width
    for size in entry.sizes():
        if not fewest <= size <= most:
            takes = f"{fewest}" if fewest == most else f"{fewest} to {most}"
            raise BadValue(f"{entry.field} takes {takes} numbers, and the distribution gives {size}")


def _value(entry: Entry, rng: SeededNumbers, source: ParameterSource, name: str) -> Any:
    if (entry.kind, entry.field) in NAMED_FIELDS and isinstance(entry, Choice):
        return source.find(entry.field, str(entry.pick(rng)), entry.field)
    return _pushes(entry, rng) if entry.kind == "push" else _drawn(entry, rng, source, name)


def _words(entry: Entry) -> list[str]:
    """The names among its values."""
    return [one for one in entry.values if isinstance(one, str)] if isinstance(entry, Choice) else []


def _not_names(entry: Entry) -> str:
    """What is wrong with an entry whose values must be names, or nothing."""
    if (entry.kind, entry.field) not in NAMED_FIELDS:
        return ""
    if isinstance(entry, Choice) and len(_words(entry)) == len(entry.values) and entry.apply == "set":
        return ""
    return f"{entry.field} is the name of one: a choice among names, which is set"


def _drawn(entry: Entry, rng: SeededNumbers, source: ParameterSource, name: str) -> list[float]:
    fewest, most = source.width(entry.kind, name, entry.field)
    size = next(iter(entry.sizes()), None)
    if entry.apply == "set":
        value = entry.draw(rng, size or fewest)
    else:
        compiled = np.asarray(source.value(entry.kind, name, entry.field), float)
        value = _combined(entry, rng, compiled, size, most)
    low, high = source.limits(entry.kind, name, entry.field)
    return [float(one) for one in np.clip(value, low, high)]


def _combined(entry: Entry, rng: SeededNumbers, compiled: Values, size: int | None, most: int) -> Values:
    if entry.apply == "scale":
        factor = entry.draw(rng, size or 1)
        return compiled * factor if size is None else compiled[:size] * factor
    drawn = entry.draw(rng, size or most)
    if entry.field == "quat":
        return _composed(drawn, compiled)
    return compiled[: len(drawn)] + drawn


def _composed(turn_wxyz: Values, quat_wxyz: Values) -> Values:
    """The orientation, turned further in the frame of its parent."""
    a, b, c, d = turn_wxyz.tolist()
    w, x, y, z = quat_wxyz.tolist()
    return np.array([
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    ])  # fmt: skip


def _pushes(entry: Entry, rng: SeededNumbers) -> list[list[float]]:
    """Rows of begin and end (s), and the force (N), by when they begin."""
    low, high = entry.within_s or (0.0, 0.0)
    begins = sorted((low + (high - low) * rng.random(entry.count or 0)).tolist())
    return [[begin, begin + (entry.duration_s or 0.0), *entry.draw(rng, 3).tolist()] for begin in begins]


def _sizes(*parameters: Numbers | str) -> set[int]:
    return {len(one) for one in parameters if isinstance(one, list)}


def _low_high(low: Numbers, high: Numbers) -> str:
    if len(_sizes(low, high)) > 1:
        return "low and high have different lengths"
    return "" if (np.asarray(low) <= np.asarray(high)).all() else f"low {low} is above high {high}"


def _not_finite(entry: Entry) -> str:
    for name in entry.__struct_fields__:
        value = getattr(entry, name)
        if isinstance(value, float | list | tuple) and not all(map(isfinite, _flat(value))):
            return f"{name} must be finite, but is {value!r}"
    return ""


def _flat(value: Any) -> Iterable[float]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _flat(one)
    elif isinstance(value, int | float):
        yield value
