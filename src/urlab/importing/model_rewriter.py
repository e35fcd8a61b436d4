"""Makes a model self-contained: includes become part of the text, files are named where the import keeps them."""

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from urlab.compile.urdf import mesh_places
from urlab.errors import ImportFailed
from urlab.importing.bundle import AssetFiles
from urlab.importing.mjcf_document import (
    FOLDER_ATTRIBUTES,
    Document,
    Folders,
    add_includes,
    checked,
    folders_of,
    is_absolute,
    joined,
    last,
    read_document,
    references,
)
from urlab.importing.sources import SourceFiles
from urlab.importing.xml_tags import Edit, Tag, edited

_NAMED_AFTER_FILE = ("mesh", "hfield", "skin", "texture")
_MOST_NESTED = 20
_MISSING = "missing"
"""The folder, which no import has, where visuals without a file are said to be."""


@dataclass(frozen=True, slots=True)
class _Model:
    """One model on its way into the import.

    ``home`` is the folder where the import keeps its text; ``chain`` are the models that lead to it, itself last.
    """

    folders: Folders
    home: str
    chain: tuple[str, ...]
    is_urdf: bool


class ModelRewriter:
    """Rewrites one model with everything that it refers to; what it refers to becomes an asset.

    ``urdf_files`` maps what a URDF calls its meshes to files, and ``has_packages`` tells whether MuJoCo alone would
    not find them all. ``missing`` has the files that are not there, each with the place that names it.
    """

    def __init__(self, path: str, text: bytes, sources: SourceFiles) -> None:
        self.assets = AssetFiles()
        self.urdf_files: dict[str, str] = {}
        self.has_packages = False
        self.missing: dict[str, str] = {}
        self._sources = sources
        self._document = _whole_document(path, text, sources)
        self._strips_path = _folders(self._document).strips_path  # when MuJoCo compiles, it asks the outermost model

    @property
    def is_urdf(self) -> bool:
        """Whether the model is a URDF."""
        return _is_urdf(self._document)

    def text(self) -> bytes:
        """The model as the import keeps it; the assets are known from then on."""
        return self._whole(self._document, "", ())

    def _whole(self, document: Document, home: str, chain: tuple[str, ...]) -> bytes:
        model = _Model(_folders(document), home, (*chain, document.path), _is_urdf(document))
        return self._rewritten(document, model, 0, len(document.text))

    def _rewritten(self, document: Document, model: _Model, start: int, end: int) -> bytes:
        edits: list[Edit] = []
        visuals = _in_visuals(document.tags) if model.is_urdf else set()
        for index, tag in enumerate(document.tags):
            if index in document.included:
                inner = document.included[index]
                text = self._rewritten(inner, model, inner.tags[0].end, inner.tags[-1].start)
                end_tag = tag if tag.is_empty else document.tags[index + 1]
                edits.append(Edit(tag.start, end_tag.end, text))
            elif tag.name == "compiler":
                edits += [tag.attributes[name].removed() for name in FOLDER_ATTRIBUTES if name in tag.attributes]
            elif not tag.is_end:
                edits += self._moved(tag, document, model, is_visual=index in visuals)
        return edited(document.text, edits, start, end)

    def _moved(self, tag: Tag, document: Document, model: _Model, *, is_visual: bool) -> list[Edit]:
        """The edits that name files where the import keeps them.

        A visual of a URDF whose file is not there keeps no path that could lead anywhere: compiling leaves it out.
        """
        edits: list[Edit] = []
        for attribute in references(tag, is_urdf=model.is_urdf):
            file, where = tag.attributes[attribute].value, f"line {tag.line} of {document.path}"
            if model.is_urdf:
                path = self._urdf_path(file, where, model, is_needed=not is_visual)
            else:
                path = self._path(tag, file, where, document, model)
            if path is None and is_visual:
                edits.append(tag.attributes[attribute].with_value(f"{_MISSING}/{posixpath.basename(file)}"))
                continue
            if path is None:
                self.missing.setdefault(file, where)
                continue
            name = self._asset(tag, path, file, model)
            edits.append(tag.attributes[attribute].with_value(posixpath.relpath(name, model.home or ".")))
            edits += explicit_name(tag, attribute, file, name)
        return edits

    def _path(self, tag: Tag, file: str, where: str, document: Document, model: _Model) -> str | None:
        """Where MuJoCo finds a file, or None when it does not: then it says so itself."""
        if not file:
            return None
        tried = model.folders.tried(tag.name, file)
        is_beside_model = tried is not None and self._sources.exists(tried, where)
        if document.folder is not None and not is_beside_model and not is_absolute(file):
            file = joined(document.folder, file)
        strips_path = model.folders.strips_path if tag.name == "flexcomp" else self._strips_path
        path = checked(model.folders.final(tag.name, file, strips_path=strips_path), file, document.path)
        return path if self._sources.exists(path, where) else None

    def _urdf_path(self, file: str, where: str, model: _Model, *, is_needed: bool) -> str | None:
        """Where a mesh is; None when MuJoCo may complain about it. ImportFailed when a needed package is not there."""
        path: str | None = model.folders.final("mesh", file, strips_path=self._strips_path)
        if path is None or not path.startswith("/") or not self._sources.exists(path, where):
            path = self._elsewhere(file, where, model, is_needed=is_needed)
            self.has_packages = True
        if path is not None:
            self.urdf_files[file] = path
        return path

    def _elsewhere(self, file: str, where: str, model: _Model, *, is_needed: bool) -> str | None:
        """Where a mesh is that MuJoCo does not find."""
        folder, (scheme, _, rest) = model.folders.model, file.partition("://")
        for path in mesh_places(file, folder, joined(folder, model.folders.meshes)):
            if (scheme == "file" or self._sources.may_read(path)) and self._sources.exists(path, where):
                return path
        if is_needed and scheme in ("package", "model"):
            raise ImportFailed(
                f"{where} refers to {file!r}, which cannot be found: neither above {folder} nor beside a folder "
                f"above it is a folder {rest.partition('/')[0]!r} with that file where it may be read"
            )
        return None

    def _asset(self, tag: Tag, path: str, file: str, model: _Model) -> str:
        name = self.assets.known(path, file)
        if name is None:
            name = self.assets.take(path, file)
            content = self._sources.read(path, model.chain[-1]) or b""
            is_text = tag.name == "model" and content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
            if is_text:
                self._sources.take_text(path, len(content))
            self.assets.files[name] = self._sub_model(path, content, name, model) if is_text else content
        return name

    def _sub_model(self, path: str, text: bytes, name: str, model: _Model) -> bytes:
        if path in model.chain:
            raise ImportFailed(f"{model.chain[-1]} needs the model {path}, which needs {model.chain[-1]} itself")
        if len(model.chain) > _MOST_NESTED:
            raise ImportFailed(f"{model.chain[0]} nests models more than {_MOST_NESTED} deep")
        return self._whole(_whole_document(path, text, self._sources), posixpath.dirname(name), model.chain)


def _whole_document(path: str, text: bytes, sources: SourceFiles) -> Document:
    document = read_document(path, text)
    if not _is_urdf(document):
        add_includes(document, joined(path, ".."), sources)
    return document


def _folders(document: Document) -> Folders:
    return folders_of(document.all_tags(), joined(document.path, ".."))


def _is_urdf(document: Document) -> bool:
    return document.root.lower() == "robot"


def explicit_name(tag: Tag, attribute: str, file: str, name: str) -> list[Edit]:
    """The name that MuJoCo took from the file, when the import's file would give it another one."""
    implied = posixpath.splitext(last(file))[0]
    is_needed = tag.name in _NAMED_AFTER_FILE and attribute == "file" and "name" not in tag.attributes
    return [tag.with_attribute("name", implied)] if is_needed and implied != posixpath.splitext(last(name))[0] else []


def _in_visuals(tags: Iterable[Tag]) -> set[int]:
    """The indices of the tags that stand inside a ``visual`` of a URDF."""
    inside, depth = set(), 0
    for index, tag in enumerate(tags):
        if tag.name == "visual" and not tag.is_empty:
            depth += -1 if tag.is_end else 1
        elif depth > 0:
            inside.add(index)
    return inside
