"""Hulls on disk, by the content of the mesh that they were cut from."""

import hashlib
import json
import logging
from pathlib import Path

from urlab.compile.decomposition.hull import Hull, packed, unpacked
from urlab.compile.decomposition.parameters import PARAMETERS
from urlab.errors import PathNotWritable
from urlab.files import replacing

_log = logging.getLogger("urlab.compile")


def hull_key(mesh: bytes, suffix: str, threshold: float) -> str:
    """A digest of all that decides the hulls: the mesh's bytes and kind, the threshold, the parameters."""
    digest = hashlib.sha256(mesh)
    digest.update(json.dumps([suffix, threshold, PARAMETERS], sort_keys=True).encode())
    return digest.hexdigest()


class HullCache:
    """One file per key in ``folder``, which is made when it is needed. Any thread may call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, key: str) -> list[Hull] | None:
        """The hulls, or None when there are none or the file is damaged."""
        path = self._path(key)
        try:
            return unpacked(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as damaged:
            _log.warning("%s cannot be used and is made anew: %s", path, damaged)
            return None

    def save(self, key: str, hulls: list[Hull]) -> None:
        """Keep them. A disk that refuses costs a warning and the work of cutting the mesh again, one day."""
        try:
            with replacing(self._path(key)) as file:
                file.write(packed(hulls))
        except PathNotWritable as refused:
            _log.warning("the hulls are not kept: %s", refused.message)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.npz"
