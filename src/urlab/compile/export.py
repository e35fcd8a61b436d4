"""A compiled scene as files and bytes: for debugging, and for clients that load the model themselves."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import mujoco
import numpy as np

from urlab.compile.bind import owner_of
from urlab.compile.compiled_scene import CompiledScene

_TEXTURE_FILES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
_FILES_OF = {"mesh": ("file",), "hfield": ("file",), "skin": ("file",), "texture": _TEXTURE_FILES}


def export_mjcf(scene: CompiledScene) -> tuple[str, dict[str, bytes]]:
    """The scene as XML that compiles to the same model, and every file it needs under a bare, unique name.

    The caller holds the physics lock: the options written are those in force.
    """
    _copy_options(scene.model.opt, scene.spec.option)
    root = _parsed(_exact_xml(scene.spec))
    bundle = _Bundle()
    _point_to_files(root, scene, bundle.add)
    return ET.tostring(root, encoding="unicode"), bundle.contents


def save_debug_files(scene: CompiledScene, folder: Path) -> list[Path]:
    """Write ``scene_compiled.xml`` (values as compiled, files by full path) and ``scene_compiled.mjb``; returns where."""
    folder.mkdir(parents=True, exist_ok=True)
    xml, mjb = folder / "scene_compiled.xml", folder / "scene_compiled.mjb"
    root = _parsed(_xml(scene.spec))
    _point_to_files(root, scene, lambda path: str(path.absolute()))
    xml.write_text(ET.tostring(root, encoding="unicode"), encoding="utf-8")
    mujoco.mj_saveModel(scene.model, str(mjb))
    return [xml, mjb]


def _copy_options(source: Any, target: Any) -> None:
    for name in (name for name in dir(source) if not name.startswith("_")):
        value = getattr(source, name)
        if isinstance(value, np.ndarray):
            getattr(target, name)[:] = value
        else:
            setattr(target, name, value)


def _exact_xml(spec: Any) -> str:
    """With every digit: values as compiled would be rounded to six."""
    spec.compiler.savecompiled = False
    try:
        return _xml(spec)
    finally:
        spec.compiler.savecompiled = True


def _xml(spec: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were reported when the scene was compiled
        return str(spec.to_xml())


def _parsed(xml: str) -> ET.Element:
    root = ET.fromstring(xml)
    for sensor in root.iterfind("sensor/user"):
        if "objtype" not in sensor.attrib:
            sensor.attrib.pop("objname", None)  # an attached one that watches nothing carries the bare prefix here
    return root


def _point_to_files(root: ET.Element, scene: CompiledScene, name_of: Callable[[Path], str]) -> None:
    """Replace every reference to a file by what ``name_of`` calls that file."""
    folders = {one.actor.name: _AssetFolders(one.blueprint.spec) for one in scene.placed}
    for element, attribute in _file_references(root):
        owner = owner_of(element.get("name", ""), frozenset(folders))
        if owner is not None:
            element.set(attribute, name_of(folders[owner].path(element.tag, element.attrib[attribute])))


def _file_references(root: ET.Element) -> Iterator[tuple[ET.Element, str]]:
    for tag, attributes in _FILES_OF.items():
        for element in root.iter(tag):
            for attribute in attributes:
                if element.get(attribute):
                    yield element, attribute


class _AssetFolders:
    """Where one model file keeps what it refers to."""

    def __init__(self, spec: Any) -> None:
        base = Path(spec.modelfiledir)
        self._meshes: Path = base / str(spec.meshdir)
        self._textures: Path = base / str(spec.texturedir)
        self._strip = bool(spec.strippath)

    def path(self, tag: str, reference: str) -> Path:
        """The file behind a reference; an absolute one stays what it is."""
        folder = self._textures if tag == "texture" else self._meshes
        return folder / (Path(reference).name if self._strip else reference)


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


def _unused(path: Path, taken: Mapping[str, bytes]) -> str:
    name, number = path.name, 2
    while name in taken:
        name, number = f"{path.stem}_{number}{path.suffix}", number + 1
    return name
