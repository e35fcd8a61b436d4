"""One import at a time, and what a crash in the middle of one leaves behind."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

STAGED, REPLACED, DELETED = ".part", ".old", ".gone"
"""Ends of the hidden folders: not yet in place, about to be replaced, about to be deleted."""


@contextlib.contextmanager
def locked(imports_dir: Path) -> Iterator[None]:
    """Nobody else, in this process or another, imports into that folder, and leftovers are gone. May raise OSError."""
    imports_dir.mkdir(parents=True, exist_ok=True)
    handle = os.open(imports_dir / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        _tidy(imports_dir)
        yield
    finally:
        os.close(handle)


def _tidy(imports_dir: Path) -> None:
    for leftover in imports_dir.glob(".*"):
        home = imports_dir / leftover.name.removeprefix(".").removesuffix(REPLACED)
        if leftover.suffix == REPLACED and not home.exists():
            leftover.rename(home)
        elif leftover.suffix in (STAGED, REPLACED, DELETED):
            shutil.rmtree(leftover, ignore_errors=True)
