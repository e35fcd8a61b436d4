"""What can be placed in a level, as a record: where its model file is, and how the protocol calls it.

An import is a folder with a file `import.toml`, which says what the folder holds and where it came from.
"""

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

import msgspec

from urlab.errors import ImportFailed
from urlab.paths import AskedPath, BadPath, read_path, shortened
from urlab.toml_tables import assignment

IMPORTS_PACKAGE = "/Game/MuJoCoImports/"
SHIPPED_PACKAGE = "/Game/URLab/"
IMPORTS_FOLDER = "Imports"
MODEL_SUFFIXES = (".xml", ".mjcf", ".urdf")
_CLASS_SUFFIX = "_C"

_PREFIXES = {IMPORTS_PACKAGE: f"{IMPORTS_FOLDER}/", SHIPPED_PACKAGE: ""}
"""How levels begin a word for what the protocol has in these packages."""

IMPORT_FILE = "import.toml"
IMPORT_VERSION = 1


class BlueprintKind(StrEnum):
    """A model has its own physics; a static mesh has none unless it is converted; a heightfield is ground."""

    MODEL = "model"
    STATIC_MESH = "static_mesh"
    HEIGHTFIELD = "heightfield"


@dataclass(frozen=True, slots=True)
class BlueprintRecord:
    """``file`` is the model that MuJoCo compiles, whatever it was made from.

    ``word`` is how a level names it. ``content`` is a digest of everything that was imported; it is empty for a file
    that is used where it stands and may change at any time.
    """

    word: str
    short_name: str
    package: str
    file: Path
    kind: BlueprintKind = BlueprintKind.MODEL
    source: str = ""
    content: str = ""

    @property
    def package_path(self) -> str:
        """``/Game/MuJoCoImports/panda``."""
        return f"{self.package}{self.short_name}"

    @property
    def class_path(self) -> str:
        """``/Game/MuJoCoImports/panda.panda_C``."""
        return f"{self.package_path}.{self.short_name}{_CLASS_SUFFIX}"


def imported(short_name: str) -> str:
    """How a level names an import."""
    return f"{IMPORTS_FOLDER}/{short_name}"


def asked_path(text: str) -> AskedPath:
    """What a request's or a level's text for a model means; ImportFailed when it is no path."""
    try:
        return read_path(text)
    except BadPath as bad:
        raise ImportFailed(f"{shortened(text)!r} is no model: {bad}") from bad


def word_of(path: str) -> str:
    """How a level names what the protocol calls ``/pkg/foo``, ``/pkg/foo.foo`` or ``/pkg/foo.foo_C``; else as it is.

    ImportFailed when it begins as such a path, but no single name follows.
    """
    names = asked_path(path).virtual
    if not names:
        return path
    package, name = f"/Game/{names[0]}/", undoubled("/".join(names[1:]))
    if package not in _PREFIXES or not name or "/" in name:
        raise ImportFailed(f"there is no model {shortened(path)!r}: it is one name behind {' or '.join(_PREFIXES)}")
    return f"{_PREFIXES[package]}{name}"


def undoubled(asset: str) -> str:
    """``X`` from ``X.X`` or ``X.X_C``, also where X has dots itself; any other text as it is."""
    for cut in (index for index, mark in enumerate(asset) if mark == "."):
        if asset[cut + 1 :] in (asset[:cut], f"{asset[:cut]}{_CLASS_SUFFIX}"):
            return asset[:cut]
    return asset


def file_record(path: str) -> BlueprintRecord:
    """A model file that is used where it stands."""
    return BlueprintRecord(word=path, short_name=Path(path).stem, package="/Files/", file=Path(path), source=path)


class _ImportRecord(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    source: str
    content: str
    kind: BlueprintKind
    file: str


def read_import(folder: Path) -> BlueprintRecord | None:
    """The import in that folder, or None when there is none, or none that is whole."""
    try:
        stamp = (folder / IMPORT_FILE).stat()
    except (OSError, ValueError):
        return None
    return _read(folder, stamp.st_mtime_ns, stamp.st_ino)


@lru_cache(maxsize=1024)
def _read(folder: Path, modified_ns: int, inode: int) -> BlueprintRecord | None:  # noqa: ARG001 - they tell versions
    try:
        text = (folder / IMPORT_FILE).read_text(encoding="utf-8")
        record = msgspec.convert(tomllib.loads(text), _ImportRecord)
    except (OSError, ValueError, msgspec.ValidationError):
        return None
    file = folder / record.file
    if record.version != IMPORT_VERSION or not file.is_file() or file.parent != folder:
        return None
    return BlueprintRecord(
        word=imported(folder.name),
        short_name=folder.name,
        package=IMPORTS_PACKAGE,
        file=file,
        kind=record.kind,
        source=record.source,
        content=record.content,
    )


def import_text(*, source: str, content: str, kind: BlueprintKind, file: str) -> str:
    """The text of an `import.toml`."""
    fields = {"version": IMPORT_VERSION, "source": source, "content": content, "kind": kind.value, "file": file}
    return "".join(f"{assignment(key, value)}\n" for key, value in fields.items())
