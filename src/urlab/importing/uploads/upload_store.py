"""The uploads of a project on disk, whole or not at all, and the models in them."""

import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from urlab.errors import UploadFailed, known
from urlab.files import part_name
from urlab.importing.formats import format_of, suffixes
from urlab.importing.store import DELETED, locked_folder, replace_folder
from urlab.importing.uploads.archive import Archive
from urlab.importing.uploads.found_files import name_found_files
from urlab.importing.xml_tags import BrokenXml, tags
from urlab.paths import shortened
from urlab.scene.blueprint_record import MODEL_SUFFIXES
from urlab.scene.names import file_name_problem
from urlab.scene.project import Project
from urlab_wire.ops.scene import MAX_UPLOAD_BYTES

ARCHIVE_SUFFIXES = (".mjz", ".zip")
MOST_UPLOADS = 64
MOST_BYTES = 4 << 30
"""Of all uploads together: the oldest go. What was imported of them stays."""

_ROOTS = ("mujoco", "robot")
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Upload:
    """``path`` is the model to import, absolute; ``models`` are all that there are, that one first.

    ``forgotten`` are the folders of older uploads that made room for it.
    """

    path: Path
    models: tuple[Path, ...]
    forgotten: tuple[Path, ...] = ()


def store_upload(project: Project, name: str, data: bytes) -> Upload:
    """Keep what a client sent under a name; UploadFailed says why not, and then nothing has changed.

    Whatever was uploaded under that name before is replaced. Any thread may call this; they wait for each other, and
    for other processes.
    """
    suffix = _judged_suffix(name)
    if not data:
        raise UploadFailed(f"{name} has no bytes")
    if len(data) > MAX_UPLOAD_BYTES:
        most = MAX_UPLOAD_BYTES >> 20
        raise UploadFailed(f"{name} has {len(data) / (1 << 20):.4g} MiB; an upload has at most {most} MiB")
    archive = Archive(name, data) if suffix in ARCHIVE_SUFFIXES else None
    folder = project.uploads_dir / f"{Path(name).stem}-{suffix[1:]}"  # MuJoCo reads nothing in a folder called x.zip
    try:
        with locked_folder(project.uploads_dir):
            models = _stored(folder, name, data, archive)
            forgotten = _forget_oldest(project.uploads_dir, folder)
    except OSError as refused:
        raise UploadFailed(f"cannot keep {name} in {project.uploads_dir}: {refused.strerror or refused}") from refused
    return Upload(folder / models[0], tuple(folder / model for model in models), forgotten)


def _judged_suffix(name: str) -> str:
    problem = file_name_problem(name)
    if problem is not None:
        raise UploadFailed(f"{shortened(name)!r} is no name for a file: {problem}")
    suffix = Path(name).suffix.lower()
    if suffix not in ARCHIVE_SUFFIXES and format_of(suffix) is None:
        allowed = " ".join(sorted([*suffixes(), *ARCHIVE_SUFFIXES]))
        raise UploadFailed(f"{shortened(name)!r} is no file that can be uploaded; those end in {allowed}")
    return suffix


def _stored(folder: Path, name: str, data: bytes, archive: Archive | None) -> list[Path]:
    """Write an upload to its folder; its models, relative to that."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UploadFailed(f"{folder} is there already and no upload: it is a link or a file")
    staged = folder.parent / part_name()
    try:
        staged.mkdir()
        if archive is None:
            (staged / name).write_bytes(data)
            models = [Path(name)]
        else:
            archive.unpack(staged)
            models = _models_in(staged, archive, name)
            if [path for path in archive.paths if _is_text(Path(path))] == [models[0].as_posix()]:
                name_found_files(staged, models[0], archive.paths)
        replace_folder(staged, folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return models


def _models_in(folder: Path, archive: Archive, name: str) -> list[Path]:
    """The models of an archive that was unpacked there; the meshes, when it has none. UploadFailed for neither.

    First those that are nearest to the top, among them the one that is called like the archive.
    """
    paths = [Path(path) for path in archive.paths]
    models = [path for path in paths if _is_text(path) and _is_model(folder / path)]
    models = models or [path for path in paths if not _is_text(path) and format_of(path.suffix.lower()) is not None]
    if not models:
        raise UploadFailed(f"{name} holds no model ({' '.join(suffixes())}); it has: {known(archive.paths)}")
    return sorted(models, key=lambda path: (len(path.parts), path.stem != Path(name).stem, str(path)))


def _is_text(path: Path) -> bool:
    return path.suffix.lower() in MODEL_SUFFIXES


def _is_model(file: Path) -> bool:
    """Whether an XML file is MJCF or URDF, and not a part of such a model, or something else."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD_BYTES)
    try:
        first = next(tags(head), None)
    except BrokenXml:
        return False
    return first is not None and first.name in _ROOTS


def _forget_oldest(uploads_dir: Path, newest: Path) -> tuple[Path, ...]:
    """Keep uploads within their bounds, how many there are and how much; the folders that are gone."""
    forgotten = []
    others = [one for one in uploads_dir.glob("[!.]*") if one != newest and one.is_dir() and not one.is_symlink()]
    left_bytes, left_count = MOST_BYTES - _bytes_in(newest), MOST_UPLOADS - 1
    for folder in sorted(others, key=lambda one: one.stat().st_mtime_ns, reverse=True):
        left_bytes, left_count = left_bytes - _bytes_in(folder), left_count - 1
        if left_bytes < 0 or left_count < 0:
            doomed = uploads_dir / f".{uuid.uuid4().hex}{DELETED}"
            folder.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
            forgotten.append(folder)
    return tuple(forgotten)


def _bytes_in(folder: Path) -> int:
    return sum(_file_sizes(folder))


def _file_sizes(folder: Path) -> Iterator[int]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.lstat(Path(parent, name)).st_size
