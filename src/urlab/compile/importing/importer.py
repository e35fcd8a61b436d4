"""A file becomes an import, whatever kind of file it is."""

from dataclasses import replace
from pathlib import Path

from urlab.compile.importing.bundle import Bundle
from urlab.compile.importing.check import explanation
from urlab.compile.importing.keeper import keep
from urlab.compile.importing.limits import DEFAULT_LIMITS, Limits
from urlab.compile.importing.mjcf_document import NotXml
from urlab.compile.importing.model_bundle import Original, model_bundle
from urlab.compile.importing.sources import Sources
from urlab.config import FileRoots
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import MODEL_SUFFIXES, BlueprintRecord
from urlab.scene.project import Project


def import_file(
    source: Path, project: Project, roots: FileRoots, *, force: bool = False, limits: Limits = DEFAULT_LIMITS
) -> tuple[BlueprintRecord, bool]:
    """Bring a model (.xml .mjcf .urdf) or mesh (.stl .obj .glb .gltf .ply .off) into the project.

    The bool tells whether it was imported by this call: a file that has not changed is not imported again, unless
    ``force`` asks for it. Nothing outside ``roots`` is read, the models that are shipped excepted. ImportFailed says
    what cannot be done. Any thread may call this.
    """
    source, key = _absolute(source), _key(source)
    try:
        bundle, original = _bundle(source, _with_shipped(roots, project), limits)
        return keep(bundle, key, project, force=force, limits=limits, original=original)
    except ImportFailed as failed:
        raise _naming(source, failed) from failed


def _bundle(source: Path, roots: FileRoots, limits: Limits) -> tuple[Bundle, Original | None]:
    from urlab.compile.importing.mesh_bundle import MESH_SUFFIXES, mesh_bundle

    suffix = source.suffix.lower()
    if suffix in MESH_SUFFIXES:
        Sources(roots, limits).exists(str(source), "this import")
        return mesh_bundle(source, roots), None
    if suffix not in MODEL_SUFFIXES:
        kinds = " ".join([*MODEL_SUFFIXES, *sorted(MESH_SUFFIXES)])
        raise ImportFailed(f"{source} is no file that can be imported; those end in {kinds}")
    try:
        return model_bundle(source, Sources(roots, limits))
    except NotXml as broken:
        said = explanation(Path(broken.path), limits)
        raise ImportFailed(f"{broken.path}: {said}" if said else str(broken)) from broken


def _absolute(source: Path) -> Path:
    """Where MuJoCo shall look: links are left alone, because its own ``..`` does not follow them."""
    return _resolved(source) if ".." in source.parts else source.absolute()


def _key(source: Path) -> str:
    """The same for every way to write a path; the last name is kept, because the import is called after it."""
    key = str(_resolved(source))
    try:
        return key.encode().decode()
    except UnicodeError as odd:
        raise ImportFailed(f"{key!r} is not a path in UTF-8; give the file another name") from odd


def _resolved(source: Path) -> Path:
    try:
        return source.parent.resolve() / source.name
    except (OSError, RuntimeError, ValueError) as refused:
        raise ImportFailed(f"{str(source)!r} is no path that can be followed: {refused}") from refused


def _with_shipped(roots: FileRoots, project: Project) -> FileRoots:
    shipped = {path.parent.resolve() for path in project.shipped_models.values()}
    return replace(roots, read=(*roots.read, *sorted(shipped)))


def _naming(source: Path, failed: ImportFailed) -> ImportFailed:
    return failed if str(source.parent) in failed.message else ImportFailed(f"{source}: {failed.message}")
