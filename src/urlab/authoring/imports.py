"""Imports of the project: made and found."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from urlab.errors import ImportFailed, ShuttingDown
from urlab.geometry import Vec3
from urlab.importing import StopSwitch, Upload, add_import, import_file, store_upload
from urlab.importing.heightfields import heightfield_bundle, image_bundle
from urlab.importing.sources import SourceFiles
from urlab.paths import FileRoots, shortened
from urlab.scene.blueprint_record import BlueprintRecord, asked_path
from urlab.scene.level import Level
from urlab.scene.project import Project


class Importer:
    """Brings models into a project. Any thread may call it."""

    def __init__(self, project: Project, roots: FileRoots) -> None:
        self._project = project
        self._roots = roots
        self._under_way: set[StopSwitch] = set()
        self._closed = False
        self._trusted: frozenset[str] | None = None
        self._kept: dict[str, BlueprintRecord | ImportFailed] = {}

    def import_file(self, path: str, *, force: bool = False) -> tuple[BlueprintRecord, bool]:
        """Import a model, mesh or heightfield file; whether that was necessary. ImportFailed says why not."""
        file = _file(path)
        with self._stoppable(path):
            return import_file(file, self._project, self._roots, force=force)

    def import_heights(self, name: str, heights: Sequence[Sequence[float]], size_m: Vec3) -> BlueprintRecord:
        """Import ground from rows of numbers; the first row is at -y."""
        try:
            field = np.array(heights, dtype=np.float64)
        except ValueError as ragged:
            raise ImportFailed(f"heights must be rows of one length: {ragged}") from ragged
        digest = hashlib.sha256(field.tobytes() + repr((field.shape, size_m)).encode()).hexdigest()
        with self._stoppable(name):
            bundle = heightfield_bundle(name, field, size_m)
            return add_import(bundle, f"heights {name} {digest}", self._project)[0]

    def import_image(self, name: str, image: str, size_m: Vec3) -> BlueprintRecord:
        """Import ground from a grey picture; its upper edge is at +y."""
        file, source = _file(image), f"{image} as {name}, {' x '.join(map(str, size_m))} m"
        with self._stoppable(name):
            bundle = image_bundle(name, file, size_m, SourceFiles(self._roots))
            return add_import(bundle, source, self._project)[0]

    def upload(self, name: str, data: bytes, owner: str = "") -> Upload:
        """Keep a file that a client sent, or what is in its zip file, to be imported; UploadFailed says why not."""
        with self._stoppable(name):
            return store_upload(self._project, name, data, owner)

    def resolve(self, blueprint: str) -> BlueprintRecord:
        """What a request calls a blueprint: a class path, a name, or a file, which is imported."""
        if asked_path(blueprint).file is not None:
            return self.import_file(blueprint)[0]
        return self._project.record_named(blueprint)

    # -- files that levels name -----------------------------------------------------------------------------------

    def trust_only(self, level: Level) -> None:
        """From now on, of the files that levels name, use only those of this level where they stand.

        It is the level that the server's user named. Every other may be opened by a client: what it names becomes an
        import first, so it is judged by the roots and compiled in the limited child process.
        """
        self._trusted = frozenset(actor.blueprint for actor in level.actors)

    def find(self, word: str) -> BlueprintRecord:
        """What a level's word for a blueprint stands for; ImportFailed when nothing, or nothing that may be used."""
        record = self._project.record(word) if self._is_trusted(word) else None
        if record is not None:
            return record
        kept = self._kept.get(word)
        if kept is None:
            kept = self._kept[word] = self._brought_in(word)
        if isinstance(kept, ImportFailed):
            raise ImportFailed(kept.message) from kept
        return kept

    def forget_files(self) -> None:
        """Look again at the files that levels name: they may have changed."""
        self._kept = {}

    def _is_trusted(self, word: str) -> bool:
        if self._trusted is None or word in self._trusted or self._roots.own_rights:
            return True
        return asked_path(word).file is None

    def _brought_in(self, word: str) -> BlueprintRecord | ImportFailed:
        try:
            return self.import_file(word)[0]
        except ImportFailed as failed:
            return failed

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


def _file(path: str) -> Path:
    file = asked_path(path).file
    if file is None:
        raise ImportFailed(
            f"{shortened(path)!r} is not an absolute path of a file; the Python client makes one of a path with a "
            f"folder in it, such as './{shortened(path)}'"
        )
    return file
