"""Pictures that wait to be written."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from urlab.cli.watch.pixels import Rgb


class SizeChangedError(Exception):
    """A picture has another size than the one before."""


class Spool:
    """The frames of a clip, in a file without a name that goes when this ends: a clip may be longer than memory.

    A frame that repeats the one before takes no room.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: list[int] = []
        self._shape: tuple[int, ...] | None = None
        self.pictures = 0

    def __enter__(self) -> Self:
        self._file = tempfile.TemporaryFile(dir=self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Rgb]:
        """All frames in their order."""
        shape = self._shape or (0, 0, 3)
        size = shape[0] * shape[1] * shape[2]
        for place in self._places:
            self._file.seek(place * size)
            yield np.frombuffer(self._file.read(size), np.uint8).reshape(shape)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        height, width, _ = self._shape or (0, 0, 3)
        return width, height

    def add(self, picture: Rgb) -> None:
        """The next frame."""
        if self._shape not in (None, picture.shape):
            raise SizeChangedError
        self._shape = picture.shape
        self._file.seek(0, 2)
        self._file.write(picture.tobytes())
        self._places.append(self.pictures)
        self.pictures += 1

    def repeat(self) -> None:
        """The same frame once more."""
        self._places.append(self._places[-1])
