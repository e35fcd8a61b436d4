"""What is different about the files of a URDF."""

import re
from collections.abc import Iterator

from urlab.compile.importing.paths import joined, last
from urlab.compile.importing.sources import Sources
from urlab.compile.importing.xml_tags import Tag
from urlab.errors import ImportFailed

_PACKAGE = re.compile(r"(?:package|model)://([^/]+)/(.+)", re.DOTALL)
_FILE = "file://"


def references(tag: Tag) -> Iterator[str]:
    """The attributes of a tag that name files."""
    if tag.name == "mesh" and "filename" in tag.attributes:
        yield "filename"


def package_file(uri: str, model_folder: str, sources: Sources, where: str) -> str | None:
    """The file that a ``package://`` or ``file://`` URI means, which MuJoCo does not know; None for other names.

    A package is a folder of that name that holds the URDF or is beside a folder that does. Failing that, the rest of
    the URI is looked for beside the URDF. ImportFailed when there is no such file.
    """
    if uri.startswith(_FILE):
        path = joined(uri.removeprefix(_FILE))
        return path if path.startswith("/") and sources.exists(path, where) else None
    match = _PACKAGE.fullmatch(uri)
    if match is None:
        return None
    for path in _candidates(match[1], match[2], model_folder):
        if sources.may_read(path) and sources.exists(path, where):
            return path
    raise ImportFailed(
        f"{where} refers to {uri!r}, which cannot be found: neither above {model_folder} nor beside a folder "
        f"above it is a folder {match[1]!r} with that file where it may be read"
    )


def _candidates(package: str, rest: str, model_folder: str) -> Iterator[str]:
    above = list(_upward(model_folder))
    yield from (joined(folder, rest) for folder in above if last(folder) == package)
    yield from (joined(folder, package, rest) for folder in above)
    yield joined(model_folder, rest)


def _upward(folder: str) -> Iterator[str]:
    yield folder
    while folder != "/":
        folder = joined(folder, "..")
        yield folder
