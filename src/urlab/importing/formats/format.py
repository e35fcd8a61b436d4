"""What a file format that can be imported declares."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from urlab.importing.bundle import Bundle, Original
from urlab.importing.sources import SourceFiles


class ImportFormat(ABC):
    """A family of files that can be imported. Declaring a subclass registers it; no two share a suffix."""

    suffixes: ClassVar[tuple[str, ...]]
    """In lower case, with the dot."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for suffix in cls.suffixes:
            if suffix in _formats:
                raise TypeError(f"{cls.__name__} reads {suffix}, but {type(_formats[suffix]).__name__} does already")
        _formats.update(dict.fromkeys(cls.suffixes, cls()))

    @abstractmethod
    def read(self, source: Path, sources: SourceFiles) -> tuple[Bundle, Original | None]:
        """What the file becomes, and the model that the import must equal, if MuJoCo can read the file itself.

        Every file is read through ``sources``. ImportFailed says what cannot be used. Any thread may call this.
        """


_formats: dict[str, ImportFormat] = {}


def format_of(suffix: str) -> ImportFormat | None:
    """The format of files that end so, in lower case."""
    return _formats.get(suffix)


def suffixes() -> list[str]:
    """Those of all formats, sorted."""
    return sorted(_formats)
