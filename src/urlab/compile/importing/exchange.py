"""A folder takes the place of another."""

import ctypes
import os
from pathlib import Path

from urlab.compile.importing.imports_lock import REPLACED

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def put_in_place(folder: Path, target: Path) -> None:
    """Rename ``folder`` to ``target``; what stood there is called ``folder`` from then on.

    On Linux there is no moment without ``target``, where the file system can do that.
    """
    if not target.exists():
        folder.rename(target)
    elif not exchange_at_once(folder, target):
        exchange_in_turn(folder, target)


def exchange_at_once(folder: Path, target: Path) -> bool:
    """Two folders swap their names; False when this system cannot do it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(folder), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE) == 0)


def exchange_in_turn(folder: Path, target: Path) -> None:
    """The same in three steps. A crash between them leaves a hidden folder, which `locked` puts back."""
    hidden = target.with_name(f".{target.name}{REPLACED}")
    target.rename(hidden)
    try:
        folder.rename(target)
    except OSError:
        hidden.rename(target)
        raise
    hidden.rename(folder)
