"""The imports of a project on disk: one folder each, whole or not at all."""

import contextlib
import ctypes
import fcntl
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from urlab.errors import ImportFailed
from urlab.files import PART_SUFFIX, part_name
from urlab.importing.bundle import Bundle, folded, safe_file_name
from urlab.scene.blueprint_record import IMPORT_FILE, BlueprintRecord, import_text, read_import
from urlab.scene.names import MAX_NAME_BYTES
from urlab.scene.project import Project

_ROOM_FOR_NUMBER = 10
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_REPLACED, DELETED = ".old", ".gone"
"""Ends of hidden folders that are about to be replaced or deleted; those not yet in place end in ``.part``."""

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
        with locked_folder(project.imports_dir):
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
    staged = folder.parent / part_name()
    try:
        for name, content in bundle.files.items():
            _write(staged / name, content)
        _checked(staged, bundle.main, folder, check)
        text = import_text(source=source, content=bundle.content, kind=bundle.kind, file=bundle.main)
        _write(staged / IMPORT_FILE, text.encode())
        replace_folder(staged, folder)
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


def sweep_stored(folder: Path) -> None:
    """Put right what a killed process left in the folder of imports, or of uploads; nothing while it is in use."""
    with contextlib.suppress(OSError):
        if folder.is_dir():
            with locked_folder(folder, wait=False):
                pass


@contextlib.contextmanager
def locked_folder(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """One change at a time of that folder, in all threads and processes; leftovers are gone. May raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        _tidy(folder)
        yield
    finally:
        os.close(handle)


def _tidy(folder: Path) -> None:
    for leftover in folder.glob(".*"):
        home = folder / leftover.name.removeprefix(".").removesuffix(_REPLACED)
        if leftover.suffix == _REPLACED and not home.exists():
            leftover.rename(home)
        elif leftover.suffix in (PART_SUFFIX, _REPLACED, DELETED):
            shutil.rmtree(leftover, ignore_errors=True)


def replace_folder(folder: Path, target: Path) -> None:
    """Rename ``folder`` to ``target``; what stood there is called ``folder`` from then on.

    On Linux there is no moment without ``target``, where the file system can do that.
    """
    if not target.exists():
        folder.rename(target)
    elif not swap_atomically(folder, target):
        swap_in_steps(folder, target)


def swap_atomically(folder: Path, target: Path) -> bool:
    """Two folders swap their names; False when this system cannot do it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(folder), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0)


def swap_in_steps(folder: Path, target: Path) -> None:
    """The same in three steps. A crash between them leaves a hidden folder, which `locked_folder` puts back."""
    hidden = target.with_name(f".{target.name}{_REPLACED}")
    target.rename(hidden)
    try:
        folder.rename(target)
    except OSError:
        hidden.rename(target)
        raise
    hidden.rename(folder)
