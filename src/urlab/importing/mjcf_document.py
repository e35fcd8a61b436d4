"""An MJCF file and the files that it includes, read but not changed, and where MuJoCo looks for what they name."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from urlab.errors import ImportFailed
from urlab.importing.sources import SourceFiles
from urlab.importing.xml_tags import BrokenXml, Tag, tags

_MOST_INCLUDES = 200
"""Far above any real model, and far below where Python's stack ends."""

FOLDER_ATTRIBUTES = ("assetdir", "meshdir", "texturedir", "strippath")
_CUBE_FACES = ("fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_REFERENCES = {
    "mesh": ("file",),
    "hfield": ("file",),
    "skin": ("file",),
    "texture": ("file", *_CUBE_FACES),
    "flexcomp": ("file",),
    "model": ("file",),
}
"""The attributes that name files, by element."""
_INCLUDE = "include"
_MATTERING = frozenset((*_REFERENCES, _INCLUDE, "compiler", "visual"))
_MOST_TAGS = 2_000_000
"""Far above any real model, and read within seconds."""
_ABSOLUTE = re.compile(r"/|\\|[^/\\]*:[/\\]")


class NotXml(Exception):
    """The text of a model file is no XML, from ``line`` on; MuJoCo can say more about it."""

    def __init__(self, path: str, line: int, text: bytes) -> None:
        super().__init__(f"{path}: line {line} is not XML")
        self.path, self.line, self.text = path, line, text


@dataclass(frozen=True)
class Document:
    """One file. ``folder`` is its own folder when it was included, None when it is the model itself.

    ``tags`` are those of its first element, which is all that MuJoCo looks at: the first and the last one, those that
    can matter here, and each that follows an include. ``included`` has documents by the index of the tag that includes
    them.
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
        raise NotXml(path, text.count(b"\n", 0, text.index(b"\0")) + 1, text)
    try:
        return Document(path, text, _first_element(path, tags(text)), folder)
    except BrokenXml as broken:
        raise NotXml(path, broken.line, text) from broken


def add_includes(document: Document, model_folder: str, sources: SourceFiles) -> None:
    """Read what the document includes, and what that includes.

    An include that MuJoCo refuses is left as it is: MuJoCo then says so.
    """
    found: list[str] = []
    _add_includes(document, model_folder, sources, (document.path,), found)


def _add_includes(
    document: Document, model_folder: str, sources: SourceFiles, chain: tuple[str, ...], found: list[str]
) -> None:
    for index, tag in enumerate(document.tags):
        if tag.name.lower() != _INCLUDE or tag.is_end or "file" not in tag.attributes:
            continue
        path = _find(tag, document, model_folder, sources)
        if path is None or path in chain or not _is_childless(document.tags, index):
            continue
        found.append(path)
        if len(found) > _MOST_INCLUDES:
            raise ImportFailed(f"{chain[0]} includes more than {_MOST_INCLUDES} files")
        text = sources.read(path, document.path, is_text=True) or b""
        inner = read_document(path, text, joined(path, ".."))
        if inner.tags:
            document.included[index] = inner
            _add_includes(inner, model_folder, sources, (*chain, path), found)


def _find(tag: Tag, document: Document, model_folder: str, sources: SourceFiles) -> str | None:
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


def _first_element(path: str, every: Iterable[Tag]) -> list[Tag]:
    """Most tags of a large model name no file, and are let go at once."""
    depth, kept, newest, follows_include = 0, list[Tag](), None, False
    for number, tag in enumerate(every):
        if number == _MOST_TAGS:
            raise ImportFailed(f"{path} has more than {_MOST_TAGS} tags")
        newest, name = tag, tag.name.lower()
        if number == 0 or follows_include or name in _MATTERING:
            kept.append(tag)
        follows_include = name == _INCLUDE
        depth += 0 if tag.is_empty else -1 if tag.is_end else 1
        if depth <= 0:
            break
    if newest is not None and newest is not kept[-1]:
        kept.append(newest)
    return kept


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders in force for a whole model, relative to ``model``, the folder of its file.

    MuJoCo looks for a file twice. While it reads the text it tries the folders that were named last, to decide
    whether a file of an included text is beside the model or beside that text. When it compiles it uses the folders
    that the compiler elements add up to, where ``assetdir`` stands for both others.
    """

    model: str
    tried_assets: str = ""
    tried_meshes: str = ""
    tried_textures: str = ""
    meshes: str = ""
    textures: str = ""
    strips_path: bool = False

    def tried(self, element: str, file: str) -> str | None:
        """The first place where MuJoCo looks for a file, or None when it does not look."""
        if element == "model" or is_absolute(file):
            return None
        by_element = {
            "mesh": self.tried_meshes or self.tried_assets,
            "texture": self.tried_textures or self.tried_assets,
            "flexcomp": "",
        }
        return joined(self.model, by_element.get(element, self.tried_assets), file)

    def final(self, element: str, file: str, *, strips_path: bool) -> str:
        """Where MuJoCo reads it in the end. ``file`` is absolute when the first place was not the right one."""
        if element == "model":
            return joined(self.model, file)
        folder = self.textures if element == "texture" else self.meshes
        return joined(self.model, folder, last(file) if strips_path else file)


def folders_of(tags: Iterable[Tag], model_folder: str) -> Folders:
    """What the compiler elements among those start tags say."""
    said = [tag for tag in tags if tag.name == "compiler"]
    meshes = textures = ""
    for tag in said:
        both = _value(tag, "assetdir")
        meshes = _first(_value(tag, "meshdir"), both, meshes)
        textures = _first(_value(tag, "texturedir"), both, textures)
    return Folders(
        model=model_folder,
        tried_assets=_newest(said, "assetdir"),
        tried_meshes=_newest(said, "meshdir"),
        tried_textures=_newest(said, "texturedir"),
        meshes=meshes,
        textures=textures,
        strips_path=_newest(said, "strippath") == "true",
    )


def references(tag: Tag, *, is_urdf: bool) -> Iterator[str]:
    """The attributes of a tag that name files: in a URDF, those of its meshes."""
    named = ("filename",) if tag.name == "mesh" else ()
    yield from (name for name in (named if is_urdf else _REFERENCES.get(tag.name, ())) if name in tag.attributes)


def _newest(tags: list[Tag], name: str) -> str:
    values = [value for tag in tags if (value := _value(tag, name)) is not None]
    return values[-1] if values else ""


def _value(tag: Tag, name: str) -> str | None:
    return tag.attributes[name].value if name in tag.attributes else None


def _first(*values: str | None) -> str:
    return next(value for value in values if value is not None)


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
