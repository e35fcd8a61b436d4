"""Takes an import into the project, once it is known to be sound."""

from pathlib import Path

from urlab.compile.importing.bundle import Bundle
from urlab.compile.importing.check import check_import
from urlab.compile.importing.limits import DEFAULT_LIMITS, Limits
from urlab.compile.importing.model_bundle import Original
from urlab.compile.importing.paths import last
from urlab.compile.importing.store import store
from urlab.errors import ImportFailed
from urlab.scene.blueprint_record import BlueprintRecord
from urlab.scene.project import Project


def keep(
    bundle: Bundle,
    source: str,
    project: Project,
    *,
    force: bool = False,
    limits: Limits = DEFAULT_LIMITS,
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


def _check_against(original: Original, main: Path, limits: Limits) -> None:
    """A complaint about the import's own files is told of the original's, which have the same names."""
    try:
        check_import(main, limits, original=original.path, files=original.files)
    except ImportFailed as failed:
        message = failed.message.replace(str(main.parent), str(original.path.parent))
        blamed = [where for file, where in original.missing.items() if last(file) in message]
        raise ImportFailed("\n".join([message, *(f"({where})" for where in blamed)])) from failed
