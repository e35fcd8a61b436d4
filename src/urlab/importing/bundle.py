"""What an import will hold, before it is written anywhere: its files, under names that every file system takes."""

import hashlib
import json
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from urlab.errors import ImportFailed
from urlab.importing.mjcf_document import NotXml
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.names import MAX_NAME_BYTES, file_name_problem

_ASSETS_FOLDER = "assets"
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Bundle:
    """An import, in memory: every file of its folder by relative name (posix, ``robot.xml``, ``assets/arm.stl``).

    ``stem`` is the wanted short name, the stem of the source file. ``main`` names the model among ``files``.
    """

    stem: str
    main: str
    files: Mapping[str, bytes]
    kind: BlueprintKind

    @cached_property
    def content(self) -> str:
        """A SHA-256 in hex over kind, main and every file, names and bytes."""
        digest = hashlib.sha256()
        for part in (self.kind.value, self.main):
            _add(digest, part.encode())
        for name in sorted(self.files):
            _add(digest, name.encode())
            _add(digest, self.files[name])
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Original:
    """The model that an import must be equal to.

    ``files`` says what its URIs mean, where MuJoCo does not know. ``missing`` has files that are not there, each with
    the place that names it: MuJoCo will complain, but not say where. ``roots`` are the folders in which it and its
    files are; None where any may be read.
    """

    path: Path
    files: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[Path, ...] | None = None


class AssetFiles:
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
    if file_name_problem(wanted) is None:
        return wanted
    stem, suffix = posixpath.splitext(_ODD.sub("_", wanted).strip("."))
    stem, suffix = stem[: MAX_NAME_BYTES // 2], suffix[: MAX_NAME_BYTES // 4]
    return f"{stem}{suffix}" if file_name_problem(f"{stem}{suffix}") is None else f"file_{stem}{suffix}"


def folded(name: str) -> str:
    """What two names share when some file system takes them for one."""
    return unicodedata.normalize("NFC", name).casefold()


def _candidates(file_name: str) -> Iterator[str]:
    yield f"{_ASSETS_FOLDER}/{file_name}"
    yield from (f"{_ASSETS_FOLDER}/{number}/{file_name}" for number in count(2))


def _add(digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)


# -- from a child process to its parent ---------------------------------------------------------------------------
#
# The length of a header, the header in JSON, which keeps names that are not UTF-8, and the bytes of all files.

_LENGTH_BYTES = 8


def packed(bundle: Bundle, original: Original | None = None) -> bytes:
    """A bundle and its original as bytes."""
    header = {
        "stem": bundle.stem,
        "main": bundle.main,
        "kind": bundle.kind.value,
        "files": [(name, len(content)) for name, content in bundle.files.items()],
        "original": None if original is None else [dict(original.files), dict(original.missing)],
    }
    return packed_failure(header, b"".join(bundle.files.values()))


def packed_failure(header: Mapping[str, Any], content: bytes = b"") -> bytes:
    """That there is none: ``failed`` with a reason, or ``not_xml`` with ``line`` and the text."""
    line = json.dumps(header).encode()
    return len(line).to_bytes(_LENGTH_BYTES, "little") + line + content


def unpacked(source: Path, result: bytes) -> tuple[Bundle, Original | None]:
    """What was packed, read from ``source``; ImportFailed or NotXml when there is none."""
    view = memoryview(result)
    start = int.from_bytes(view[:_LENGTH_BYTES], "little") + _LENGTH_BYTES
    said = json.loads(bytes(view[_LENGTH_BYTES:start]))
    if "failed" in said:
        raise ImportFailed(said["failed"])
    if "not_xml" in said:
        raise NotXml(said["not_xml"], said["line"], bytes(view[start:]))
    files = {}
    for name, length_bytes in said["files"]:
        files[name] = bytes(view[start : start + length_bytes])
        start += length_bytes
    bundle = Bundle(said["stem"], said["main"], files, BlueprintKind(said["kind"]))
    return bundle, None if said["original"] is None else Original(source, *said["original"])
