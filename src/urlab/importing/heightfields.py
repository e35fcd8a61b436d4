"""Ground from heights: an array or a grey picture becomes an import that MuJoCo can stand things on."""

import io
import json
import math
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray
from PIL import Image

from urlab.errors import ChildFailed, ImportFailed
from urlab.geometry import Vec3
from urlab.importing.bundle import Bundle, unpacked
from urlab.importing.limited_process import LimitedProcess, ProcessLimits, python_module
from urlab.importing.sources import SourceFiles
from urlab.scene.blueprint_record import BlueprintKind
from urlab.scene.names import legal_name

MIN_SAMPLES, MAX_SAMPLES = 2, 4096
_BASE_OF_HEIGHT, _LEAST_BASE_M, _LEAST_HEIGHT_M = 0.1, 0.01, 0.001
_MAX_ARRAY_BYTES = MAX_SAMPLES * MAX_SAMPLES * 16 + 4096
_GREY_MODES = ("1", "L", "I", "I;16", "I;16B", "I;16L")
_CHILD = python_module("urlab.importing.reading_child", "heights")
_CHILD_LIMITS = ProcessLimits(written_bytes=256 << 20)
_COLOUR_MODES = ("LA", "P", "RGB", "RGBA")


def heightfield_bundle(name: str, heights: NDArray[Any], size_m: Vec3) -> Bundle:
    """A heightfield of that name; ImportFailed says what cannot be used.

    ``heights`` is (rows, columns) in any unit: the first row is at -y, the first column at -x. ``size_m`` is the
    length along x, the length along y, and the height from the lowest to the highest sample. The actor's origin is
    at the middle of the field, in the plane of its lowest point; a solid base reaches below that.
    """
    checked = _checked(name, heights)
    stem = legal_name(name)
    data = f"assets/{stem}.hfield"
    main = f"{stem}.xml"
    files = {main: _mjcf(stem, data, _field_size(name, size_m)), data: _hfield_file(checked)}
    return Bundle(stem=name, main=main, files=files, kind=BlueprintKind.HEIGHTFIELD)


def image_bundle(name: str, path: Path, size_m: Vec3, sources: SourceFiles) -> Bundle:
    """A heightfield of the heights in a file, read in a child process; ImportFailed says what cannot be used.

    The file is a grey PNG (8 or 16 bits) or a NumPy file, of plain numbers in any unit.
    """
    content = sources.read(str(path), f"the heightfield {name}")
    if content is None:
        raise ImportFailed(f"{path} does not exist, or is no file")
    task = json.dumps({"name": name, "path": str(path), "size_m": size_m}).encode() + b"\n" + content
    try:
        return unpacked(path, LimitedProcess(_CHILD, task, _CHILD_LIMITS).result())[0]
    except ChildFailed as failed:
        raise ImportFailed(f"{path} cannot be used as a heightfield: {failed}") from failed


def heights_of(path: Path, content: bytes) -> NDArray[np.float64]:
    """The heights in the content of a PNG or NumPy file, (rows, columns), in the file's own unit.

    North is up in a picture: its top row is the last row here, at +y. The rows of a NumPy file are taken as they
    are. ImportFailed when the file holds anything else. It may take much memory.
    """
    heights = _from_numpy(path, content) if path.suffix.lower() == ".npy" else _from_png(path, content)
    return _checked(str(path), heights)


def _checked(what: str, heights: NDArray[Any]) -> NDArray[np.float64]:
    array = np.asarray(heights)
    if array.ndim != 2 or not all(MIN_SAMPLES <= count <= MAX_SAMPLES for count in array.shape):
        shape = " x ".join(map(str, array.shape)) or "one number"
        raise ImportFailed(
            f"{what}: heights of shape {shape}; a heightfield has rows and columns, {MIN_SAMPLES} to {MAX_SAMPLES} each"
        )
    if array.dtype.kind not in "buif":
        raise ImportFailed(f"{what}: heights must be numbers, not {array.dtype}")
    if not np.isfinite(array).all():
        raise ImportFailed(f"{what}: {np.count_nonzero(~np.isfinite(array))} of its heights are not finite")
    return array.astype(np.float64)


def _field_size(name: str, size_m: Vec3) -> tuple[float, float, float, float]:
    """Half lengths, height and base, as MuJoCo wants them."""
    x, y, height = (float(one) for one in size_m)
    if not np.isfinite(size_m).all() or x <= 0.0 or y <= 0.0 or height < 0.0:
        raise ImportFailed(
            f"heightfield {name!r}: size {(x, y, height)} m; the lengths must be above 0, the height not below"
        )
    return x / 2, y / 2, max(height, _LEAST_HEIGHT_M), max(_BASE_OF_HEIGHT * height, _LEAST_BASE_M)


def _hfield_file(heights: NDArray[np.float64]) -> bytes:
    """MuJoCo's own format, which keeps what it computes with: the shape, then heights from 0 to 1 as float32."""
    lowest, highest = heights.min() / 2, heights.max() / 2
    above = heights / 2 - lowest
    level = above / (highest - lowest) if highest > lowest else np.zeros_like(heights)
    return struct.pack("<ii", *heights.shape) + level.astype("<f4").tobytes()


def _mjcf(stem: str, data: str, size: tuple[float, ...]) -> bytes:
    root = ET.Element("mujoco", model=stem)
    asset = ET.SubElement(root, "asset")
    ET.SubElement(asset, "hfield", name="terrain", file=data, size=" ".join(map(repr, size)))
    world = ET.SubElement(root, "worldbody")
    ET.SubElement(world, "geom", name="ground", type="hfield", hfield="terrain")
    ET.indent(root)
    return ET.tostring(root) + b"\n"


def _from_numpy(path: Path, content: bytes) -> NDArray[Any]:
    if len(content) > _MAX_ARRAY_BYTES:
        raise ImportFailed(f"{path} is larger than {MAX_SAMPLES} x {MAX_SAMPLES} heights can be")
    try:
        _check_header(path, content)
        array: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    except (OSError, ValueError, EOFError) as refused:
        raise ImportFailed(f"{path} is not a NumPy file of plain numbers: {refused}") from refused
    return array


def _check_header(path: Path, content: bytes) -> None:
    """Before memory is taken for what it promises."""
    file = io.BytesIO(content)
    read_header = {1: npy_format.read_array_header_1_0, 2: npy_format.read_array_header_2_0}
    version = npy_format.read_magic(file)
    if version[0] in read_header:
        shape, _, dtype = read_header[version[0]](file)
        if math.prod(shape) * dtype.itemsize > len(content):
            raise ImportFailed(f"{path} is not a NumPy file of plain numbers: it ends too early for its shape {shape}")


def _from_png(path: Path, content: bytes) -> NDArray[Any]:
    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            _check_picture(path, image)
            return _grey(path, image)[::-1]
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as bomb:
        raise ImportFailed(f"{path}: {bomb}; a side has at most {MAX_SAMPLES} pixels") from bomb
    except (OSError, ValueError, SyntaxError) as refused:
        raise ImportFailed(f"{path} is neither a PNG nor a NumPy file (.npy): {refused}") from refused


def _check_picture(path: Path, image: Image.Image) -> None:
    """Before its pixels are unpacked."""
    if max(image.size) > MAX_SAMPLES:
        raise ImportFailed(f"{path} has {image.width} x {image.height} pixels; a side has at most {MAX_SAMPLES}")
    if image.mode not in (*_GREY_MODES, *_COLOUR_MODES):
        raise ImportFailed(f"{path} has pixels of kind {image.mode!r}; save it as a grey picture of 8 or 16 bits")


def _grey(path: Path, image: Image.Image) -> NDArray[Any]:
    if image.mode in _GREY_MODES:
        return np.asarray(image)
    colours = np.asarray(image.convert("RGB"))
    if (colours != colours[..., :1]).any():
        raise ImportFailed(f"{path} is a picture in colour, whose heights cannot be told; save it in grey")
    return colours[..., 0]
