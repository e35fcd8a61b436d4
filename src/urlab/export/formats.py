"""What an export can be. A format registers by being declared: ``class Mine(ExportFormat, name="mine")``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from urlab.errors import BadValue, known
from urlab.export.clip import Clip, RecordedState
from urlab.paths import FileKind
from urlab_wire.pixels import Bytes

Advance = Callable[[], None]
"""Called after every sample that was written; it raises when the export is to end."""

_FORMATS: dict[str, type["ExportFormat"]] = {}


class StatePictures(Protocol):
    """Pictures of states, all through one camera. For one thread."""

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""

    def draw(self, state: RecordedState) -> Bytes:
        """The picture of a state, RGB (height, width, 3), the first row at the top."""

    def close(self) -> None:
        """Give back what drawing needed. May be called twice."""


class ExportFormat(ABC):
    """One format of files. It is made for one export, of samples at ``rate_hz`` of simulated time."""

    name: ClassVar[str]
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

    @abstractmethod
    def write(self, clip: Clip, frames: Sequence[int], pictures: StatePictures, path: Path, advance: Advance) -> None:
        """Write these frames of a clip to ``path``, which appears whole or not at all; PathNotWritable says why not.

        It calls ``advance`` after each.
        """


def export_format(word: str) -> type[ExportFormat]:
    """The format of that name; BadValue lists those that exist."""
    if word not in _FORMATS:
        raise BadValue(f"there is no export format {word!r}; there are: {known(_FORMATS)}")
    return _FORMATS[word]
