"""Names of levels and imports: they become names of files, so only plain ones will do."""

from urlab.errors import LoadLevelFailed
from urlab.scene.blueprint_record import undoubled
from urlab.scene.level import LEVELS_PACKAGE

MAX_NAME_BYTES = 120
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))]
)
"""Names that Windows keeps for devices: a project folder can be carried from one machine to another."""


def plain_name(name: str) -> str | None:
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
    wrong = plain_name(name)
    if wrong is not None:
        shown = name_or_path if len(name_or_path) <= MAX_NAME_BYTES else f"{name_or_path[:MAX_NAME_BYTES]}..."
        raise LoadLevelFailed(f"{shown!r} is not the name of a level: {wrong}. Use X or {LEVELS_PACKAGE}X")
    return name
