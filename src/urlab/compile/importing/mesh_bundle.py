"""A mesh file becomes an import that is shown, and that quick convert can give physics to."""

import importlib.util
import struct
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import msgspec
import numpy as np

from urlab.compile.decomposition.child_run import ChildFailed, ChildRun
from urlab.compile.importing.bundle import Bundle
from urlab.compile.importing.mesh_reader import MeshResult, MeshTask
from urlab.config import FileRoots
from urlab.errors import ImportFailed, known
from urlab.scene.actor_names import legal_name
from urlab.scene.blueprint_record import BlueprintKind

MESH_SUFFIXES = frozenset({".stl", ".obj", ".glb", ".gltf", ".ply", ".off"})
MAX_MESH_BYTES = 128 << 20

_CHILD = "urlab.compile.importing.mesh_child"
_TIME_LIMIT_S = 60.0
_INSTALL = "pip install 'urlab-headless[mesh]'"
_STL_HEADER_BYTES, _STL_TRIANGLE_BYTES, _STL_MOST_TRIANGLES = 84, 50, 200_000
"""What MuJoCo reads: binary STL files of up to that many triangles."""


def mesh_bundle(source: Path, roots: FileRoots) -> Bundle:
    """A static mesh from an STL, OBJ, GLB, glTF, PLY or OFF file; ImportFailed says why it cannot be.

    What MuJoCo reads itself is kept byte for byte; the rest becomes one OBJ mesh (see mesh_reader: glTF files are
    turned from Y up to Z up), for which the extra ``mesh`` must be installed. The model has one body, named after the
    file, with the geom ``visual``: it is shown and takes no part in physics.
    """
    suffix, content = source.suffix.lower(), _read(source, roots)
    if suffix not in MESH_SUFFIXES:
        raise ImportFailed(f"{source} is no mesh file; those end in {known(MESH_SUFFIXES)}")
    if suffix == ".obj" or (suffix == ".stl" and _is_native_stl(source, content)):
        mesh = MeshResult(content, None)
    else:
        mesh, suffix = _converted(source, content, roots), ".obj"
    stem = legal_name(source.stem)
    main, asset = f"{stem}.xml", f"assets/{stem}{suffix}"
    files = {main: _mjcf(stem, asset, mesh), asset: mesh.obj}
    return Bundle(stem=source.stem, main=main, files=files, kind=BlueprintKind.STATIC_MESH)


def _read(path: Path, roots: FileRoots) -> bytes:
    if not roots.may_read(path):
        raise ImportFailed(f"{path} may not be read here: --model-root {path.parent} would allow it")
    try:
        if not path.is_file():
            raise ImportFailed(f"{path} does not exist, or is no file")
        if path.stat().st_size > MAX_MESH_BYTES:
            raise ImportFailed(f"{path} is too large: a mesh file may have {MAX_MESH_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as refused:
        raise ImportFailed(f"{path} cannot be read: {refused.strerror or refused}") from refused


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


def _converted(source: Path, content: bytes, roots: FileRoots) -> MeshResult:
    """Read by trimesh, in a child process: a file may ask for more memory and time than there is."""
    if importlib.util.find_spec("trimesh") is None:
        raise ImportFailed(f"reading {source.name} needs trimesh, which is not installed: {_INSTALL}")
    file_type = source.suffix.lower().removeprefix(".")
    files = _referred(source, content, roots) if file_type == "gltf" else {}
    task = msgspec.msgpack.encode(MeshTask(file_type, content, files))
    try:
        result = ChildRun(_CHILD).result(task, _TIME_LIMIT_S)
        return msgspec.msgpack.decode(result, type=MeshResult)
    except (ChildFailed, OSError, msgspec.MsgspecError) as failed:
        raise ImportFailed(f"{source} cannot be used as a mesh: {failed}") from failed


class _Buffer(msgspec.Struct):
    uri: str = "data:"


class _Gltf(msgspec.Struct):
    buffers: list[_Buffer] = []


def _referred(source: Path, content: bytes, roots: FileRoots) -> dict[str, bytes]:
    """The files that hold a glTF's geometry, by the reference that it uses for them; pictures are not needed."""
    try:
        gltf = msgspec.json.decode(content, type=_Gltf)
    except msgspec.MsgspecError as broken:
        raise ImportFailed(f"{source} is not a glTF file: {broken}") from broken
    references = dict.fromkeys(one.uri for one in gltf.buffers if not one.uri.startswith("data:"))
    files: dict[str, bytes] = {}
    for reference in references:
        files[reference] = _read(source.parent / unquote(reference), roots)
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
