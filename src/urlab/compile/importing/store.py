"""The imports of a project on disk: one folder each, whole or not at all."""

import itertools
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from urlab.compile.importing.assets import folded, safe_file_name
from urlab.compile.importing.bundle import Bundle
from urlab.compile.importing.exchange import put_in_place
from urlab.compile.importing.imports_lock import STAGED, locked
from urlab.errors import ImportFailed
from urlab.scene.asset_names import MAX_NAME_BYTES
from urlab.scene.blueprint_record import BlueprintRecord
from urlab.scene.import_file import IMPORT_FILE, import_text, read_import
from urlab.scene.project import Project

_ROOM_FOR_NUMBER = 10

Check = Callable[[Path], None]
"""Judges a model file before its folder takes its place; ImportFailed when it will not do."""


def store(
    bundle: Bundle, source: str, project: Project, check: Check, *, force: bool = False
) -> tuple[BlueprintRecord, bool]:
    """The import of ``source``, written unless it is there already; whether it was. ImportFailed says why it is not.

    The old import stays until the new one is whole, checked and on disk. Any thread may call this; they wait for each
    other, and for other processes.
    """
    found = _stored(source, project)
    if found is not None and not force and _is_whole(found, bundle):
        return found, False
    try:
        with locked(project.imports_dir):
            found = _stored(source, project)
            if found is not None and not force and _is_whole(found, bundle):
                return found, False
            name = _free_name(bundle.stem, project) if found is None else found.short_name
            return _written(bundle, source, project.imports_dir / name, check), True
    except OSError as refused:
        reason = refused.strerror or str(refused)
        raise ImportFailed(f"cannot keep {source} in {project.imports_dir}: {reason}") from refused


def _stored(source: str, project: Project) -> BlueprintRecord | None:
    """The import that was made from there."""
    return next((one for one in project.records() if one.source == source), None)


def _is_whole(record: BlueprintRecord, bundle: Bundle) -> bool:
    """Whether that import is this bundle, with every file still there."""
    folder = record.file.parent
    return record.content == bundle.content and all(
        _length_bytes(folder / name) == len(content) for name, content in bundle.files.items()
    )


def _length_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _free_name(stem: str, project: Project) -> str:
    """The stem or the first of ``stem_2``, ``stem_3`` ... that is free, capitals or not."""
    base = safe_file_name(stem).encode()[: MAX_NAME_BYTES - _ROOM_FOR_NUMBER].decode(errors="ignore").rstrip(". ")
    taken = {folded(one.name) for one in project.imports_dir.iterdir()}
    candidates = itertools.chain([base], (f"{base}_{number}" for number in itertools.count(2)))
    return next(name for name in candidates if folded(name) not in taken)


def _written(bundle: Bundle, source: str, folder: Path, check: Check) -> BlueprintRecord:
    staged = folder.parent / f".{uuid.uuid4().hex}{STAGED}"
    try:
        for name, content in bundle.files.items():
            _write(staged / name, content)
        _checked(staged, bundle.main, folder, check)
        text = import_text(source=source, content=bundle.content, kind=bundle.kind, file=bundle.main)
        _write(staged / IMPORT_FILE, text.encode())
        put_in_place(staged, folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    record = read_import(folder)
    if record is None:
        raise ImportFailed(f"{folder} was written, but is no whole import any more: something else has changed it")
    return record


def _checked(staged: Path, main: str, folder: Path, check: Check) -> None:
    """Messages name the folder that people know, not the one that is there for a moment only."""
    try:
        check(staged / main)
    except ImportFailed as failed:
        raise ImportFailed(failed.message.replace(str(staged), str(folder))) from failed


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
