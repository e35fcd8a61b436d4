"""The project folder: where levels, imports and recordings live, and how their names are found.

It mirrors the protocol's virtual paths: ``/Game/Levels/X`` is ``<project>/Levels/X.toml`` and
``/Game/MuJoCoImports/S`` is ``<project>/Imports/S/``. What is shipped with the server can be opened by name as well,
but is never written to.
"""

import itertools
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from urlab.errors import ImportFailed, LoadLevelFailed, known
from urlab.files import replacing
from urlab.paths import shortened
from urlab.scene.blueprint_record import (
    IMPORTS_FOLDER,
    SHIPPED_PACKAGE,
    BlueprintRecord,
    asked_path,
    file_record,
    read_import,
    word_of,
)
from urlab.scene.level import Level
from urlab.scene.level_file import LEVEL, level_text, read_level
from urlab.scene.names import file_name_problem, level_name

_LEVEL_SUFFIX = ".toml"


@dataclass(frozen=True)
class Project:
    """``shipped_models`` and ``shipped_levels`` map a name to its file."""

    folder: Path
    shipped_models: Mapping[str, Path] = field(default_factory=dict)
    shipped_levels: Mapping[str, Path] = field(default_factory=dict)

    @property
    def levels_dir(self) -> Path:
        """The folder of level files."""
        return self.folder / "Levels"

    @property
    def imports_dir(self) -> Path:
        """The folder of imports: one folder each."""
        return self.folder / IMPORTS_FOLDER

    @property
    def uploads_dir(self) -> Path:
        """The folder of files that clients sent, to be imported: one folder each."""
        return self.folder / "Uploads"

    @property
    def saved_dir(self) -> Path:
        """What the server writes: recordings, debug files."""
        return self.folder / "Saved" / "URLab"

    @property
    def replays_dir(self) -> Path:
        """The folder of recordings."""
        return self.saved_dir / "Replays"

    @property
    def journal_dir(self) -> Path:
        """Recordings that are not saved yet."""
        return self.saved_dir / "Journal"

    @property
    def converted_meshes_dir(self) -> Path:
        """Meshes cut into convex parts."""
        return self.saved_dir / "ConvertedMeshes"

    # -- levels -------------------------------------------------------------------------------------------------

    def level_names(self) -> list[str]:
        """Every level that can be opened by name, the user's own first."""
        own = self.own_level_names()
        return [*own, *(name for name in sorted(self.shipped_levels) if name not in own)]

    def own_level_names(self) -> list[str]:
        """The levels in the project folder."""
        files = sorted(self.levels_dir.glob(f"*{_LEVEL_SUFFIX}"))
        return [path.stem for path in files if not path.is_dir() and file_name_problem(path.stem) is None]

    def open_level(self, name_or_path: str) -> Level:
        """The level called X, /Game/Levels/X or /Game/Levels/X.X; the user's own wins over a shipped one.

        It has the name of its file, whatever the file says: under that name it was opened, and will be saved.
        """
        name = level_name(name_or_path)
        file = self.level_file(name)
        real = self._real_level(file)
        if _is_file(real):
            return replace(read_level(file, real), name=name)
        if name in self.shipped_levels:
            return replace(read_level(self.shipped_levels[name]), name=name)
        raise LoadLevelFailed(f"there is no level {name_or_path!r}; there are: {known(self.level_names())}")

    def level_file(self, name: str) -> Path:
        """Where a level of the project is; LoadLevelFailed when a link leads out of the folder."""
        path = self.levels_dir / f"{name}{_LEVEL_SUFFIX}"
        self._real_level(path)
        return path

    def _real_level(self, path: Path) -> Path:
        """The same file with links resolved, which stay in the folder of levels."""
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(os.path.realpath(self.levels_dir)):
            raise LoadLevelFailed(f"level {path.stem!r} is a link that leads out of {self.levels_dir}")
        return real

    def has_level(self, name: str) -> bool:
        """Whether the project itself has that level."""
        return _is_file(self.level_file(name))

    def save_level(self, level: Level) -> Path:
        """Write a level; its old file stays until the new one is safe on disk. PathNotWritable says why not."""
        path = self.level_file(level_name(level.name))
        with replacing(path, LEVEL) as file:
            file.write(level_text(level).encode())
        return path

    def free_level_name(self, wanted: str) -> str:
        """``wanted``, or the first of ``wanted-2``, ``wanted-3`` ... that no level has."""
        taken = set(self.level_names())
        candidates = itertools.chain([wanted], (f"{wanted}-{number}" for number in itertools.count(2)))
        return next(name for name in candidates if name not in taken)

    def levels_with(self, word: str) -> list[str]:
        """The project's own levels that have an actor of that blueprint; levels that cannot be read are passed over."""
        return [name for name in self.own_level_names() if word in self._blueprints_of(name)]

    def _blueprints_of(self, name: str) -> set[str]:
        try:
            return {actor.blueprint for actor in self.open_level(name).actors}
        except LoadLevelFailed:
            return set()

    def delete_level(self, name: str) -> bool:
        """Delete a level of the project; whether there was one."""
        path = self.level_file(name)
        found = _is_file(path)
        path.unlink(missing_ok=True)
        return found

    # -- blueprints ---------------------------------------------------------------------------------------------

    def record(self, word: str) -> BlueprintRecord:
        """What a level's word for a blueprint stands for, a file among others; ImportFailed when nothing."""
        file = asked_path(word).file
        if file is None:
            return self.record_named(word)
        if file.suffix and _is_file(file):
            return file_record(word)
        raise self._no_model(word)

    def record_named(self, word: str) -> BlueprintRecord:
        """What has that name, or the protocol's path, among the shipped models and the imports; never another file."""
        asked, word = word, word_of(word)
        if word in self.shipped_models:
            return self._shipped(word)
        folder, slash, short = word.rpartition("/")
        found = self.imported(short) if not slash or folder == IMPORTS_FOLDER else None
        if found is not None:
            return found
        raise self._no_model(asked)

    def _no_model(self, asked: str) -> ImportFailed:
        if Path(asked).suffix:
            return ImportFailed(f"model file {shortened(asked)} does not exist")
        return ImportFailed(
            f"there is no model {shortened(asked)!r}; there are: {known(one.word for one in self.records())}"
        )

    def records(self) -> list[BlueprintRecord]:
        """Everything that can be spawned by name, sorted by short name."""
        shipped = [self._shipped(name) for name in self.shipped_models]
        own = [self.imported(folder.name) for folder in sorted(self.imports_dir.glob("[!.]*"))]
        return sorted([*shipped, *(one for one in own if one is not None)], key=lambda one: (one.short_name, one.word))

    def imported(self, short_name: str) -> BlueprintRecord | None:
        """The import of that name, or None."""
        if file_name_problem(short_name) is not None:
            return None
        return read_import(self.imports_dir / short_name)

    def delete_import(self, short_name: str) -> bool:
        """Delete an import; whether there was one."""
        if self.imported(short_name) is None:
            return False
        doomed = self.imports_dir / f".{uuid.uuid4().hex}.gone"
        (self.imports_dir / short_name).rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)
        return True

    def _shipped(self, name: str) -> BlueprintRecord:
        return BlueprintRecord(name, name, SHIPPED_PACKAGE, self.shipped_models[name], content=f"shipped:{name}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False  # a name that no file can have, or a folder that may not be looked into
