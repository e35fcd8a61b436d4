"""The files that stand beside an imported model, in its folder ``assets``."""

import posixpath
import re
import unicodedata
from collections.abc import Iterator
from itertools import count

from urlab.scene.asset_names import MAX_NAME_BYTES, plain_name

FOLDER = "assets"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


class Assets:
    """Names of asset files, and their content once it is known.

    A file keeps its own name, because MuJoCo names meshes after it; of two with one name the second gets a folder of
    its own.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()

    def known(self, path: str, reference: str) -> str | None:
        """The name that a source file has already."""
        return self._names.get((path, reference))

    def take(self, path: str, reference: str) -> str:
        """A name for the source file that a model calls ``reference``. Two references never share a name."""
        file_name = safe_file_name(posixpath.basename(path))
        name = next(one for one in _candidates(file_name) if folded(one) not in self._taken)
        self._taken.add(folded(name))
        self._names[path, reference] = name
        return name


def safe_file_name(wanted: str) -> str:
    """The name itself where every file system takes it, else the nearest one."""
    if plain_name(wanted) is None:
        return wanted
    stem, suffix = posixpath.splitext(_ODD.sub("_", wanted).strip("."))
    stem, suffix = stem[: MAX_NAME_BYTES // 2], suffix[: MAX_NAME_BYTES // 4]
    return f"{stem}{suffix}" if plain_name(f"{stem}{suffix}") is None else f"file_{stem}{suffix}"


def folded(name: str) -> str:
    """What two names share when some file system takes them for one."""
    return unicodedata.normalize("NFC", name).casefold()


def _candidates(file_name: str) -> Iterator[str]:
    yield f"{FOLDER}/{file_name}"
    yield from (f"{FOLDER}/{number}/{file_name}" for number in count(2))
