"""A file becomes an import of the project: read by its format, checked in a child process, stored."""

from dataclasses import replace
from pathlib import Path

from urlab.errors import ImportFailed
from urlab.importing.bundle import Bundle, Original
from urlab.importing.check import check_import
from urlab.importing.formats import format_of, suffixes
from urlab.importing.mjcf_document import last
from urlab.importing.sources import DEFAULT_LIMITS, ImportLimits, SourceFiles
from urlab.importing.store import store
from urlab.paths import FileRoots
from urlab.scene.blueprint_record import BlueprintRecord
from urlab.scene.project import Project


def import_file(
    source: Path, project: Project, roots: FileRoots, *, force: bool = False, limits: ImportLimits = DEFAULT_LIMITS
) -> tuple[BlueprintRecord, bool]:
    """Bring a file of any format (see `formats`) into the project.

    The bool tells whether it was imported by this call: a file that has not changed is not imported again, unless
    ``force`` asks for it. Nothing outside ``roots`` is read, the models that are shipped excepted. ImportFailed says
    what cannot be done. Any thread may call this.
    """
    key = _key(source)
    # Links are left alone where MuJoCo shall look, because its own ``..`` does not follow them.
    source = _resolved(source) if ".." in source.parts else source.absolute()
    shipped = {path.parent.resolve() for path in project.shipped_models.values()}
    try:
        roots = replace(roots, read=(*roots.read, *sorted(shipped)))
        bundle, original = _bundle(source, roots, limits)
        if original is not None and not roots.own_rights:
            original = replace(original, roots=roots.read)
        return add_import(bundle, key, project, force=force, limits=limits, original=original)
    except ImportFailed as failed:
        if str(source.parent) in failed.message:
            raise
        raise ImportFailed(f"{source}: {failed.message}") from failed


def add_import(
    bundle: Bundle,
    source: str,
    project: Project,
    *,
    force: bool = False,
    limits: ImportLimits = DEFAULT_LIMITS,
    original: Original | None = None,
) -> tuple[BlueprintRecord, bool]:
    """Check an import and store it in the project; whether that was necessary. ImportFailed says why it cannot be.

    ``source`` is what it was made from, a path or any other text: the same source with the same content is kept
    already, the same source with other content replaces it. ``original`` is the model that the import must equal.
    Any thread may call this; imports wait for each other.
    """

    def check(main: Path) -> None:
        if original is None:
            check_import(main, limits)
        else:
            _check_against(original, main, limits)

    return store(bundle, source, project, check, force=force)


def _check_against(original: Original, main: Path, limits: ImportLimits) -> None:
    """A complaint about the import's own files is told of the original's, which have the same names."""
    try:
        check_import(main, limits, original)
    except ImportFailed as failed:
        message = failed.message.replace(str(main.parent), str(original.path.parent))
        blamed = [where for file, where in original.missing.items() if last(file) in message]
        raise ImportFailed("\n".join([message, *(f"({where})" for where in blamed)])) from failed


def _bundle(source: Path, roots: FileRoots, limits: ImportLimits) -> tuple[Bundle, Original | None]:
    suffix = source.suffix.lower()
    reader = format_of(suffix)
    if reader is None:
        raise ImportFailed(f"{source} is no file that can be imported; those end in {' '.join(suffixes())}")
    return reader.read(source, SourceFiles(roots, limits))


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
