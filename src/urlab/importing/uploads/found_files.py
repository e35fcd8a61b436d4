"""Files of an archive that are not where its model says: MuJoCo finds them by their bare names.

`MjSpec.to_zip` writes one model, which looks for its assets in the folders of its compiler element, and the assets
under the names that its caller gave them. On disk such a model finds nothing, until it says where its files are.
"""

import posixpath
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from urlab.importing.mjcf_document import FOLDER_ATTRIBUTES, Folders, folders_of, last, references
from urlab.importing.model_rewriter import explicit_name
from urlab.importing.xml_tags import BrokenXml, Edit, Tag, edited, tags

_TOP = "/archive/"
"""Where an archive is said to be while its model is looked at."""

_MOST_BYTES = 4 << 20
_MOST_TAGS = 20_000
"""Far above what `to_zip` writes: a model of more text, or with more tags that name files, stays as it is."""


def name_found_files(folder: Path, model: Path, paths: Sequence[str]) -> None:
    """Let a model say where its files are, if some of them are found by their bare names only.

    ``model`` and ``paths``, all files of the archive, are relative to the folder. A model that finds its files, one
    that includes others, and one that is no XML, stays as it is.
    """
    if (folder / model).stat().st_size > _MOST_BYTES:
        return
    by_name = {last(path).casefold(): path for path in sorted(paths, key=lambda one: one.count("/"), reverse=True)}
    changed = _changed((folder / model).read_bytes(), model.as_posix(), frozenset(paths), by_name)
    if changed is not None:
        (folder / model).write_bytes(changed)


def _changed(text: bytes, model: str, paths: frozenset[str], by_name: dict[str, str]) -> bytes | None:
    """The model with other names for its files; None when those that it has will do."""
    try:
        naming = list(islice((tag for tag in tags(text) if not tag.is_end and _names_files(tag)), _MOST_TAGS + 1))
    except BrokenXml:
        return None
    if len(naming) > _MOST_TAGS or any(_is_include(tag) for tag in naming):
        return None
    home = posixpath.dirname(model)
    folders, edits, is_needed = folders_of(naming, f"{_TOP}{home}"), list[Edit](), False
    for tag in naming:
        edits += [tag.attributes[name].removed() for name in _folders_named(tag)]
        for attribute in references(tag, is_urdf=False):
            file = tag.attributes[attribute].value
            at_place = _place(folders, tag, file)
            found = at_place if at_place in paths else by_name.get(last(file).casefold())
            if file and found is not None:
                is_needed = is_needed or found != at_place
                edits.append(tag.attributes[attribute].with_value(posixpath.relpath(found, home or ".")))
                edits += explicit_name(tag, attribute, file, found)
    return edited(text, edits) if is_needed else None


def _names_files(tag: Tag) -> bool:
    return tag.name == "compiler" or _is_include(tag) or any(True for _ in references(tag, is_urdf=False))


def _is_include(tag: Tag) -> bool:
    return tag.name.lower() == "include"


def _folders_named(tag: Tag) -> list[str]:
    return [name for name in FOLDER_ATTRIBUTES if name in tag.attributes] if tag.name == "compiler" else []


def _place(folders: Folders, tag: Tag, file: str) -> str:
    """Where a model looks for a file, from the top of the archive; of no file of it when that is elsewhere."""
    return folders.final(tag.name, file, strips_path=folders.strips_path).removeprefix(_TOP)
