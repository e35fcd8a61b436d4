"""Whether two compiled models are the same, bit for bit."""

from typing import Any

import numpy as np

_PATHS = ("paths", "npaths", "nbuffer", "mesh_pathadr", "hfield_pathadr", "skin_pathadr", "tex_pathadr")


def first_difference(model: Any, other: Any) -> str | None:
    """The first field in which two models differ, or None. Paths of files, and their lengths, are left out."""
    return next((name for name in _fields(model) if name not in _PATHS and not _same(model, other, name)), None)


def _same(model: Any, other: Any, name: str) -> bool:
    mine, theirs = getattr(model, name), getattr(other, name)
    if isinstance(mine, np.ndarray):
        return bool(mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes())
    if isinstance(mine, int | float | bytes | str | np.generic):
        return np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()
    return all(_same(mine, theirs, field) for field in _fields(mine))


def _fields(struct: Any) -> list[str]:
    return [name for name in dir(struct) if not name.startswith("_") and not callable(getattr(struct, name))]
