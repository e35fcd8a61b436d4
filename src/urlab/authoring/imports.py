"""Imports of the project: made and found."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from urlab.config import FileRoots
from urlab.errors import ImportFailed, ShuttingDown
from urlab.geometry import Vec3
from urlab.importing import StopSwitch, add_import, import_file
from urlab.importing.heightfields import heightfield_bundle, heights_from_image
from urlab.scene.blueprint_record import BlueprintRecord, word_of
from urlab.scene.project import Project


class Importer:
    """Brings models into a project. Any thread may call it."""

    def __init__(self, project: Project, roots: FileRoots) -> None:
        self._project = project
        self._roots = roots
        self._under_way: set[StopSwitch] = set()
        self._closed = False

    def import_file(self, path: str, *, force: bool = False) -> tuple[BlueprintRecord, bool]:
        """Import a model, mesh or heightfield file; whether that was necessary. ImportFailed says why not."""
        if not Path(path).is_absolute():
            raise ImportFailed(
                f"{path!r} is not an absolute path; the Python client makes one of a path with a folder in it, "
                f"such as './{path}'"
            )
        with self._stoppable(path):
            return import_file(Path(path), self._project, self._roots, force=force)

    def import_heights(self, name: str, heights: Sequence[Sequence[float]], size_m: Vec3) -> BlueprintRecord:
        """Import ground from rows of numbers; the first row is at -y."""
        try:
            field = np.array(heights, dtype=np.float64)
        except ValueError as ragged:
            raise ImportFailed(f"heights must be rows of one length: {ragged}") from ragged
        digest = hashlib.sha256(field.tobytes() + repr((field.shape, size_m)).encode()).hexdigest()
        return self._import_field(name, field, size_m, f"heights {name} {digest}")

    def import_image(self, name: str, image: str, size_m: Vec3) -> BlueprintRecord:
        """Import ground from a grey picture; its upper edge is at +y."""
        if not Path(image).is_absolute():
            raise ImportFailed(f"{image!r} is not an absolute path")
        source = f"{image} as {name}, {' x '.join(map(str, size_m))} m"
        return self._import_field(name, heights_from_image(Path(image), self._roots), size_m, source)

    def _import_field(self, name: str, field: NDArray[np.float64], size_m: Vec3, source: str) -> BlueprintRecord:
        with self._stoppable(name):
            return add_import(heightfield_bundle(name, field, size_m), source, self._project)[0]

    def resolve(self, blueprint: str) -> BlueprintRecord:
        """What a request calls a blueprint: a class path, a name, or a file, which is imported."""
        if Path(blueprint).is_absolute() and word_of(blueprint) == blueprint and not blueprint.startswith("/Game/"):
            return self.import_file(blueprint)[0]
        return self._project.record(blueprint)

    def close(self) -> None:
        """End the imports that are under way; they fail, and so do later ones."""
        self._closed = True
        for switch in list(self._under_way):
            switch.stop()

    @contextmanager
    def _stoppable(self, what: str) -> Iterator[None]:
        switch = StopSwitch()
        self._under_way.add(switch)
        try:
            if self._closed:
                raise ShuttingDown(f"{what} is not imported any more: the server is stopping")
            with switch:
                yield
        finally:
            self._under_way.discard(switch)
