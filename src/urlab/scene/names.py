"""Names: of actors, which prefix everything that their models bring, and of levels and imports, which name files."""

import itertools
import re
from collections.abc import Iterable, Iterator

from urlab.errors import LoadLevelFailed
from urlab.scene.blueprint_record import undoubled
from urlab.scene.level import LEVELS_PACKAGE

_WORLD = "world"
"""MuJoCo's own body: no actor of one body can be called that."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9.-]+")

MAX_NAME_BYTES = 120


def legal_name(wanted: str) -> str:
    """The nearest name that can be a prefix: letters, digits, dots, hyphens and single inner underscores."""
    name = _ILLEGAL.sub("_", wanted).strip("_") or "actor"
    return f"{name}-1" if name == _WORLD else name


class ActorNames:
    """The names that are taken.

    Two names collide when ``a_`` begins ``b_``: clients find a robot's elements by its prefix and an underscore.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._taken: set[str] = set()
        self._heads: set[str] = set()
        self._next: dict[str, int] = {}
        for name in names:
            self.take(name)

    def take(self, name: str) -> None:
        """This one is in use from now on."""
        self._taken.add(name)
        self._heads.update(heads(name))

    def rival(self, name: str) -> str | None:
        """A taken name that collides with this one, or None."""
        shorter = next((head for head in heads(name) if head in self._taken), None)
        if shorter is not None or name not in self._heads:
            return shorter
        return next(other for other in self._taken if name in heads(other))

    def take_unique(self, wanted: str) -> str:
        """Take ``wanted``, or the first of ``wanted-2``, ``wanted-3`` ... that collides with none."""
        base = legal_name(wanted)
        name = next(candidate for candidate in self._candidates(base) if self._is_free(candidate))
        self.take(name)
        return name

    def _is_free(self, name: str) -> bool:
        return name not in self._heads and not any(head in self._taken for head in heads(name))

    def _candidates(self, base: str) -> Iterator[str]:
        """The name, or with hyphens where a shorter taken one begins it; then with numbers."""
        is_begun = any(head in self._taken for head in heads(base)[:-1])
        stem = base.replace("_", "-") if is_begun else base
        yield stem
        for number in itertools.count(self._next.get(base, 2)):
            self._next[base] = number
            yield f"{stem}-{number}"


def heads(name: str) -> list[str]:
    """``a``, ``a_b`` and ``a_b_c`` of ``a_b_c``."""
    parts = name.split("_")
    return ["_".join(parts[: count + 1]) for count in range(len(parts))]


_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))]
)
"""Names that Windows keeps for devices: a project folder can be carried from one machine to another."""


def file_name_problem(name: str) -> str | None:
    """What is wrong with a name for a file, or None."""
    if not name:
        return "it is empty"
    if name.startswith(".") or name.endswith((".", " ")):
        return "it begins with a dot, or ends with a dot or a space"
    if any(mark in name for mark in '/\\:*?"<>|') or not name.isprintable():
        return "it has a character that not every file system takes"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"it has more than {MAX_NAME_BYTES} bytes"
    if name.partition(".")[0].lower() in _RESERVED:
        return "Windows keeps it for a device"
    return None


def level_name(name_or_path: str) -> str:
    """``X`` from X, /Game/Levels/X or /Game/Levels/X.X; LoadLevelFailed when it is not a plain name."""
    name = undoubled(name_or_path.removeprefix(LEVELS_PACKAGE))
    wrong = file_name_problem(name)
    if wrong is not None:
        shown = name_or_path if len(name_or_path) <= MAX_NAME_BYTES else f"{name_or_path[:MAX_NAME_BYTES]}..."
        raise LoadLevelFailed(f"{shown!r} is not the name of a level: {wrong}. Use X or {LEVELS_PACKAGE}X")
    return name
