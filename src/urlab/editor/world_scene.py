"""The world in the browser's scene: a batch of instances for each look, moved by the states that come in.

A mesh that was sent stays with the browsers while anything in the world has it, from one model to the next: an edited
level or a restart sends only what is new. One thread calls this.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray
from viser._messages import SceneNodeUpdateMessage
from viser.infra import Message

from urlab.editor.glb import Material, Surface, write_glb
from urlab.editor.shapes import HFIELD, PLANE, GeomMeshes, body_glb, body_mesh, sky_dome, unit_mesh

Array = NDArray[np.float64]
Ids = NDArray[np.intp]

_SELECTED = (1.0, 0.3, 0.007, 1.0)
"""The colour of outlines, linear: a bright orange."""
_HIDDEN_GROUP = 3
"""Geoms of this group and above are hidden, as in MuJoCo's own viewer."""
_SKY_M, _SKY_SHARE = 200.0, 20.0
"""Radius of the sky: at least so many metres, and so many times the model's extent."""
_AMBIENT, _LIGHT_SHARE, _GAMMA = 0.09, 1.4, 2.2
"""Light from everywhere that is added, a factor of all lights, and the exponent from MuJoCo's colours to linear ones:
found by comparing pages with pictures of the server."""
_MOST_LIGHTS = 8
_SUN_M = 100.0
_OUTLINE_SHARE, _OUTLINE_M = 0.02, (0.001, 0.01)
"""How far an outline stands out: this share of the size of what is selected, but at least and at most so much."""
_STILL = 1e-5
"""What moves less is not sent again: this share of the model's extent, and this much in a quaternion."""
_CLEAR = "-clear"
_PREPARED = "_urlab_prepared"
_NO_TURN = np.array([1.0, 0.0, 0.0, 0.0])

BodyEvent = Callable[[Any, int], Awaitable[None]]
"""Called with viser's event and the id of the body under the pointer."""


@dataclass
class _Batch:
    """Instances of one mesh. ``bodies`` has the body of each; ``pos`` and ``quat`` are its place in the body."""

    handle: Any
    bodies: Ids
    pos: Array
    quat: Array
    moves: bool
    is_plain: bool
    """Whether it stands as the body does."""
    sent: tuple[Array, Array]
    """Positions and orientations that the pages have."""


def _prepare_once(message: type[SceneNodeUpdateMessage]) -> None:
    """Let viser prepare each change of the scene for sending once, and not for every page that it goes to.

    That is most of what a page costs. Where the arrays are in what is sent is part of it: pages that are sent the same
    share it, and one that has fallen behind has it prepared anew.
    """
    prepare = message.as_serializable_dict

    def prepare_once(self: Message, binary_buffers: list[memoryview] | None = None) -> dict[str, Any]:
        if binary_buffers is None:
            return prepare(self)
        first = len(binary_buffers)
        known: tuple[int, dict[str, Any], list[memoryview]] | None = self.__dict__.get(_PREPARED)
        if known is None or known[0] != first:
            fields = prepare(self, binary_buffers)
            known = self.__dict__[_PREPARED] = first, fields, binary_buffers[first:]
        else:
            binary_buffers.extend(known[2])
        return known[1]

    message.as_serializable_dict = prepare_once  # type: ignore[method-assign]


_prepare_once(SceneNodeUpdateMessage)


class WorldScene:
    """What viser shows of a model."""

    def __init__(self, server: viser.ViserServer, on_click: BodyEvent, on_drag: BodyEvent) -> None:
        self._server = server
        self._on_click, self._on_drag = on_click, on_drag
        self._batches: dict[str, _Batch] = {}
        self._model: Any = None
        self._meshes: GeomMeshes | None = None
        self._names: dict[Hashable, str] = {}
        """Names of GLB files by what they are made of, in the model that is shown."""
        self._glbs: dict[str, bytes] = {}
        """By name, until they are sent."""
        self._mode, self._transparent = "lit", False
        self._others: list[Any] = []
        self._outline: list[tuple[Any, int]] = []
        self._outlined: tuple[str | None, Any] = (None, None)
        self._actors: Mapping[str, Sequence[int]] = {}

    # -- another model ----------------------------------------------------------------------------------------------

    def show(self, model: Any, data: Any, actors: Mapping[str, Sequence[int]]) -> None:
        """Show that model, in the state of ``data``, instead of the one before."""
        self._model, self._actors = model, actors
        self._meshes, self._names = GeomMeshes(model), {}
        self._outlined = (None, None)
        with self._server.atomic():
            self._lay_out(data)
            self._add_light_and_sky()

    def set_mode(self, mode: str, *, transparent: bool, data: Any) -> None:
        """Show the world lit, unlit, as wires or as its collision shapes; and half transparent if that is wanted."""
        if (mode, transparent) == (self._mode, self._transparent) or self._model is None:
            return
        self._mode, self._transparent = mode, transparent
        self._names = {}
        for name in list(self._batches):
            self._batches.pop(name).handle.remove()
        with self._server.atomic():
            self._lay_out(data)
            self._add_light_and_sky()

    def _lay_out(self, data: Any) -> None:
        unit, whole = self._sorted()
        for name in [name for name in self._batches if name not in unit and name not in whole]:
            self._batches.pop(name).handle.remove()
        for name, geoms in unit.items():
            self._place_units(name, np.array(geoms, np.intp), data)
        for name, groups in whole.items():
            self._place_bodies(name, groups, data)
        self._glbs.clear()

    def _sorted(self) -> tuple[dict[str, list[int]], dict[str, list[list[int]]]]:
        """Geoms by unit shape, and groups of geoms (each of one body) by the mesh that they are together.

        A group has one texture, or plain colours of one opacity: viser's pointer events need files of a single mesh.
        """
        assert self._meshes is not None
        by_body: dict[Hashable, list[int]] = defaultdict(list)
        for geom in self._drawn_geoms():
            key = int(self._model.geom_bodyid[geom]), self._owner(geom), self._meshes.paint(geom)
            by_body[key].append(geom)
        unit: dict[str, list[int]] = defaultdict(list)
        whole: dict[str, list[list[int]]] = defaultdict(list)
        for geoms in by_body.values():
            word = self._meshes.unit_word(geoms[0]) if len(geoms) == 1 else None
            if word is None:
                whole[self._glb_name(geoms)].append(geoms)
            else:
                is_clear = self._transparent or self._meshes.rgba(geoms[0])[3] < 1
                unit[f"{word}{_CLEAR if is_clear else ''}"].append(geoms[0])
        return unit, whole

    def _drawn_geoms(self) -> list[int]:
        model = self._model
        if self._mode == "collision":
            shown: Any = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        else:
            shown = (model.geom_group < _HIDDEN_GROUP) & (model.geom_rgba[:, 3] > 0)
        found: list[int] = np.flatnonzero(shown).tolist()
        return found

    def _owner(self, geom: int) -> str:
        """The actor that brought a geom which is fixed to the world: it has no body of its own, but its name."""
        if int(self._model.geom_bodyid[geom]) != 0:
            return ""
        name = self._model.geom(geom).name
        return next((actor for actor in self._actors if name.startswith(f"{actor}_") or name == actor), "")

    def _glb_name(self, geoms: Sequence[int]) -> str:
        """The name of the mesh that geoms of one body are together: the same for the same content, in any model."""
        assert self._meshes is not None
        key = tuple(self._meshes.content(geom) for geom in geoms)
        if key not in self._names:
            opacity = float(self._model.vis.map.alpha) if self._transparent and self._can_move(geoms[0]) else 1.0
            glb = body_glb(self._meshes, geoms, opacity=opacity)
            name = hashlib.blake2b(glb, digest_size=12).hexdigest()
            self._names[key], self._glbs[name] = name, glb
        return self._names[key]

    # -- batches ----------------------------------------------------------------------------------------------------

    def _place_units(self, name: str, geoms: Ids, data: Any) -> None:
        assert self._meshes is not None
        model = self._model
        bodies = model.geom_bodyid[geoms].astype(np.intp)
        pos, quat = model.geom_pos[geoms], model.geom_quat[geoms]
        scales = np.array([self._meshes.stretch(geom) for geom in geoms.tolist()])
        rgba = np.array([self._meshes.rgba(geom) for geom in geoms.tolist()])
        if self._transparent:
            rgba[[self._can_move(geom) for geom in geoms.tolist()], 3] *= float(model.vis.map.alpha)
        colors = (255 * rgba[:, :3]).astype(np.uint8)
        opacities = rgba[:, 3] if name.endswith(_CLEAR) else None
        placed = self._placed(bodies, pos, quat, data)
        batch = self._kept(name, len(geoms))
        if batch is None:
            vertices, faces = unit_mesh(name.removesuffix(_CLEAR))
            handle: Any = self._server.scene.add_batched_meshes_simple(
                f"/world/{name}", vertices, faces, placed[1], placed[0], batched_scales=scales, batched_colors=colors,
                batched_opacities=opacities, wireframe=self._mode == "wireframe", lod="off", cast_shadow=False,
                receive_shadow=False,
            )  # fmt: skip
            self._listen(name, handle)
        else:
            handle = batch.handle
            handle.batched_positions, handle.batched_wxyzs = placed
            handle.batched_scales, handle.batched_colors, handle.batched_opacities = scales, colors, opacities
        self._note(name, handle, bodies, pos, quat, placed)

    def _place_bodies(self, name: str, groups: Sequence[Sequence[int]], data: Any) -> None:
        assert self._meshes is not None
        bodies = np.array([self._model.geom_bodyid[geoms[0]] for geoms in groups], np.intp)
        pos, quat = np.zeros((len(bodies), 3)), np.tile(_NO_TURN, (len(bodies), 1))
        placed = self._placed(bodies, pos, quat, data)
        batch = self._kept(name, len(bodies))
        if batch is not None:
            handle: Any = batch.handle
            handle.batched_positions, handle.batched_wxyzs = placed
        elif self._mode == "wireframe":
            vertices, faces = body_mesh(self._meshes, groups[0])
            color = (255 * self._meshes.rgba(groups[0][0])[:3]).astype(np.uint8)
            handle = self._server.scene.add_batched_meshes_simple(
                f"/world/{name}", vertices, faces, placed[1], placed[0], batched_colors=color, wireframe=True,
                lod="off", cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
            self._listen(name, handle)
        else:
            handle = self._server.scene.add_batched_glb(
                f"/world/{name}", self._glbs[name], placed[1], placed[0], lod="off", cast_shadow=False,
                receive_shadow=False,
            )  # fmt: skip
            self._listen(name, handle)
        self._note(name, handle, bodies, pos, quat, placed)

    def _kept(self, name: str, count: int) -> _Batch | None:
        """The batch of that name, if it has so many instances; one with another number is removed."""
        batch = self._batches.get(name)
        if batch is None or len(batch.bodies) == count:
            return batch
        self._batches.pop(name).handle.remove()
        return None

    def _note(self, name: str, handle: Any, bodies: Ids, pos: Array, quat: Array, placed: tuple[Array, Array]) -> None:
        model = self._model
        moves = (model.body_weldid[bodies] != 0) | (model.body_mocapid[model.body_rootid[bodies]] >= 0)
        is_plain = not pos.any() and bool((quat == _NO_TURN).all())
        self._batches[name] = _Batch(handle, bodies, pos, quat, bool(moves.any()), is_plain, placed)

    def _can_move(self, geom: int) -> bool:
        model = self._model
        body = int(model.geom_bodyid[geom])
        return bool(model.body_weldid[body] != 0 or model.body_mocapid[model.body_rootid[body]] >= 0)

    def _placed(self, bodies: Ids, pos: Array, quat: Array, data: Any) -> tuple[Array, Array]:
        """Positions and orientations of instances in the world."""
        turned = data.xquat[bodies]
        return data.xpos[bodies] + rotate(turned, pos), multiply_quats(turned, quat)

    def _listen(self, name: str, handle: Any) -> None:
        def body_of(event: Any) -> int | None:
            batch, index = self._batches.get(name), event.instance_index or 0
            return None if batch is None or index >= len(batch.bodies) else int(batch.bodies[index])

        async def clicked(event: Any) -> None:
            body = body_of(event)
            if body is not None:
                await self._on_click(event, body)

        async def dragged(event: Any) -> None:
            body = body_of(event)
            if body is not None:
                await self._on_drag(event, body)

        handle.on_click(clicked)
        handle.on_drag("left", modifier="cmd/ctrl")(dragged)

    # -- light and sky ----------------------------------------------------------------------------------------------

    def _add_light_and_sky(self) -> None:
        """Lights as three.js has them: linear, and by a factor of pi stronger for the same surface."""
        for one in self._others:
            one.remove()
        scene, model = self._server.scene, self._model
        is_plain = self._mode in ("unlit", "collision", "wireframe")
        scene.configure_default_lights(enabled=False, cast_shadow=False)
        headlight = model.vis.headlight
        ambient = 1.0 if is_plain else _AMBIENT + float(np.mean(headlight.ambient)) ** _GAMMA
        self._others = [scene.add_light_ambient("/light/ambient", intensity=math.pi * ambient)]
        if not is_plain:
            head = np.array(headlight.diffuse) * bool(headlight.active)
            self._others.append(self._sun("head", np.array([0.4, 0.5, -0.75]), head))
            for light in range(min(model.nlight, _MOST_LIGHTS)):
                self._others.append(self._sun(str(light), model.light_dir[light], model.light_diffuse[light]))
        sky = None if is_plain else sky_dome(model)
        if sky is not None:
            radius = max(_SKY_M, _SKY_SHARE * float(model.stat.extent))
            self._others.append(scene.add_glb("/sky", sky, scale=radius, cast_shadow=False, receive_shadow=False))

    def _sun(self, name: str, direction: Any, diffuse: Any) -> Any:
        """A light from afar. In the page those shine from where they are to the origin, however they are turned."""
        place = -_SUN_M * direction / max(float(np.linalg.norm(direction)), 1e-9)
        strength = max(float(np.max(diffuse)), 1e-9)
        red, green, blue = (int(255 * max(one, 0.0) / strength) for one in diffuse.tolist())
        return self._server.scene.add_light_directional(
            f"/light/{name}",
            color=(red, green, blue),
            intensity=math.pi * _LIGHT_SHARE * strength**_GAMMA,
            cast_shadow=False,
            position=tuple(place.tolist()),
        )

    # -- states -----------------------------------------------------------------------------------------------------

    def update(self, data: Any, selected: str | None) -> None:
        """Show a state of the model; ``data`` has its kinematics."""
        with self._server.atomic():
            for batch in self._batches.values():
                if not batch.moves:
                    continue
                if batch.is_plain:
                    placed = data.xpos[batch.bodies], data.xquat[batch.bodies]
                else:
                    placed = self._placed(batch.bodies, batch.pos, batch.quat, data)
                if not self._is_still(batch.sent, placed):
                    batch.handle.batched_positions, batch.handle.batched_wxyzs = batch.sent = placed
            self._show_selected(selected, data)

    def _is_still(self, sent: tuple[Array, Array], placed: tuple[Array, Array]) -> bool:
        """Whether the difference is too small to be seen: that to what was sent last, so that slow ways add up."""
        far = float(np.abs(placed[0] - sent[0]).max())
        return far < _STILL * float(self._model.stat.extent) and float(np.abs(placed[1] - sent[1]).max()) < _STILL

    def _show_selected(self, selected: str | None, data: Any) -> None:
        """An outline around the selected actor: its bodies, a little larger, of which only the far sides are drawn."""
        if self._outlined != (selected, self._model):
            self._outlined = (selected, self._model)
            for handle, _ in self._outline:
                handle.remove()
            self._outline = self._outlines(selected, data)
        for handle, body in self._outline:
            handle.position, handle.wxyz = data.xpos[body], data.xquat[body]

    def _outlines(self, selected: str | None, data: Any) -> list[tuple[Any, int]]:
        assert self._meshes is not None
        bodies = set(self._actors.get(selected or "", ()))
        by_body: dict[int, list[int]] = defaultdict(list)
        for geom in self._drawn_geoms():
            body, kind = int(self._model.geom_bodyid[geom]), int(self._model.geom_type[geom])
            if body in bodies and kind not in (PLANE, HFIELD):
                by_body[body].append(geom)
        if not by_body:
            return []
        largest = max(float(self._model.geom_rbound[geoms].max()) for geoms in by_body.values())
        reach = float(np.ptp(data.xpos[list(by_body)], axis=0).max()) + largest
        grow = float(np.clip(_OUTLINE_SHARE * reach, *_OUTLINE_M))
        found = []
        for body, geoms in by_body.items():
            vertices, faces = body_mesh(self._meshes, geoms)
            inside_out = Surface(grown(vertices, faces, grow), faces[:, ::-1])
            handle = self._server.scene.add_glb(
                f"/selected/{body}", write_glb(inside_out, Material(_SELECTED, shines=True)),
                cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
            found.append((handle, body))
        return found


def grown(vertices: NDArray[np.float32], faces: NDArray[np.uint32], by: float) -> NDArray[np.float32]:
    """The mesh with every vertex moved outward by that much; vertices at one place go together."""
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    _, place = np.unique(np.round(vertices, 6), axis=0, return_inverse=True)
    place = place.reshape(-1)
    sums = np.zeros((int(place.max()) + 1, 3))
    for corner in range(3):
        np.add.at(sums, place[faces[:, corner]], normals)
    outward = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    moved: NDArray[np.float32] = (vertices + by * outward[place]).astype(np.float32)
    return moved


def multiply_quats(first: Array, second: Array) -> Array:
    """Products of quaternions, w first, row by row."""
    w1, x1, y1, z1 = first.T
    w2, x2, y2, z2 = second.T
    return np.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        axis=1,
    )


def rotate(quats: Array, vectors: Array) -> Array:
    """Vectors turned by quaternions, w first, row by row."""
    axis = quats[:, 1:]
    across = 2 * np.cross(axis, vectors)
    return vectors + quats[:, :1] * across + np.cross(axis, across)
