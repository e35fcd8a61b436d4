"""`import.toml`: what an import's folder holds, and where it came from."""

import tomllib
from functools import lru_cache
from pathlib import Path

import msgspec

from urlab.scene.blueprint_record import IMPORTS_PACKAGE, BlueprintKind, BlueprintRecord, imported
from urlab.scene.toml_text import assignment

IMPORT_FILE = "import.toml"
IMPORT_VERSION = 1


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
