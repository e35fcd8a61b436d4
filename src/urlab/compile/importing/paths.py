"""Paths as MuJoCo reads them: either slash separates, and ``..`` is taken away before any link is followed."""

import posixpath
import re

_ABSOLUTE = re.compile(r"/|\\|[^/\\]*:[/\\]")


def is_absolute(path: str) -> bool:
    """Whether MuJoCo looks for it where it says; ``C:/x`` and ``package://x`` count as well."""
    return _ABSOLUTE.match(path) is not None


def joined(*parts: str) -> str:
    """The parts as one path; one that is absolute drops those before it."""
    whole = ""
    for part in parts:
        slashed = part[:1] + part[1:].replace("\\", "/")
        whole = slashed if is_absolute(slashed) or not whole else f"{whole}/{slashed}"
    return posixpath.normpath(whole)


def last(path: str) -> str:
    """What follows the last slash."""
    return posixpath.basename(path.replace("\\", "/"))
