"""The uploads of a project on disk, whole or not at all, and the models in them."""

import os
import shutil
import uuid
from collections import Counter
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
"""Of all uploads together. What was imported of those that go stays."""

_OWNER_SUFFIX = ".owner"
"""Of the hidden file beside an upload that has the name of the key with which it came."""

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


def store_upload(project: Project, name: str, data: bytes, owner: str = "") -> Upload:
    """Keep what a client sent under a name; UploadFailed says why not, and then nothing has changed.

    Whatever was uploaded under that name before is replaced. Where that makes too many, the oldest of the ``owner``
    that has the most goes. Any thread may call this; they wait for each other, and for other processes.
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
            _owner_file(folder).write_text(owner, encoding="utf-8")
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
    """Keep uploads within their bounds, how many there are and how much; the folders that are gone.

    An owner with many loses its own, and not those of others.
    """
    folders = [one for one in uploads_dir.glob("[!.]*") if one.is_dir() and not one.is_symlink()]
    folders.sort(key=lambda one: (one == newest, one.stat().st_mtime_ns))
    sizes = {folder: _bytes_in(folder) for folder in folders}
    owners = {folder: _owner_of(folder) for folder in folders}
    forgotten = []
    while sizes.keys() - {newest} and (len(sizes) > MOST_UPLOADS or sum(sizes.values()) > MOST_BYTES):
        shares: Counter[str] = Counter()
        for folder, size in sizes.items():
            shares[owners[folder]] += 1 if len(sizes) > MOST_UPLOADS else size
        most = [owner for owner, _ in shares.most_common()]
        oldest = next(one for owner in most for one in sizes if owners[one] == owner and one != newest)
        _delete(oldest)
        del sizes[oldest]
        forgotten.append(oldest)
    return tuple(forgotten)


def _delete(folder: Path) -> None:
    doomed = folder.parent / f".{uuid.uuid4().hex}{DELETED}"
    folder.rename(doomed)
    _owner_file(folder).unlink(missing_ok=True)
    shutil.rmtree(doomed, ignore_errors=True)


def _owner_file(folder: Path) -> Path:
    return folder.parent / f".{folder.name}{_OWNER_SUFFIX}"


def _owner_of(folder: Path) -> str:
    try:
        return _owner_file(folder).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _bytes_in(folder: Path) -> int:
    return sum(_file_sizes(folder))


def _file_sizes(folder: Path) -> Iterator[int]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.lstat(Path(parent, name)).st_size
