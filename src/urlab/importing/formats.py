"""The file formats that can be imported: model files and mesh files. Declaring an `ImportFormat` registers it."""

import importlib.util
import json
import struct
from abc import ABC, abstractmethod
from dataclasses import asdict, replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import msgspec
import numpy as np

from urlab.errors import ChildFailed, ImportFailed
from urlab.importing.bundle import Bundle, Original, safe_file_name, unpacked
from urlab.importing.check import explanation
from urlab.importing.limited_process import LimitedProcess, ProcessLimits, python_module
from urlab.importing.mjcf_document import NotXml
from urlab.importing.model_rewriter import ModelRewriter
from urlab.importing.sources import SourceFiles, TooMuchText
from urlab.scene.blueprint_record import MODEL_SUFFIXES, BlueprintKind
from urlab.scene.names import legal_name
from urlab.scene.sidecar import SIDECAR_SUFFIX, sidecar_path


class ImportFormat(ABC):
    """A family of files that can be imported. Declaring a subclass registers it; no two share a suffix."""

    suffixes: ClassVar[tuple[str, ...]]
    """In lower case, with the dot."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for suffix in cls.suffixes:
            if suffix in _formats:
                raise TypeError(f"{cls.__name__} reads {suffix}, but {type(_formats[suffix]).__name__} does already")
        _formats.update(dict.fromkeys(cls.suffixes, cls()))

    @abstractmethod
    def read(self, source: Path, sources: SourceFiles) -> tuple[Bundle, Original | None]:
        """What the file becomes, and the model that the import must equal, if MuJoCo can read the file itself.

        Every file is read through ``sources``. ImportFailed says what cannot be used. Any thread may call this.
        """


_formats: dict[str, ImportFormat] = {}


def format_of(suffix: str) -> ImportFormat | None:
    """The format of files that end so, in lower case."""
    return _formats.get(suffix)


def suffixes() -> list[str]:
    """Those of all formats, sorted."""
    return sorted(_formats)


class ModelFormat(ImportFormat):
    """An MJCF or URDF file with every file that it refers to, and its sidecar."""

    suffixes = MODEL_SUFFIXES

    def read(self, source: Path, sources: SourceFiles) -> tuple[Bundle, Original]:
        """What only MuJoCo can judge, a missing mesh for one, is left for it to judge."""
        try:
            try:
                return model_bundle(source, sources)
            except TooMuchText:
                return _read_in_child(source, sources)
        except NotXml as broken:
            said = explanation(broken.text, sources.limits) if len(broken.text) <= _EXPLAINED_BYTES else None
            raise ImportFailed(f"{broken.path}: {said}" if said else str(broken)) from broken


_EXPLAINED_BYTES = 1 << 20
_READING_CHILD = python_module("urlab.importing.reading_child", "model")


def _read_in_child(source: Path, sources: SourceFiles) -> tuple[Bundle, Original]:
    """What `model_bundle` gives or raises, from a child process: tags take many times the memory of their text."""
    limits, roots = sources.limits, sources.roots
    task = {
        "source": str(source),
        "read": [str(root) for root in roots.read],
        "own_rights": roots.own_rights,
        "limits": asdict(limits),
    }
    child_limits = replace(limits, written_bytes=limits.total_bytes + 2 * limits.text_bytes)
    try:
        result = LimitedProcess(_READING_CHILD, json.dumps(task).encode(), child_limits).result()
    except ChildFailed as failed:
        raise ImportFailed(f"reading {source} failed: {failed}") from failed
    bundle, original = unpacked(source, result)
    return bundle, original or Original(source)


def model_bundle(source: Path, sources: SourceFiles) -> tuple[Bundle, Original]:
    """The import of a model file, and what to compare it with.

    ImportFailed when a file that it needs may not or cannot be read; NotXml when a text is none; TooMuchText when this
    process should not read it.
    """
    text = sources.read(str(source), "this import", is_text=True)
    if text is None:
        raise ImportFailed(f"there is no file {source}")
    rewriter = ModelRewriter(str(source), text, sources)
    stem = safe_file_name(source.stem)
    main = f"{stem}.urdf" if rewriter.is_urdf else f"{stem}.xml"
    files = {main: rewriter.text(), **rewriter.assets.files, **_sidecar(source, stem, sources)}
    bundle = Bundle(stem=source.stem, main=main, files=files, kind=BlueprintKind.MODEL)
    return bundle, Original(source, rewriter.urdf_files if rewriter.has_packages else {}, rewriter.missing)


def _sidecar(source: Path, stem: str, sources: SourceFiles) -> dict[str, bytes]:
    path = sidecar_path(source)
    content = sources.read(str(path), str(source))
    if content is not None and len(content) > MAX_SIDECAR_BYTES:
        raise ImportFailed(f"{path} is too large: a sidecar may have {MAX_SIDECAR_BYTES >> 10} KiB")
    return {} if content is None else {f"{stem}{SIDECAR_SUFFIX}": content}


MAX_SIDECAR_BYTES = 256 << 10
MAX_MESH_BYTES = 128 << 20

_CHILD = python_module("urlab.importing.mesh_child")
_CHILD_LIMITS = ProcessLimits(written_bytes=512 << 20, niceness=10)
_INSTALL = "pip install 'urlab-headless[mesh]'"
_STL_HEADER_BYTES, _STL_TRIANGLE_BYTES, _STL_MOST_TRIANGLES = 84, 50, 200_000
"""What MuJoCo reads: binary STL files of up to that many triangles."""


Rgba = tuple[float, float, float, float]


class MeshTask(msgspec.Struct):
    """``content`` is a file of type ``file_type`` (no dot); ``files`` are those that it refers to, by reference."""

    file_type: str
    content: bytes
    files: dict[str, bytes]


class MeshResult(msgspec.Struct):
    """``obj`` is an OBJ file, Z up; ``rgba`` the colour of the whole, if it has one and no more."""

    obj: bytes
    rgba: Rgba | None


class MeshFormat(ImportFormat):
    """STL, OBJ, GLB, glTF, PLY and OFF files, as static meshes."""

    suffixes = (".glb", ".gltf", ".obj", ".off", ".ply", ".stl")

    def read(self, source: Path, sources: SourceFiles) -> tuple[Bundle, None]:
        """There is no original: MuJoCo reads no mesh by itself."""
        return mesh_bundle(source, sources), None


def mesh_bundle(source: Path, sources: SourceFiles) -> Bundle:
    """The import of a mesh file; ImportFailed says why it cannot be.

    What MuJoCo reads itself is kept byte for byte; the rest becomes one OBJ mesh (see mesh_child: glTF files are
    turned from Y up to Z up), for which the extra ``mesh`` must be installed. The model has one body, named after the
    file, with the geom ``visual``: it is shown and takes no part in physics.
    """
    suffix, content = source.suffix.lower(), _read(source, sources, "this import")
    if suffix == ".obj" or (suffix == ".stl" and _is_native_stl(source, content)):
        mesh = MeshResult(content, None)
    else:
        mesh, suffix = _converted(source, content, sources), ".obj"
    stem = legal_name(source.stem)
    main, asset = f"{stem}.xml", f"assets/{stem}{suffix}"
    files = {main: _mjcf(stem, asset, mesh), asset: mesh.obj}
    return Bundle(stem=source.stem, main=main, files=files, kind=BlueprintKind.STATIC_MESH)


def _read(path: Path, sources: SourceFiles, wanted_by: str) -> bytes:
    content = sources.read(str(path), wanted_by)
    if content is None:
        raise ImportFailed(f"{path} does not exist, or is no file")
    if len(content) > MAX_MESH_BYTES:
        raise ImportFailed(f"{path} is too large: a mesh file may have {MAX_MESH_BYTES >> 20} MiB")
    return content


def _is_native_stl(source: Path, content: bytes) -> bool:
    if len(content) < _STL_HEADER_BYTES:
        return False
    (count,) = struct.unpack_from("<I", content, _STL_HEADER_BYTES - 4)
    if len(content) != _STL_HEADER_BYTES + count * _STL_TRIANGLE_BYTES or not 0 < count <= _STL_MOST_TRIANGLES:
        return False
    triangle = np.dtype([("normal", "<f4", 3), ("corners", "<f4", 9), ("attribute", "<u2")])
    if not np.isfinite(np.frombuffer(content, triangle, offset=_STL_HEADER_BYTES)["corners"]).all():
        raise ImportFailed(f"{source} has vertices that are not finite")
    return True


def _converted(source: Path, content: bytes, sources: SourceFiles) -> MeshResult:
    """Read by trimesh, in a child process: a file may ask for more memory and time than there is."""
    if importlib.util.find_spec("trimesh") is None:
        raise ImportFailed(f"reading {source.name} needs trimesh, which is not installed: {_INSTALL}")
    file_type = source.suffix.lower().removeprefix(".")
    files = _referred(source, content, sources) if file_type == "gltf" else {}
    task = msgspec.msgpack.encode(MeshTask(file_type, content, files))
    try:
        result = LimitedProcess(_CHILD, task, _CHILD_LIMITS).result()
        return msgspec.msgpack.decode(result, type=MeshResult)
    except (ChildFailed, msgspec.MsgspecError) as failed:
        raise ImportFailed(f"{source} cannot be used as a mesh: {failed}") from failed


class _Buffer(msgspec.Struct):
    uri: str = "data:"


class _Gltf(msgspec.Struct):
    buffers: list[_Buffer] = []


def _referred(source: Path, content: bytes, sources: SourceFiles) -> dict[str, bytes]:
    """The files that hold a glTF's geometry, by the reference that it uses for them; pictures are not needed."""
    try:
        gltf = msgspec.json.decode(content, type=_Gltf)
    except msgspec.MsgspecError as broken:
        raise ImportFailed(f"{source} is not a glTF file: {broken}") from broken
    references = dict.fromkeys(one.uri for one in gltf.buffers if not one.uri.startswith("data:"))
    files: dict[str, bytes] = {}
    for reference in references:
        files[reference] = _read(source.parent / unquote(reference), sources, str(source))
        if sum(map(len, files.values())) > MAX_MESH_BYTES:
            raise ImportFailed(f"{source} refers to more than {MAX_MESH_BYTES >> 20} MiB of geometry")
    return files


def _mjcf(stem: str, asset: str, mesh: MeshResult) -> bytes:
    """Inertia "shell" asks the least of a mesh: it may be open, flat or inside out."""
    root = ET.Element("mujoco", model=stem)
    ET.SubElement(ET.SubElement(root, "asset"), "mesh", name=stem, file=asset, inertia="shell")
    body = ET.SubElement(ET.SubElement(root, "worldbody"), "body", name=stem)
    geom = {"name": "visual", "type": "mesh", "mesh": stem, "group": "2", "contype": "0", "conaffinity": "0"}
    if mesh.rgba is not None:
        geom["rgba"] = " ".join(f"{one:g}" for one in mesh.rgba)
    ET.SubElement(body, "geom", geom, mass="0")
    ET.indent(root)
    return ET.tostring(root) + b"\n"
