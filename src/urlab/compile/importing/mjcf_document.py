"""An MJCF file and the files that it includes, read but not changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from urlab.compile.importing.paths import is_absolute, joined
from urlab.compile.importing.sources import Sources
from urlab.compile.importing.xml_tags import BrokenXml, Tag, tags
from urlab.errors import ImportFailed

_MOST_INCLUDES = 200
"""Far above any real model, and far below where Python's stack ends."""


class NotXml(Exception):
    """The text of a model file is no XML, from ``line`` on; MuJoCo can say more about it."""

    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}: line {line} is not XML")
        self.path, self.line = path, line


@dataclass(frozen=True)
class Document:
    """One file. ``folder`` is its own folder when it was included, None when it is the model itself.

    ``tags`` are those of its first element, which is all that MuJoCo looks at; ``included`` has documents by the
    index of the tag that includes them.
    """

    path: str
    text: bytes
    tags: list[Tag]
    folder: str | None
    included: dict[int, "Document"] = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The name of the first element, or nothing."""
        return self.tags[0].name if self.tags else ""

    def all_tags(self) -> Iterator[Tag]:
        """Start tags in the order in which MuJoCo meets them."""
        for index, tag in enumerate(self.tags):
            if index in self.included:
                yield from self.included[index].all_tags()
            elif not tag.is_end:
                yield tag


def read_document(path: str, text: bytes, folder: str | None = None) -> Document:
    """A file by itself; NotXml when it is no XML."""
    if b"\0" in text:
        raise NotXml(path, text.count(b"\n", 0, text.index(b"\0")) + 1)
    try:
        return Document(path, text, _first_element(list(tags(text))), folder)
    except BrokenXml as broken:
        raise NotXml(path, broken.line) from broken


def add_includes(document: Document, model_folder: str, sources: Sources) -> None:
    """Read what the document includes, and what that includes.

    An include that MuJoCo refuses is left as it is: MuJoCo then says so.
    """
    found: list[str] = []
    _add_includes(document, model_folder, sources, (document.path,), found)


def _add_includes(
    document: Document, model_folder: str, sources: Sources, chain: tuple[str, ...], found: list[str]
) -> None:
    for index, tag in enumerate(document.tags):
        if tag.name.lower() != "include" or tag.is_end or "file" not in tag.attributes:
            continue
        path = _find(tag, document, model_folder, sources)
        if path is None or path in chain or not _is_childless(document.tags, index):
            continue
        found.append(path)
        if len(found) > _MOST_INCLUDES:
            raise ImportFailed(f"{chain[0]} includes more than {_MOST_INCLUDES} files")
        text = sources.read(path, document.path) or b""
        inner = read_document(path, text, joined(path, ".."))
        if inner.tags:
            document.included[index] = inner
            _add_includes(inner, model_folder, sources, (*chain, path), found)


def _find(tag: Tag, document: Document, model_folder: str, sources: Sources) -> str | None:
    """MuJoCo looks beside the model first, then beside the file that includes."""
    file = tag.attributes["file"].value
    places = [model_folder] if document.folder is None or is_absolute(file) else [model_folder, document.folder]
    for place in places:
        path = checked(joined(place, file), file, document.path)
        if sources.exists(path, f"line {tag.line} of {document.path}"):
            return path
    return None


def checked(path: str, reference: str, document: str) -> str:
    """The path, when it is one of this kind of machine; ``C:/x`` would be looked for in the current folder."""
    if not path.startswith("/"):
        raise ImportFailed(f"{document} refers to {reference!r}, which is not a path that can be followed here")
    return path


def _is_childless(every: list[Tag], index: int) -> bool:
    return every[index].is_empty or (index + 1 < len(every) and every[index + 1].is_end)


def _first_element(every: list[Tag]) -> list[Tag]:
    depth = 0
    for index, tag in enumerate(every):
        depth += 0 if tag.is_empty else -1 if tag.is_end else 1
        if depth <= 0:
            return every[: index + 1]
    return every
