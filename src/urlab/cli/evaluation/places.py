"""Where results and files are to go, looked at before the work begins and not after hours of it."""

import os
from pathlib import Path

from urlab.cli.complaint import WRONG_USE, CommandError


def check_folder(option: str, folder: Path) -> None:
    """CommandError if nothing can be written in the folder, or if it can be neither there nor made."""
    nearest = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    if not nearest.is_dir():
        raise CommandError(f"{option} {folder}: {nearest} is a file, and a folder is needed", WRONG_USE)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise CommandError(f"{option} {folder}: {nearest} cannot be written; choose another folder", WRONG_USE)


def check_file(option: str, file: Path | None) -> None:
    """CommandError if the file cannot be written; None is no file."""
    if file is None:
        return
    if file.is_dir():
        raise CommandError(f"{option} {file} is a folder; name a file in it", WRONG_USE)
    check_folder(option, file.parent)
