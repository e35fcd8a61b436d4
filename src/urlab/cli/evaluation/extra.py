"""The packages of the extra ``eval``, which may be missing."""

import importlib.util

from urlab.cli.complaint import CommandError

INSTALL_LINE = "pip install 'urlab-headless[eval]'"

FOR_TASKS = ("scipy",)
FOR_A_SERVER = ("fastapi", "scipy", "uvicorn")


def need_packages(names: tuple[str, ...]) -> None:
    """CommandError with the line that installs them, if a package is missing."""
    missing = [name for name in names if not _is_there(name)]
    if missing:
        raise CommandError(f"this needs packages that are missing ({', '.join(missing)}): {INSTALL_LINE}")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False
