"""Helpers for the compile tests: model files in a temporary folder, scenes made of them, models compared."""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from urlab.compile import CompiledScene, compile_scene
from urlab.compile.library import Library
from urlab.geometry import Pose
from urlab.robots import model_names, model_path
from urlab.scene.blueprint_record import BlueprintRecord, file_record
from urlab.scene.level import Actor, Level

Write = Callable[..., Path]
Compile = Callable[..., CompiledScene]
Differ = Callable[..., list[str]]

NAMES = {"names", "names_map", "nnames", "nnames_map", "nbuffer"}
PATHS = {"paths", "npaths", "mesh_pathadr", "hfield_pathadr", "skin_pathadr", "tex_pathadr"}


@pytest.fixture(autouse=True)
def mujoco_speaks_on_stderr() -> Iterator[None]:
    """So that a test can see MuJoCo's complaints; never into a file in the current folder."""
    before, config = mujoco.MjLogConfig.get(), mujoco.MjLogConfig.get()
    config.logto_console, config.logto_file = True, False
    mujoco.MjLogConfig.set(config)
    yield
    mujoco.MjLogConfig.set(before)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(name, xml, folder="")`` puts a model file there and returns its path."""

    def write_model(name: str, xml: str, folder: str = "") -> Path:
        path = tmp_path / folder / (name if "." in name else f"{name}.xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(xml, encoding="utf-8")
        return path

    return write_model


@pytest.fixture
def compose() -> Compile:
    """``compose({actor_name: (model, pose)}, options=..., overrides=...)`` compiles a level of those actors.

    A model is a path or the name of a shipped one; the pose may be left out.
    """

    def compile_actors(
        actors: Mapping[str, Any], options: Mapping[str, Any] = {}, overrides: Mapping[str, Any] | None = None
    ) -> CompiledScene:
        placed = tuple(_actor(name, model) for name, model in actors.items())
        return compile_scene(Level("level", placed, options), Library(record), overrides)

    return compile_actors


@pytest.fixture
def differ() -> Differ:
    """``differ(model, other)`` lists every number that is not the same, bit for bit; names may differ.

    With ``paths=True`` the paths of asset files may differ as well.
    """

    def differences(model: Any, other: Any, *, paths: bool = False) -> list[str]:
        ignored = NAMES | (PATHS if paths else set())
        fields = [name for name in _fields(model) if name not in ignored and not _is_name_address(name)]
        return [difference for name in fields for difference in _compare(model, other, name)]

    return differences


@pytest.fixture
def tetrahedron() -> Callable[[Path, float], None]:
    """``tetrahedron(path, edge)`` writes an STL file."""

    def write_stl(path: Path, edge: float) -> None:
        corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * edge
        faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
        rows = [struct.pack("<12fH", 0, 0, 0, *corners[list(face)].ravel(), 0) for face in faces]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(80) + struct.pack("<I", len(faces)) + b"".join(rows))

    return write_stl


@pytest.fixture
def picture() -> Callable[[Path, int], None]:
    """``picture(path, grey)`` writes a PNG of 4 by 4 grey pixels."""

    def write_png(path: Path, grey: int) -> None:
        rows = b"".join(b"\0" + bytes([grey]) * 12 for _ in range(4))
        header = struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
        chunks = (
            struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body)) for tag, body in parts
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))

    return write_png


def record(blueprint: str) -> BlueprintRecord:
    return file_record(str(model_path(blueprint)) if blueprint in model_names() else blueprint)


def _actor(name: str, model: Any) -> Actor:
    path, pose = model if isinstance(model, tuple) else (model, Pose())
    return Actor(name, str(path), f"id-of-{name}", pose)


def _fields(struct_: Any) -> list[str]:
    return [name for name in dir(struct_) if not name.startswith("_") and not callable(getattr(struct_, name))]


def _is_name_address(name: str) -> bool:
    return name.startswith("name_") and name.endswith("adr")


def _compare(a: Any, b: Any, name: str) -> list[str]:
    mine, other = getattr(a, name), getattr(b, name)
    if isinstance(mine, int | float | bytes | np.ndarray | np.generic):
        same = np.array_equal(np.asarray(mine), np.asarray(other), equal_nan=isinstance(mine, float | np.ndarray))
        return [] if same else [f"{name}: {mine} is not {other}"]
    return [f"{name}.{found}" for field in _fields(mine) for found in _compare(mine, other, field)]
