"""Helpers for the import tests: folders full of files, and models compared before and after."""

import io
import shutil
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from urlab.compile.blueprint import compile_spec
from urlab.importing.bundle import Bundle
from urlab.importing.check_child import first_difference
from urlab.importing.formats import model_bundle
from urlab.importing.sources import DEFAULT_LIMITS, SourceFiles
from urlab.paths import FileRoots
from urlab.scene.project import Project

Tree = Callable[[Mapping[str, str | bytes]], Path]
Rewrite = Callable[[Path], Bundle]
Faithful = Callable[[Path], Any]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """``tree({"a/b.xml": text})`` writes those files into the folder ``source``; ``@`` stands for it in texts."""
    folder = tmp_path / "source"

    def write(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.replace("@", str(folder)).encode())
        return folder

    return write


@pytest.fixture
def roots(tmp_path: Path) -> FileRoots:
    """Only the folder ``source`` may be read."""
    return FileRoots(read=((tmp_path / "source").resolve(),))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project that does not exist yet."""
    return Project(tmp_path / "project")


@pytest.fixture
def rewrite(roots: FileRoots) -> Rewrite:
    """``rewrite(model)`` is the import that the model would become."""
    return lambda path: model_bundle(path, SourceFiles(roots, DEFAULT_LIMITS))[0]


@pytest.fixture
def faithful(rewrite: Rewrite, tmp_path: Path) -> Faithful:
    """``faithful(model)`` compiles the import far from its source, which is gone by then, and finds the same model."""

    def compare(path: Path) -> Any:
        bundle, original = rewrite(path), compile_file(path)
        shutil.rmtree(tmp_path / "source")
        model = compile_file(unpacked(bundle, tmp_path / "elsewhere"))
        assert first_difference(original, model) is None
        return model

    return compare


@pytest.fixture
def unpack() -> Callable[[Bundle, Path], Path]:
    """``unpack(bundle, folder)`` writes an import by hand; its model file."""
    return unpacked


@pytest.fixture
def compiled() -> Callable[[Path], Any]:
    """``compiled(file)`` is what MuJoCo makes of a model file."""
    return compile_file


@pytest.fixture
def stl() -> Callable[..., bytes]:
    """``stl(edge)`` is a tetrahedron."""
    return tetrahedron_file


@pytest.fixture
def png() -> Callable[[int], bytes]:
    """``png(grey)`` is a picture of 4 by 4 pixels."""

    def picture_file(grey: int) -> bytes:
        file = io.BytesIO()
        Image.new("RGB", (4, 4), (grey, grey, grey)).save(file, "png")
        return file.getvalue()

    return picture_file


def compile_file(path: Path) -> Any:
    return compile_spec(mujoco.MjSpec.from_file(str(path)))[0]


def unpacked(bundle: Bundle, folder: Path) -> Path:
    for name, content in bundle.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / bundle.main


def tetrahedron_file(edge: float = 1.0) -> bytes:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * edge
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    rows = [struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in faces]
    return bytes(80) + struct.pack("<I", len(faces)) + b"".join(rows)
