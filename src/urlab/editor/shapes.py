"""Bodies of a MuJoCo model as meshes that a browser draws, alike ones together.

A body whose whole look is one box, sphere, ellipsoid or cylinder is an instance of that unit shape, stretched and
coloured: a thousand of them are one mesh and a thousand rows. Every other body is a mesh of its own, in the body's
frame, with all its geoms, colours and textures, as GLB files; bodies with the same content share them.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from urlab.editor.glb import Material, Surface, write_glb

Array = NDArray[np.float64]
Vertices = NDArray[np.float32]
Faces = NDArray[np.uint32]

_GEOM = mujoco.mjtGeom
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF = map(
    int,
    (
        _GEOM.mjGEOM_PLANE, _GEOM.mjGEOM_HFIELD, _GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_ELLIPSOID,
        _GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_BOX, _GEOM.mjGEOM_MESH, _GEOM.mjGEOM_SDF,
    ),
)  # fmt: skip
_UNIT_WORDS = {SPHERE: "sphere", ELLIPSOID: "sphere", CYLINDER: "cylinder", BOX: "box"}
_SIDES = 24
_ENDLESS_M = 40.0
"""How far a plane without end reaches from its middle."""

_TEXTURE_2D = int(mujoco.mjtTexture.mjTEXTURE_2D)
_TEXTURE_CUBE = int(mujoco.mjtTexture.mjTEXTURE_CUBE)
_COLOR_ROLES = [int(mujoco.mjtTextureRole.mjTEXROLE_RGB), int(mujoco.mjtTextureRole.mjTEXROLE_RGBA)]
_CUBE_AXES = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float)


@dataclass(frozen=True)
class GeomMesh:
    """One geom as a mesh in its own frame; ``uv`` and ``image`` where it has a texture, ``colors`` per vertex where it
    has several colours."""

    vertices: Any
    faces: Any
    rgba: Array
    uv: Any = None
    image: Image.Image | None = None
    colors: Any = None


class GeomMeshes:
    """The geoms of one model as meshes and colours."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def unit_word(self, geom: int) -> str | None:
        """The unit shape that a geom is an instance of; None for any other, and for those with a texture."""
        word = _UNIT_WORDS.get(int(self.model.geom_type[geom]))
        return word if word is not None and self._texture(geom) is None else None

    def stretch(self, geom: int) -> tuple[float, float, float]:
        """How a unit shape is stretched along its axes to be this geom."""
        kind, (x, y, z) = int(self.model.geom_type[geom]), self.model.geom_size[geom].tolist()
        if kind == SPHERE:
            return x, x, x
        return (x, x, y) if kind == CYLINDER else (x, y, z)

    def rgba(self, geom: int) -> Array:
        """The colour of a geom: its material's, unless it has one of its own."""
        material, own = int(self.model.geom_matid[geom]), self.model.geom_rgba[geom]
        is_default = bool(np.allclose(own, (0.5, 0.5, 0.5, 1.0)))
        color = self.model.mat_rgba[material] if material >= 0 and is_default else own
        clipped: Array = np.clip(np.asarray(color, float), 0.0, 1.0)
        return clipped

    def content(self, geom: int) -> Hashable:
        """What the mesh of a geom in its body depends on."""
        model = self.model
        numbers = (model.geom_size[geom], model.geom_pos[geom], model.geom_quat[geom], self.rgba(geom))
        ids = (int(model.geom_type[geom]), int(model.geom_dataid[geom]), int(model.geom_matid[geom]))
        return ids, np.round(np.concatenate(numbers), 6).tobytes()

    def paint(self, geom: int) -> Hashable:
        """Equal for geoms that can be one mesh: plain colours of one opacity; a texture is its geom's own."""
        texture = self._texture(geom)
        if texture is not None and int(self.model.tex_type[texture]) != _TEXTURE_CUBE:
            return "texture", geom
        return "plain", round(float(self.rgba(geom)[3]), 3)

    def part(self, geom: int) -> GeomMesh:
        """The geom in its own frame."""
        kind, texture, rgba = int(self.model.geom_type[geom]), self._texture(geom), self.rgba(geom)
        vertices, faces = self._surface(geom, kind)
        if texture is None:
            return GeomMesh(vertices, faces, rgba)
        if int(self.model.tex_type[texture]) == _TEXTURE_CUBE:
            side = _cube_sides(vertices, faces)
            vertices, faces, corners = _split(vertices, faces, side)
            colors = (255 * _cube_colors(self.model, texture) * rgba).astype(np.uint8)
            return GeomMesh(vertices, faces, rgba, colors=colors[side[corners]])
        if kind == PLANE:
            uv = self._plane_coordinates(geom, vertices)
        elif kind == HFIELD:
            uv = _spread(vertices[:, :2])
        elif kind in (MESH, SDF):
            at, coordinates = self._mesh_coordinates(int(self.model.geom_dataid[geom]))
            vertices, faces, corners = _split(vertices, faces, at)
            uv = coordinates[at[corners]]
        else:
            axis, by_corner = _boxed(vertices, faces)
            vertices, faces, corners = _split(vertices, faces, axis)
            uv = by_corner[corners]
        return GeomMesh(vertices, faces, rgba, uv, _image(self.model, texture))

    # -- meshes -----------------------------------------------------------------------------------------------------

    def _surface(self, geom: int, kind: int) -> tuple[Any, Any]:
        """Vertices and faces."""
        model, size = self.model, self.model.geom_size[geom].tolist()
        if kind in (MESH, SDF):
            return self._mesh_asset(int(model.geom_dataid[geom]))
        if kind == HFIELD:
            vertices, faces = self._heightfield(int(model.geom_dataid[geom]))
        elif kind == PLANE:
            x, y = (one or _ENDLESS_M for one in size[:2])
            vertices = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]], np.float32)
            faces = np.array([[0, 1, 2], [0, 2, 3]], np.uint32)
        elif kind == CAPSULE:
            vertices, faces = _capsule(size[0], size[1])
        else:
            vertices, faces = unit_mesh(_UNIT_WORDS[kind])
            vertices = vertices * np.array(self.stretch(geom), np.float32)
        return vertices, faces

    def _mesh_asset(self, mesh: int) -> tuple[Any, Any]:
        """A vertex that has several normals in its file, at a sharp edge, is there as often."""
        model = self.model
        first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        face, number = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        vertices, faces = model.mesh_vert[first : first + count], model.mesh_face[face : face + number]
        facing = model.mesh_facenormal[face : face + number]
        if int(model.mesh_normalnum[mesh]) == count and np.array_equal(faces, facing):
            return vertices, faces
        return _split(vertices, faces, facing.ravel())[:2]

    def _heightfield(self, field: int) -> tuple[Any, Any]:
        model = self.model
        rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
        first = int(model.hfield_adr[field])
        x, y, top, _ = model.hfield_size[field].tolist()
        heights = top * model.hfield_data[first : first + rows * columns].reshape(rows, columns)
        across, along = np.meshgrid(np.linspace(-x, x, columns), np.linspace(-y, y, rows))
        vertices = np.stack([across.ravel(), along.ravel(), heights.ravel()], axis=1)
        near = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None]).ravel()
        far = near + columns
        faces = np.concatenate([np.stack([near, near + 1, far + 1], 1), np.stack([near, far + 1, far], 1)])
        return vertices, faces

    # -- textures ---------------------------------------------------------------------------------------------------

    def _texture(self, geom: int) -> int | None:
        """The texture that colours a geom, if it can be shown: a mesh needs texture coordinates for a 2D one."""
        material = int(self.model.geom_matid[geom])
        roles = [] if material < 0 else [int(self.model.mat_texid[material, role]) for role in _COLOR_ROLES]
        texture = next((one for one in roles if one >= 0), None)
        if texture is None:
            return None
        kind, is_flat = int(self.model.geom_type[geom]), int(self.model.tex_type[texture]) == _TEXTURE_2D
        if kind in (MESH, SDF):
            has_coordinates = int(self.model.mesh_texcoordnum[int(self.model.geom_dataid[geom])]) > 0
            return texture if has_coordinates == is_flat else None
        return texture if is_flat or int(self.model.tex_type[texture]) == _TEXTURE_CUBE else None

    def _mesh_coordinates(self, mesh: int) -> tuple[Any, Any]:
        """Which of the texture coordinates each corner of each triangle has, and these coordinates."""
        model = self.model
        first, count = int(model.mesh_texcoordadr[mesh]), int(model.mesh_texcoordnum[mesh])
        face, number = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        uv = model.mesh_texcoord[first : first + count]
        return model.mesh_facetexcoord[face : face + number].ravel(), np.stack([uv[:, 0], 1 - uv[:, 1]], 1)

    def _plane_coordinates(self, geom: int, vertices: Any) -> Any:
        material, size = int(self.model.geom_matid[geom]), self.model.geom_size[geom]
        repeat = self.model.mat_texrepeat[material]
        if self.model.mat_texuniform[material] or bool((size[:2] <= 0).any()):
            return vertices[:, :2] * repeat / 2
        return _spread(vertices[:, :2]) * repeat


def body_mesh(meshes: GeomMeshes, geoms: Sequence[int]) -> tuple[Vertices, Faces]:
    """The geoms as one mesh without colours, in the frame of their body."""
    vertices, faces, count = [], [], 0
    for geom in geoms:
        part = meshes.part(geom)
        placed = _placed(meshes.model, geom, part.vertices)
        vertices.append(placed)
        faces.append(np.asarray(part.faces, np.int64) + count)
        count += len(placed)
    return np.concatenate(vertices).astype(np.float32), np.concatenate(faces).astype(np.uint32)


def body_glb(meshes: GeomMeshes, geoms: Sequence[int], *, opacity: float = 1.0) -> bytes:
    """Geoms of one body and one `paint` as a GLB file with a single mesh, in the frame of their body."""
    parts = [meshes.part(geom) for geom in geoms]
    alpha = float(parts[0].rgba[3]) * opacity
    vertices = [_placed(meshes.model, geom, part.vertices) for geom, part in zip(geoms, parts, strict=True)]
    if parts[0].image is not None:
        (part,) = parts
        red, green, blue = (_linear(255 * part.rgba[None])[0, :3] / 255).tolist()
        surface = Surface(vertices[0], part.faces, uv=part.uv)
        return write_glb(surface, Material((red, green, blue, alpha), part.image))
    begins = np.cumsum([0, *(len(one) for one in vertices[:-1])])
    faces = [np.asarray(part.faces, np.int64) + begin for part, begin in zip(parts, begins, strict=True)]
    colors = np.concatenate([_vertex_colors(part) for part in parts])
    surface = Surface(np.concatenate(vertices), np.concatenate(faces), colors=colors)
    return write_glb(surface, Material((1.0, 1.0, 1.0, alpha)))


def _vertex_colors(part: GeomMesh) -> Any:
    """A colour for each vertex, as GLB files have it: linear, unlike the colours of pictures."""
    if part.colors is None:
        linear = np.tile(_linear((255 * part.rgba[None]).astype(np.uint8)), (len(part.vertices), 1))
    else:
        linear = _linear(part.colors)
    linear[:, 3] = 255
    return linear


def _linear(colors: Any) -> Any:
    share = colors[:, :3] / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return np.concatenate([(255 * linear + 0.5).astype(np.uint8), colors[:, 3:].astype(np.uint8)], axis=1)


def _turn(model: Any, geom: int) -> Any:
    """The orientation of a geom in its body, (3, 3)."""
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
    return turn.reshape(3, 3)


def _placed(model: Any, geom: int, vertices: Any) -> Any:
    """Vertices of a geom in the frame of its body."""
    return np.asarray(vertices, float) @ _turn(model, geom).T + model.geom_pos[geom]


@lru_cache
def unit_mesh(word: str) -> tuple[Vertices, Faces]:
    """A sphere, box or cylinder of radius or half size 1, or a cone of radius 1 from z = 0 to its tip at z = 1."""
    if word == "box":
        return _unit_box()
    if word == "sphere":
        return _revolved(_arc(-90, 90, 0.0))
    if word == "cylinder":
        return _revolved([(0, -1), (1, -1), (1, -1), (1, 1), (1, 1), (0, 1)])
    return _revolved([(0, 0), (1, 0), (1, 0), (0, 1)])


@lru_cache(256)
def _capsule(radius: float, half_length: float) -> tuple[Vertices, Faces]:
    vertices, faces = _revolved([*_arc(-90, 0, -half_length / radius), *_arc(0, 90, half_length / radius)])
    return vertices * np.float32(radius), faces


def _arc(begin_deg: int, end_deg: int, z: float) -> list[tuple[float, float]]:
    """A part of a circle of radius 1 about that height, as a profile."""
    angles = np.radians(np.arange(begin_deg, end_deg + 1, 360 // _SIDES))
    return [(round(float(np.cos(one)), 9), float(np.sin(one)) + z) for one in angles]


def _revolved(profile: Sequence[tuple[float, float]]) -> tuple[Vertices, Faces]:
    """The surface that a profile, radius and z from below, draws when it is turned about z.

    A point that is given twice is a sharp edge: the sides of it share no vertices, and so no normals.
    """
    radius, z = np.array(profile, float).T
    turn = 2 * np.pi * np.arange(_SIDES) / _SIDES
    rings = np.stack([np.outer(radius, np.cos(turn)), np.outer(radius, np.sin(turn)), np.tile(z[:, None], _SIDES)], -1)
    index = np.arange(rings[..., 0].size).reshape(len(profile), _SIDES)
    index[radius == 0] = index[radius == 0, :1]  # a tip is one vertex
    below, above = index[:-1], index[1:]
    next_below, next_above = np.roll(below, -1, axis=1), np.roll(above, -1, axis=1)
    sides = np.stack([np.stack([below, next_below, next_above], -1), np.stack([below, next_above, above], -1)], 1)
    is_edge = (np.diff(radius) == 0) & (np.diff(z) == 0)
    faces = sides[~is_edge].reshape(-1, 3)
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2])]
    used, renumbered = np.unique(faces, return_inverse=True)
    return rings.reshape(-1, 3)[used].astype(np.float32), renumbered.reshape(-1, 3).astype(np.uint32)


def _unit_box() -> tuple[Vertices, Faces]:
    """Each side has vertices of its own, so that edges are sharp."""
    side = np.array([[1, -1, -1], [1, 1, -1], [1, 1, 1], [1, -1, 1]], np.float32)
    turned = [np.roll(side, axis, axis=1) for axis in range(3)]
    vertices = np.concatenate([*turned, *(-one for one in turned)])
    near = np.array([[0, 1, 2], [0, 2, 3]])
    sides = [near + 4 * side if side < 3 else near[:, ::-1] + 4 * side for side in range(6)]
    return vertices, np.concatenate(sides).astype(np.uint32)


def _spread(points: Any) -> Any:
    """Texture coordinates 0 to 1 over the extent of points in a plane."""
    low, high = points.min(axis=0), points.max(axis=0)
    return (points - low) / np.maximum(high - low, 1e-9)


def _split(vertices: Any, faces: Any, key: Any) -> tuple[Any, Any, Any]:
    """A vertex for each pair of a vertex and a key: ``key``, (3 m,), is a number for every corner of every triangle.

    Returns the vertices, the triangles, and for each vertex a corner that it is at.
    """
    at = np.asarray(faces).ravel().astype(np.int64)
    _, corners, renumbered = np.unique(at * (int(key.max()) + 1) + key, return_index=True, return_inverse=True)
    return vertices[at[corners]], renumbered.reshape(-1, 3), corners


def _facing(vertices: Any, faces: Any) -> Any:
    """Where triangles face, not normalised."""
    first, second, third = vertices[np.asarray(faces)].transpose(1, 0, 2)
    return np.cross(second - first, third - first)


def _cube_sides(vertices: Any, faces: Any) -> Any:
    """Of every corner: the side of a cube that its triangle faces."""
    return np.repeat(np.argmax(_facing(vertices, faces) @ _CUBE_AXES.T, axis=1), 3)


def _boxed(vertices: Any, faces: Any) -> tuple[Any, Any]:
    """Of every corner: the axis that its triangle faces most, and texture coordinates by projection along it."""
    axis = np.repeat(np.argmax(np.abs(_facing(vertices, faces)), axis=1), 3)
    first, second = np.array([1, 0, 0])[axis], np.array([2, 2, 1])[axis]
    corners, rows = vertices[np.asarray(faces).ravel()], np.arange(len(axis))
    return axis, _spread(np.stack([corners[rows, first], corners[rows, second]], 1))


def _pixels(model: Any, texture: int) -> NDArray[np.uint8]:
    width, height = int(model.tex_width[texture]), int(model.tex_height[texture])
    channels, first = int(model.tex_nchannel[texture]), int(model.tex_adr[texture])
    pixels: NDArray[np.uint8] = model.tex_data[first : first + width * height * channels]
    return pixels.reshape(height, width, channels)


def _image(model: Any, texture: int) -> Image.Image:
    pixels = np.flipud(_pixels(model, texture))
    return Image.fromarray(np.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels))


def _cube_colors(model: Any, texture: int) -> Array:
    """The mean colour of each side, (6, 4), in the order of the axes."""
    pixels = _pixels(model, texture)
    sides = pixels.reshape(6, -1, pixels.shape[2]) if pixels.shape[0] == 6 * pixels.shape[1] else pixels[None]
    mean = np.ones((len(sides), 4))
    mean[:, : pixels.shape[2]] = sides.reshape(len(sides), -1, pixels.shape[2]).mean(axis=1) / 255
    return mean if len(mean) == 6 else np.repeat(mean, 6, axis=0)


def sky_dome(model: Any) -> bytes | None:
    """The model's skybox on the inside of a sphere of radius 1, shining by itself; None if it has none."""
    boxes = np.flatnonzero(model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX))
    if not len(boxes):
        return None
    rows, columns = 64, 128
    theta, phi = np.meshgrid(np.linspace(0, np.pi, rows), np.linspace(-np.pi, np.pi, columns), indexing="ij")
    directions = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1).reshape(-1, 3)
    image = Image.fromarray(_sky_colors(_pixels(model, int(boxes[0])), directions).reshape(rows, columns, 3))
    u, v = np.meshgrid(np.linspace(0, 1, columns), np.linspace(1, 0, rows))
    near = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None]).ravel()
    far = near + columns
    faces = np.concatenate([np.stack([near, near + 1, far + 1], 1), np.stack([near, far + 1, far], 1)])
    uv = np.stack([u.ravel(), v.ravel()], 1)
    return write_glb(Surface(directions, faces, uv=uv), Material(image=image, shines=True))


def _sky_colors(pixels: NDArray[np.uint8], directions: Any) -> NDArray[np.uint8]:
    """The colour of the skybox in each direction. Its sides follow each other: right, left, up, down, front, back."""
    size = pixels.shape[1]
    sides = pixels[:, :, :3].reshape(-1, size, size, 3)
    if len(sides) < 6:
        sides = np.repeat(sides[:1], 6, axis=0)
    x, y, z = directions.T
    axis = np.argmax(np.abs(directions), axis=1)
    far = np.abs(directions[np.arange(len(directions)), axis])
    side = np.choose(axis, [np.where(x > 0, 0, 1), np.where(y > 0, 5, 4), np.where(z > 0, 2, 3)])
    across = np.choose(axis, [y, x, x]) / far
    down = np.choose(axis, [-z, -z, -y]) / far
    column = np.clip(((across + 1) / 2 * size).astype(int), 0, size - 1)
    row = np.clip(((down + 1) / 2 * size).astype(int), 0, size - 1)
    found: NDArray[np.uint8] = sides[side, row, column]
    return found
