"""The project folder: where levels, imports and recordings live, and how their names are found.

It mirrors the protocol's virtual paths: ``/Game/Levels/X`` is ``<project>/Levels/X.toml``. What is shipped with
the server can be opened by name as well, but is never written to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from urlab.errors import ImportFailed, LoadLevelFailed, known
from urlab.scene.level import Level, read_level

LEVELS_PACKAGE = "/Game/Levels/"
_LEVEL_SUFFIX = ".toml"


@dataclass(frozen=True)
class Project:
    """``shipped_models`` and ``shipped_levels`` map a name to its file."""

    folder: Path
    shipped_models: Mapping[str, Path] = field(default_factory=dict)
    shipped_levels: Mapping[str, Path] = field(default_factory=dict)

    @property
    def levels_dir(self) -> Path:
        """Level files."""
        return self.folder / "Levels"

    @property
    def saved_dir(self) -> Path:
        """What the server writes: recordings, debug files."""
        return self.folder / "Saved" / "URLab"

    @property
    def replays_dir(self) -> Path:
        """Recordings."""
        return self.saved_dir / "Replays"

    def level_names(self) -> list[str]:
        """Every level that can be opened by name, the user's own first."""
        own = [path.stem for path in sorted(self.levels_dir.glob(f"*{_LEVEL_SUFFIX}"))]
        return [*own, *(name for name in sorted(self.shipped_levels) if name not in own)]

    def open_level(self, name_or_path: str) -> Level:
        """The level called X, /Game/Levels/X or /Game/Levels/X.X; the user's own wins over a shipped one."""
        name = level_name(name_or_path)
        own = self.levels_dir / f"{name}{_LEVEL_SUFFIX}"
        if _is_file(own):
            return read_level(own)
        if name in self.shipped_levels:
            return read_level(self.shipped_levels[name])
        raise LoadLevelFailed(f"there is no level {name_or_path!r}; there are: {known(self.level_names())}")

    def model_file(self, blueprint: str) -> Path:
        """The model file behind an actor's blueprint."""
        if blueprint in self.shipped_models:
            return self.shipped_models[blueprint]
        path = Path(blueprint)
        if _is_file(path):
            return path
        if path.suffix:
            raise ImportFailed(f"model file {blueprint} does not exist")
        raise ImportFailed(f"there is no model {blueprint!r}; there are: {known(self.shipped_models)}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # a name that no file can have, or a folder that may not be looked into


def level_name(name_or_path: str) -> str:
    """``X`` from X, /Game/Levels/X or /Game/Levels/X.X; LoadLevelFailed when it is not a plain name."""
    name = name_or_path.removeprefix(LEVELS_PACKAGE)
    first, dot, second = name.partition(".")
    if dot and first == second:
        name = first
    if not name or name.startswith(".") or any(mark in name for mark in "/\\\0"):
        raise LoadLevelFailed(f"{name_or_path!r} is not the name of a level: use X or {LEVELS_PACKAGE}X")
    return name
