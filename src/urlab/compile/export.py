"""A compiled scene as files and bytes: for debugging, and for clients that load the model themselves."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import mujoco

from urlab.compile.bind import owner_of
from urlab.compile.compiled_scene import CompiledScene
from urlab.mujoco_versions import present
from urlab.physics.engine import mujoco_warnings
from urlab.physics.options import read_all, write_all

_TEXTURE_FILES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_LOADED = {
    "mesh": (mujoco.mjtObj.mjOBJ_MESH, "mesh_pathadr"),
    "hfield": (mujoco.mjtObj.mjOBJ_HFIELD, "hfield_pathadr"),
    "skin": (mujoco.mjtObj.mjOBJ_SKIN, "skin_pathadr"),
    "texture": (mujoco.mjtObj.mjOBJ_TEXTURE, "tex_pathadr"),
}
_OLDER_SIZES = ("njmax", "nconmax", "nstack")
_FILES_OF = {"mesh": ("file",), "hfield": ("file",), "skin": ("file",), "texture": _TEXTURE_FILES}


def export_mjcf(scene: CompiledScene) -> tuple[str, dict[str, bytes]]:
    """The scene as XML that compiles to the same model, and every file it needs under a bare, unique name.

    The caller holds the engine's model lock: the options written are those in force.
    """
    write_all(scene.spec.option, read_all(scene.model.opt))
    root = _parsed(_exact_xml(scene.spec))
    bundle = _Bundle()
    _point_to_files(root, scene, bundle.add)
    return ET.tostring(root, encoding="unicode"), bundle.contents


def save_debug_files(scene: CompiledScene, folder: Path) -> list[Path]:
    """Write ``scene_compiled.xml`` and ``scene_compiled.mjb``; returns where.

    The XML has values as compiled, rounded to six digits, and names files by their full path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    xml, mjb = folder / "scene_compiled.xml", folder / "scene_compiled.mjb"
    root = _parsed(_xml(scene.spec))
    _point_to_files(root, scene, lambda path: str(path.absolute()))
    xml.write_text(ET.tostring(root, encoding="unicode"), encoding="utf-8")
    mujoco.mj_saveModel(scene.model, str(mjb))
    return [xml, mjb]


def _exact_xml(spec: Any) -> str:
    """With every digit: values as compiled would be rounded to six."""
    if not present(spec.compiler, "savecompiled"):
        return _xml(spec)
    spec.compiler.savecompiled = False
    try:
        return _xml(spec)
    finally:
        spec.compiler.savecompiled = True


def _xml(spec: Any) -> str:
    with mujoco_warnings():  # they were reported when the scene was compiled
        return str(spec.to_xml())


def _parsed(xml: str) -> ET.Element:
    root = ET.fromstring(xml)
    for sensor in root.iterfind("sensor/user"):
        if "objtype" not in sensor.attrib:
            sensor.attrib.pop("objname", None)  # an attached one that watches nothing carries the bare prefix here
    for size in root.findall("size"):
        older = {name: size.attrib.pop(name) for name in _OLDER_SIZES if {"memory", name} <= set(size.keys())}
        if older:  # one element may not have both, but a model of several parts may
            ET.SubElement(root, "size", older)
    return root


def _point_to_files(root: ET.Element, scene: CompiledScene, name_of: Callable[[Path], str]) -> None:
    """Replace every reference to a file by what ``name_of`` calls that file."""
    folders = {
        one.actor.name: Path(one.blueprint.spec.modelfiledir) / one.blueprint.spec.texturedir for one in scene.placed
    }
    for element, attribute in _file_references(root):
        name = element.get("name", "")
        owner = owner_of(name, frozenset(folders))
        path = _loaded_from(scene.model, element.tag, name) if attribute == "file" else None
        if path is None and owner is not None:
            path = folders[owner] / element.attrib[attribute]
        if path is not None:
            element.set(attribute, name_of(path))


def _loaded_from(model: Any, tag: str, name: str) -> Path | None:
    """The file that an asset was compiled from."""
    kind, addresses = _LOADED[tag]
    index = mujoco.mj_name2id(model, kind, name)
    start = int(getattr(model, addresses)[index]) if index >= 0 else -1
    return Path(os.fsdecode(model.paths[start : model.paths.index(b"\0", start)])) if start >= 0 else None


def _file_references(root: ET.Element) -> Iterator[tuple[ET.Element, str]]:
    for tag, attributes in _FILES_OF.items():
        for element in root.iter(tag):
            for attribute in attributes:
                if element.get(attribute):
                    yield element, attribute


@dataclass
class _Bundle:
    contents: dict[str, bytes] = field(default_factory=dict)
    _names: dict[Path, str] = field(default_factory=dict)

    def add(self, path: Path) -> str:
        """Take a file in; returns the bare name that it got."""
        if path not in self._names:
            name = _unused(path, self.contents)
            self.contents[name] = path.read_bytes()
            self._names[path] = name
        return self._names[path]


def _unused(path: Path, taken: Iterable[str]) -> str:
    """A bare name that differs from the taken ones in more than case."""
    name, number, used = path.name, 2, {one.lower() for one in taken}
    while name.lower() in used:
        name, number = f"{path.stem}_{number}{path.suffix}", number + 1
    return name
