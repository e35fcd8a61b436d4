"""Meshes as GLB files (glTF 2.0 in one piece), which browsers load: one mesh with one material each.

trimesh writes them too; its import and export took 0.9 of the 3.7 s until a page had 32 MB of meshes.
"""

import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_ROUGH = 0.7
_GLTF, _JSON, _BINARY = 0x46546C67, 0x4E4F534A, 0x004E4942
_FLOAT, _UINT32, _UINT16, _UINT8 = 5126, 5125, 5123, 5121
_MOST_OF_UINT16 = 0xFFFF
"""Vertices: the largest number of all is none of an index."""

_VERTICES, _INDICES = 34962, 34963
"""What a part of the file is for: attributes of vertices, or the corners of triangles."""


@dataclass(frozen=True)
class Surface:
    """Triangles: ``vertices``, (n, 3); ``faces``, (m, 3), indices of vertices.

    The page computes normals of its own, whatever a file says, each the mean of the triangles at a vertex.

    ``colors``, (n, 4), uint8, are linear, unlike those of pictures; ``uv``, (n, 2), are texture coordinates, v upward.
    """

    vertices: Any
    faces: Any
    uv: Any = None
    colors: Any = None


@dataclass(frozen=True)
class Material:
    """A matt surface. ``rgba`` multiplies the texture and the colours of vertices; it is linear.

    ``shines``: the texture, from both sides, or else ``rgba`` is light of its own, and no other light counts.
    """

    rgba: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    image: Image.Image | None = None
    shines: bool = False


def write_glb(surface: Surface, material: Material) -> bytes:
    """The file with that one mesh."""
    parts = _Parts()
    attributes = {
        "POSITION": parts.add_vertices(surface.vertices, "VEC3", is_bounded=True),
    }
    if not material.shines:  # the page draws what names no normals in facets, and computes those that are named
        attributes["NORMAL"] = parts.add_zeros(len(surface.vertices), "VEC3")
    if surface.uv is not None:
        attributes["TEXCOORD_0"] = parts.add_vertices(surface.uv * [1, -1] + [0, 1], "VEC2")  # there v is downward
    if surface.colors is not None:
        colors = np.asarray(surface.colors, np.uint8)
        attributes["COLOR_0"] = parts.add(colors, _UINT8, "VEC4", _VERTICES, normalized=True)
    word, kind = (_UINT16, np.uint16) if len(surface.vertices) <= _MOST_OF_UINT16 else (_UINT32, np.uint32)
    indices = parts.add(np.asarray(surface.faces, kind).reshape(-1), word, "SCALAR", _INDICES)
    content: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "urlab"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": attributes, "indices": indices, "material": 0}]}],
        "materials": [_looks(material)],
    }
    if material.image is not None:
        content["images"] = [{"bufferView": parts.add_bytes(_png(material.image)), "mimeType": "image/png"}]
        content["textures"] = [{"source": 0}]
    content |= {"accessors": parts.accessors, "bufferViews": parts.views, "buffers": [{"byteLength": parts.size}]}
    return _packed(json.dumps(content).encode(), b"".join(parts.pieces))


def _looks(material: Material) -> dict[str, Any]:
    if material.shines:
        black = {"baseColorFactor": [0.0, 0.0, 0.0, 1.0], "metallicFactor": 0.0}
        if material.image is None:
            return {"pbrMetallicRoughness": black, "emissiveFactor": list(material.rgba[:3])}
        light = {"emissiveTexture": {"index": 0}, "emissiveFactor": [1.0, 1.0, 1.0]}
        return {"pbrMetallicRoughness": black, **light, "doubleSided": True}
    surface = {"baseColorFactor": list(material.rgba), "metallicFactor": 0.0, "roughnessFactor": _ROUGH}
    if material.image is not None:
        surface["baseColorTexture"] = {"index": 0}
    return {"pbrMetallicRoughness": surface, "alphaMode": "BLEND" if material.rgba[3] < 1 else "OPAQUE"}


class _Parts:
    """The binary part of a file as it grows, and where in it each array is."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self.views: list[dict[str, int]] = []
        self.accessors: list[dict[str, Any]] = []

    def add_vertices(self, array: Any, kind: str, *, is_bounded: bool = False) -> int:
        """Floats of all vertices; the number of their accessor."""
        floats: NDArray[np.float32] = np.asarray(array, np.float32)
        accessor = self.add(floats, _FLOAT, kind, _VERTICES)
        if is_bounded:
            bounds = {"min": floats.min(axis=0).tolist(), "max": floats.max(axis=0).tolist()}
            self.accessors[accessor] |= bounds
        return accessor

    def add_zeros(self, count: int, kind: str) -> int:
        """Floats that take no place in the file; the number of their accessor."""
        self.accessors.append({"componentType": _FLOAT, "count": count, "type": kind})
        return len(self.accessors) - 1

    def add(self, array: Any, component: int, kind: str, target: int, **more: Any) -> int:
        """An array; the number of its accessor."""
        view = self.add_bytes(array.tobytes(), target=target)
        about = {"bufferView": view, "componentType": component, "count": len(array), "type": kind, **more}
        self.accessors.append(about)
        return len(self.accessors) - 1

    def add_bytes(self, piece: bytes, **more: int) -> int:
        """Any bytes; the number of their view."""
        self.views.append({"buffer": 0, "byteOffset": self.size, "byteLength": len(piece), **more})
        padded = piece + bytes(-len(piece) % 4)
        self.pieces.append(padded)
        self.size += len(padded)
        return len(self.views) - 1


def _png(image: Image.Image) -> bytes:
    with io.BytesIO() as file:
        image.save(file, "PNG", compress_level=1)
        return file.getvalue()


def _packed(text: bytes, binary: bytes) -> bytes:
    text += b" " * (-len(text) % 4)
    words = [_GLTF, 2, 12 + 8 + len(text) + 8 + len(binary), len(text), _JSON]
    head, middle = (np.array(one, "<u4").tobytes() for one in (words, [len(binary), _BINARY]))
    return b"".join([head, text, middle, binary])
