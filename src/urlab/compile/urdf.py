"""URDF files: read by MuJoCo, with visuals and fixed links kept, and with their meshes found where authors put them.

Stock MuJoCo discards visuals, so that it never looks at their files. Here a visual that cannot be used is left out, and
said to be.
"""

import importlib
import importlib.util
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

INSTALL_MESH = "pip install 'urlab-headless[mesh]'"
MUJOCO_ERRORS = (ValueError, OSError, mujoco.FatalError, mujoco.UnexpectedError)

_COLLADA = ".dae"
_NO_MARKUP = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
_FIRST_TAG = re.compile(r"<([A-Za-z_][\w:.-]*)[^>]*?(/?)>")
_EXTENSION = re.compile(r"<mujoco\b[^>]*?(/?)>")
_COMPILER = re.compile(r"<compiler\b([^>]*)>")
_KEEP = ("discardvisual", "fusestatic")
_PACKAGE = re.compile(r"(?:package|model)://([^/]+)/(.+)", re.DOTALL)
_FILE = "file://"
_VISUAL_GROUP = 1
_NOWHERE = "missing/mesh"
"""A file that no model has."""


def read_urdf(path: Path, files: Mapping[str, str] | None = None) -> Any:
    """The file as a spec, its meshes found; None when it is no URDF, or none that can be read.

    ``files`` says where the meshes are, by reference, for a caller that knows; a mesh that it leaves out is nowhere.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None  # MuJoCo says it better
    settled = _keeping_visuals(text)
    if settled is None:
        return None
    spec = mujoco.MjSpec.from_string(settled)
    spec.modelfiledir = str(path.parent)
    if files is None:
        _find_meshes(spec, path.parent)
    else:
        _use_meshes(spec, {mesh.name: files.get(mesh.file, _NOWHERE) for mesh in spec.meshes})
    return spec


def _keeping_visuals(text: str) -> str | None:
    """The text, on the same lines, with the settings that keep visuals and fixed links, unless the author has others.

    None when it is no URDF.
    """
    bare = _NO_MARKUP.sub(lambda match: " " * len(match[0]), text)
    robot = _FIRST_TAG.search(bare)
    if robot is None or robot[1] != "robot" or robot[2]:
        return None
    flags = " ".join(f'{flag}="false"' for flag in _KEEP)
    extension = _EXTENSION.search(bare, robot.end())
    if extension is None or extension[1]:
        start, end = (robot.end(), robot.end()) if extension is None else extension.span()
        return f"{text[:start]}<mujoco><compiler {flags}/></mujoco>{text[end:]}"
    compiler = _COMPILER.search(bare, extension.end(), bare.find("</mujoco", extension.end()))
    if compiler is None:
        return f"{text[: extension.end()]}<compiler {flags}/>{text[extension.end() :]}"
    unsaid = " ".join(f'{flag}="false"' for flag in _KEEP if flag not in compiler[1])
    return f"{text[: compiler.start(1)]} {unsaid}{text[compiler.start(1) :]}"


def mesh_places(reference: str, model_folder: str, mesh_folder: str) -> Iterator[str]:
    """Where a mesh may be that is not where MuJoCo looks for it: absolute paths, the likeliest first.

    A package is a folder of that name which holds the URDF or stands beside a folder that does. Failing that, the
    rest of the URI is looked for beside the URDF, and last the bare file name, in the mesh folder and beside the URDF.
    """
    match = _PACKAGE.fullmatch(reference)
    if match is not None:
        above = [model_folder, *(str(one) for one in Path(model_folder).parents)]
        yield from (_joined(folder, match[2]) for folder in above if posixpath.basename(folder) == match[1])
        yield from (_joined(folder, match[1], match[2]) for folder in above)
        yield _joined(model_folder, match[2])
    elif reference.startswith(_FILE):
        yield _joined("/", reference.removeprefix(_FILE))
    yield from (_joined(folder, posixpath.basename(reference)) for folder in (mesh_folder, model_folder))


def _joined(*parts: str) -> str:
    return posixpath.normpath(posixpath.join(*parts))


def _find_meshes(spec: Any, folder: Path) -> None:
    """Let every mesh name its file in full, when MuJoCo would not find all of them."""
    mesh_folder = folder / spec.meshdir
    found: dict[str, str | None] = {}
    for mesh in spec.meshes:
        name = posixpath.basename(mesh.file) if spec.strippath else mesh.file
        places = [str(mesh_folder / name), *mesh_places(mesh.file, str(folder), str(mesh_folder))]
        found[mesh.name] = next((place for place in places if _is_file(place)), None)
    if any(path != str(mesh_folder / spec.mesh(name).file) for name, path in found.items()):
        _use_meshes(spec, found)
    else:
        _read_collada(spec, found)


def _use_meshes(spec: Any, found: Mapping[str, str | None]) -> None:
    """Let the meshes, by name, be those files; one that was not found keeps its reference."""
    spec.strippath = False
    for mesh in spec.meshes:
        mesh.file = found[mesh.name] or mesh.file
    _read_collada(spec, found)


def _read_collada(spec: Any, found: Mapping[str, str | None]) -> None:
    for mesh in spec.meshes:
        path = found[mesh.name]
        if path is not None and path.lower().endswith(_COLLADA) and _reads_collada():
            _take_collada(mesh, Path(path))


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _reads_collada() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("trimesh", "collada"))


def _take_collada(mesh: Any, path: Path) -> None:
    """Write the triangles of a Collada file into the mesh, in metres; the axes stay, as in other URDF readers.

    A file that cannot be read stays what it is: a file that MuJoCo refuses.
    """
    trimesh: Any = importlib.import_module("trimesh")
    try:
        with path.open("rb") as file:
            scene = trimesh.load_scene(file, file_type="dae", process=False)
        whole = scene.to_geometry()
        points = np.asarray(whole.vertices, np.float64) * _metres(whole)
        faces = np.asarray(whole.faces, np.int64)
    except Exception:  # noqa: BLE001 - whatever trimesh and its parsers make of a broken file
        return
    if len(faces) and np.isfinite(points).all():
        mesh.file = ""
        mesh.uservert, mesh.userface = points.ravel(), faces.ravel()


def _metres(whole: Any) -> float:
    """The unit of a Collada file, which trimesh gives as ``0.01 * meters`` or ``meters``."""
    number, star, _ = str(whole.metadata.get("units") or whole.units or "meters").partition("*")
    return float(number) if star else 1.0


def leave_out_unusable_visuals(spec: Any) -> list[str]:
    """Take visuals away that MuJoCo refuses, in place; what was left out, and why.

    A flat one only needs an inertia that asks for no volume, which it gets.
    """
    if _problem(spec.copy()) is None:
        return []
    notes: list[str] = []
    colliding = {geom.meshname for geom in spec.geoms if not _is_visual(geom)}
    for geom in [geom for geom in spec.geoms if _is_visual(geom)]:
        problem = _problem_of(spec, geom)
        if problem is not None and geom.meshname and geom.meshname not in colliding:
            spec.mesh(geom.meshname).inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
            problem = _problem_of(spec, geom)
        if problem is not None:
            shown = f" ({spec.mesh(geom.meshname).file or geom.meshname})" if geom.meshname else ""
            notes.append(f"a visual of link {geom.parent.name!r}{shown} is left out: {with_remedy(problem)}")
            spec.delete(geom)
    used = {geom.meshname for geom in spec.geoms}
    for mesh in [mesh for mesh in spec.meshes if mesh.name not in used]:
        spec.delete(mesh)
    return notes


def with_remedy(problem: str) -> str:
    """MuJoCo's words, and for a Collada file what would help."""
    if _COLLADA not in problem.lower():
        return problem
    if _reads_collada():
        return f"{problem} (and it cannot be read as Collada; convert it to OBJ or STL)"
    return f"{problem} (Collada files are read with {INSTALL_MESH}; or convert it to OBJ or STL)"


def _is_visual(geom: Any) -> bool:
    return int(geom.group) == _VISUAL_GROUP and not geom.contype and not geom.conaffinity


def _problem(spec: Any) -> str | None:
    """What MuJoCo says against a spec, on one line, or None."""
    try:
        spec.compile()
    except MUJOCO_ERRORS as refused:
        return " ".join(str(refused).removeprefix("Error: ").split("\n")[0].split())
    return None


def _problem_of(spec: Any, geom: Any) -> str | None:
    """What MuJoCo says against one geom and its mesh."""
    trial = mujoco.MjSpec()
    trial.modelfiledir, trial.meshdir, trial.strippath = spec.modelfiledir, spec.meshdir, spec.strippath
    if geom.meshname:
        mesh = spec.mesh(geom.meshname)
        copy = trial.add_mesh(name=mesh.name, file=mesh.file, scale=mesh.scale, inertia=mesh.inertia)
        copy.uservert, copy.userface = mesh.uservert, mesh.userface
    trial.worldbody.add_geom(type=geom.type, size=geom.size, meshname=geom.meshname, contype=0, conaffinity=0)
    return _problem(trial)
