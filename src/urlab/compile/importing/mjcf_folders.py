"""Where MuJoCo looks for the files of an MJCF model, as `<compiler>` says."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from urlab.compile.importing.paths import is_absolute, joined, last
from urlab.compile.importing.xml_tags import Tag

FOLDER_ATTRIBUTES = ("assetdir", "meshdir", "texturedir", "strippath")

_CUBE_FACES = ("fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
REFERENCES = {
    "mesh": ("file",),
    "hfield": ("file",),
    "skin": ("file",),
    "texture": ("file", *_CUBE_FACES),
    "flexcomp": ("file",),
    "model": ("file",),
}
"""The attributes that name files, by element."""


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


def references(tag: Tag) -> Iterator[str]:
    """The attributes of a tag that name files."""
    yield from (name for name in REFERENCES.get(tag.name, ()) if name in tag.attributes)


def _newest(tags: list[Tag], name: str) -> str:
    values = [value for tag in tags if (value := _value(tag, name)) is not None]
    return values[-1] if values else ""


def _value(tag: Tag, name: str) -> str | None:
    return tag.attributes[name].value if name in tag.attributes else None


def _first(*values: str | None) -> str:
    return next(value for value in values if value is not None)
