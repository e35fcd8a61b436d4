"""The child process in which a model is compiled for the first time."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from urlab.compile.blueprint import MUJOCO_ERRORS, compile_spec, load_blueprint, parse_model
from urlab.compile.urdf import leave_out_unusable_visuals, read_urdf
from urlab.errors import ImportFailed
from urlab.importing.check import CheckRequest, decoded, encoded
from urlab.importing.limited_process import serve_once
from urlab.importing.reading_rights import read_only_below
from urlab.mujoco_versions import log_without_files
from urlab.scene.blueprint_record import file_record

_KNOWN_SUFFIXES = (".xml", ".urdf")
_LOADING = re.compile(rb"(<\s*)(?=(?:include|model)\b)", re.IGNORECASE)

_PATH_FIELDS = ("paths", "npaths", "nbuffer", "mesh_pathadr", "hfield_pathadr", "skin_pathadr", "tex_pathadr")


def check(task: bytes) -> bytes:
    """Serve one `CheckRequest` with the problem that it found, or None, both as JSON."""
    log_without_files()
    request: CheckRequest = decoded(task, CheckRequest)
    return encoded(_said_of(request.text.encode("latin-1")) if request.text is not None else _wrong_with(request))


def _said_of(text: bytes) -> str | None:
    """What MuJoCo says of a text that is no XML. Nothing that it refers to is looked at."""
    text = _LOADING.sub(rb"\1_", text)
    try:
        mujoco.MjSpec.from_string(text.decode(errors="replace"))
    except MUJOCO_ERRORS as refused:
        return str(refused).strip()
    return None


def _wrong_with(request: CheckRequest) -> str | None:
    """What is wrong with an import, or None."""
    imported = Path(request.imported)
    if request.roots is not None:
        read_only_below([*map(Path, request.roots), imported.parent, Path.cwd()])
    try:
        original = None if request.original is None else _original(Path(request.original), request.files)
    except MUJOCO_ERRORS as refused:
        return f"{request.original}: {refused}".strip()
    try:
        spec = parse_model(imported).spec
        faces = [face for texture in spec.textures for face in texture.cubefiles]
        model, _ = compile_spec(spec)
        outside = next(_outside(imported.parent, [*os.fsdecode(model.paths).split("\0"), *faces]), None)
        if outside is not None:
            return f"the import would still need {outside}"
        different = None if original is None else first_difference(original, model)
        if different is not None:
            return f"the import would not be the same model: {different} differs from {request.original}"
        load_blueprint(file_record(str(imported)))
    except MUJOCO_ERRORS as refused:
        return f"the import cannot be compiled: {refused}".strip()
    except ImportFailed as refused:
        return refused.message
    return None


def _original(path: Path, files: dict[str, str]) -> Any:
    """The source, compiled; ``files`` are what its URIs mean."""
    spec = read_urdf(path, files) if files else None
    if spec is None:
        spec = _parsed(path)
    else:
        leave_out_unusable_visuals(spec)
    return compile_spec(spec)[0]


def _parsed(path: Path) -> Any:
    """MuJoCo knows a model file by its suffix; under another one it is shown the text as if it had that suffix."""
    try:
        return parse_model(path).spec
    except ValueError:
        if path.suffix in _KNOWN_SUFFIXES:
            raise
    with mujoco.MjVfs() as files:
        shown = str(path.with_suffix(".xml"))
        files[shown] = path.read_bytes()
        return mujoco.MjSpec.from_file(shown, vfs=files)


def _outside(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Those of the named files that are not in the import's folder."""
    for name in names:
        path = folder / name
        if name and path.is_file() and not path.resolve().is_relative_to(folder.resolve()):
            yield path


def first_difference(model: Any, other: Any) -> str | None:
    """The first field in which two models differ, or None. Paths of files, and their lengths, are left out."""
    return next((name for name in _fields(model) if name not in _PATH_FIELDS and not _same(model, other, name)), None)


def _same(model: Any, other: Any, name: str) -> bool:
    mine, theirs = getattr(model, name), getattr(other, name)
    if isinstance(mine, np.ndarray):
        return bool(mine.shape == theirs.shape and mine.tobytes() == theirs.tobytes())
    if isinstance(mine, int | float | bytes | str | np.generic):
        return np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()
    return all(_same(mine, theirs, field) for field in _fields(mine))


def _fields(struct: Any) -> list[str]:
    return [name for name in dir(struct) if not name.startswith("_") and not callable(getattr(struct, name))]


if __name__ == "__main__":
    serve_once(check)
