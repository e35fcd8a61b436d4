"""What an export can be. A format registers by being declared: ``class Mine(ExportFormat, name="mine")``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from urlab.errors import BadValue, known
from urlab.export.episodes import ExportSource, RecordedEpisode, check_alike
from urlab.files import check_replaceable
from urlab.paths import FileKind

Advance = Callable[[], None]
"""Called after every sample that was written; it raises when the export is to end."""

_FORMATS: dict[str, type["ExportFormat"]] = {}


class CameraUse(Enum):
    """What a format does with cameras."""

    ONE = "a film of one"
    SOME = "those that are asked for"
    ALL = "all, unless some are asked for"
    NONE = "none"


class ExportFormat(ABC):
    """One format of files. It is made for one export; pictures are at ``rate_hz`` of simulated time."""

    name: ClassVar[str]
    cameras: ClassVar[CameraUse] = CameraUse.SOME
    every_frame: ClassVar[bool] = False
    """Whether it has every frame of a recording, unless a rate is asked for."""

    splits: ClassVar[bool] = False
    """Whether it holds several episodes; else there is one, which goes on through resets."""

    kind: ClassVar[FileKind]
    """What it writes, and how one of ours is known: no other file is replaced."""

    def __init_subclass__(cls, *, name: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if name in _FORMATS:
            raise TypeError(f"export format {name!r} is already {_FORMATS[name].__qualname__}")
        cls.name = name
        _FORMATS[name] = cls

    def __init__(self, rate_hz: float) -> None:
        self.rate_hz = rate_hz

    @classmethod
    @abstractmethod
    def check(cls) -> None:
        """BadValue, with the line that installs it, when a package is missing."""

    @classmethod
    def check_target(cls, path: Path) -> None:
        """PathNotWritable when something is there that stays."""
        check_replaceable(path, cls.kind)

    @classmethod
    def check_episodes(cls, episodes: Sequence[RecordedEpisode]) -> None:
        """BadValue when one of these cannot be written, or not with the others."""
        check_alike(episodes)

    @abstractmethod
    def write(self, source: ExportSource, path: Path, advance: Advance) -> None:
        """Write the episodes to ``path``, which appears whole or not at all; PathNotWritable says why not.

        It calls ``advance`` after each frame.
        """


def export_format(word: str) -> type[ExportFormat]:
    """The format of that name; BadValue lists those that exist."""
    if word not in _FORMATS:
        raise BadValue(f"there is no export format {word!r}; there are: {known(_FORMATS)}")
    return _FORMATS[word]


def tokens(names: Iterable[str], keep: str) -> dict[str, str]:
    """Names as parts of other names, of letters, digits and the characters of ``keep``; no two become the same."""
    found: dict[str, str] = {}
    for name in names:
        token = "".join(one if (one.isalnum() and one.isascii()) or one in keep else "_" for one in name)
        numbered = (token, *(f"{token}_{number}" for number in range(2, len(found) + 2)))
        found[name] = next(one for one in numbered if one not in found.values())
    return found


def missing_package(word: str, package: str, extra: str) -> BadValue:
    """The error of a format whose package is not there, with the line that installs it."""
    return BadValue(f"format {word} needs {package}, which is not installed: pip install 'urlab-headless[{extra}]'")


def require(word: str, *packages: str) -> None:
    """BadValue, with the line that installs it, when one of these packages of the extra ``record`` is missing."""
    for one in packages:
        if find_spec(one) is None:
            raise missing_package(word, one, "record")
