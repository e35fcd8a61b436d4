"""What is drawn over the world: MuJoCo's own overlays (contacts, forces, frames, names ...), tendons, debug drawings.

MuJoCo says what an overlay looks like: it lays out a scene of simple shapes, which are shown here as instances of a
few meshes. Their number changes from state to state, so there is room for more, and those without use have no size.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
import viser

from urlab.editor.feed import ShownWorld
from urlab.editor.shapes import unit_mesh
from urlab.overlay import VisualFlags
from urlab_wire.ops.viewport import DrawingBlock

_GEOM = mujoco.mjtGeom
_ARROWS = (int(_GEOM.mjGEOM_ARROW), int(_GEOM.mjGEOM_ARROW1), int(_GEOM.mjGEOM_ARROW2))
_LINE, _LABEL = int(_GEOM.mjGEOM_LINE), int(_GEOM.mjGEOM_LABEL)
_SHAPES = {
    int(_GEOM.mjGEOM_SPHERE): "sphere",
    int(_GEOM.mjGEOM_ELLIPSOID): "sphere",
    int(_GEOM.mjGEOM_CAPSULE): "cylinder",
    int(_GEOM.mjGEOM_CYLINDER): "cylinder",
    int(_GEOM.mjGEOM_BOX): "box",
    int(_GEOM.mjGEOM_LINEBOX): "box",
}
_DECOR = int(mujoco.mjtCatBit.mjCAT_DECOR)
_MOST_GEOMS, _MOST_LABELS = 5000, 200
_HEAD_SHARE, _HEAD_WIDTH = 0.25, 2.0
_LINE_M = 0.004
_MARKER_M = 0.05
_CLEAR = "-clear"
"""What is seen through is drawn in another, slower way, so it is a batch of its own."""
_OVERLAYS = frozenset(
    {
        "contacts", "contact_forces", "split_contact_forces", "joints", "com", "frames", "inertia", "scaled_inertia",
        "names", "perturbation", "actuators", "activations", "cameras", "lights", "constraints", "rangefinders",
        "skeleton", "body_boxes", "mesh_boxes", "sdf_iterations",
    }
)  # fmt: skip
"""Those that are laid out here when they are switched on."""
DRAWN = _OVERLAYS | {"tendons", "transparent"}
"""Overlays that the page draws; MuJoCo has tendons unless they are switched off, `world_scene` what is seen through."""
_PARTS = tuple(int(kind) for kind in (mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_SITE))
"""Elements of the model itself: `world_scene` draws them, and only their labels and frames are ours."""

Row = tuple[Any, Any, Any, Any]
"""Position, quaternion (w first), scale, colour with opacity."""


def not_drawn(mode: str, overlays: Mapping[str, bool | str]) -> list[str]:
    """What the viewport's pictures show, or leave out, as the page cannot: a mode, and overlays that were switched."""
    at_first = VisualFlags().in_force()
    switched = [word for word, value in overlays.items() if word not in DRAWN and value != at_first.get(word)]
    return [*(["reflections"] if mode == "reflections" else []), *(word.replace("_", " ") for word in switched)]


class Decorations:
    """Shows overlays and drawings of one world after the other. One thread calls it."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._handles: dict[str, Any] = {}
        self._labels: dict[str, Any] = {}
        self._model: Any = None
        self._scene: Any = None
        self._option: Any = None
        self._camera = mujoco.MjvCamera()

    def update(self, world: ShownWorld) -> None:
        """Draw what belongs to this state."""
        rows: dict[str, list[Row]] = defaultdict(list)
        labels: list[tuple[str, Any]] = []
        if self._is_wanted(world):
            self._add_overlays(world, rows, labels)
        for drawing in world.view.drawings:
            self._add_drawing(drawing, rows, labels)
        sorted_rows: dict[str, list[Row]] = defaultdict(list)
        for word, some in rows.items():
            for row in some:
                sorted_rows[word if row[3][3] >= 1 else f"{word}{_CLEAR}"].append(row)
        for word in {*sorted_rows, *self._handles}:
            self._show(word, sorted_rows.get(word, []))
        self._show_labels(labels[:_MOST_LABELS])

    # -- overlays ---------------------------------------------------------------------------------------------------

    def _is_wanted(self, world: ShownWorld) -> bool:
        shown = [word for word, value in world.view.overlays.items() if value and word in _OVERLAYS]
        return bool(shown) or bool(world.model.ntendon) or bool(world.view.held)

    def _add_overlays(self, world: ShownWorld, rows: dict[str, list[Row]], labels: list[tuple[str, Any]]) -> None:
        model, data = world.model, world.data
        if self._model is not model:
            self._model, self._scene = model, mujoco.MjvScene(model, maxgeom=_MOST_GEOMS)
            self._option = mujoco.MjvOption()
        flags = VisualFlags().changed(dict(world.view.overlays))
        flags.apply(self._option)
        kinds = {world.view.overlays.get("frames"), world.view.overlays.get("names")}
        default = mujoco.MjvOption()
        self._option.geomgroup[:] = default.geomgroup if "geom" in kinds else 0
        self._option.sitegroup[:] = default.sitegroup if "site" in kinds else 0
        if flags.needs_dynamics:
            mujoco.mj_forward(model, data)
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, data, self._option, _perturb(world), self._camera, everything, self._scene)
        for geom in self._scene.geoms[: self._scene.ngeom]:
            label = geom.label
            if label:
                labels.append((label, geom.pos.copy()))
            if int(geom.objtype) not in _PARTS or int(geom.category) == _DECOR:
                _add_geom(geom, rows)

    # -- debug drawings ---------------------------------------------------------------------------------------------

    def _add_drawing(self, drawing: DrawingBlock, rows: dict[str, list[Row]], labels: list[tuple[str, Any]]) -> None:
        color = np.array([*(drawing.color or (1.0, 1.0, 1.0)), 1.0])
        place = np.array(drawing.location or (0.0, 0.0, 0.0))
        wxyz = np.array([1.0, 0.0, 0.0, 0.0])
        if drawing.rotation_quat is not None:
            x, y, z, w = drawing.rotation_quat
            wxyz = np.array([w, x, y, z])
        if drawing.kind == "marker":
            rows["sphere"].append((place, wxyz, np.full(3, _MARKER_M), color))
            if drawing.label:
                labels.append((drawing.label, place))
        elif drawing.kind in ("line", "arrow"):
            start, end = np.array(drawing.from_), np.array(drawing.to)
            width = _LINE_M * max(1.0, drawing.thickness or 1.0) / 2
            length = float(np.linalg.norm(end - start))
            head = 0.0
            if drawing.kind == "arrow":
                head = min(length, _HEAD_SHARE * length if drawing.arrow_size is None else drawing.arrow_size)
            _add_stick(rows, start, end, width, color, head)
        elif drawing.kind == "box":
            _add_edges(rows, place, wxyz, np.array(drawing.half_extents), color)
        elif drawing.kind == "axes":
            _add_axes(rows, place, wxyz, drawing.scale or 0.2)

    # -- instances --------------------------------------------------------------------------------------------------

    def _show(self, word: str, rows: Sequence[Row]) -> None:
        handle = self._handles.get(word)
        room = 0 if handle is None else len(handle.batched_positions)
        if not rows and handle is None:
            return
        if len(rows) > room:
            room = max(16, 2 ** math.ceil(math.log2(len(rows))))
            if handle is not None:
                handle.remove()
            handle = None
        positions, wxyzs = np.zeros((room, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (room, 1))
        scales, colors, opacities = np.zeros((room, 3)), np.zeros((room, 3), np.uint8), np.ones(room)
        for index, (position, wxyz, scale, rgba) in enumerate(rows):
            positions[index], wxyzs[index], scales[index] = position, wxyz, scale
            colors[index], opacities[index] = np.clip(255 * rgba[:3], 0, 255), rgba[3]
        if handle is None:
            vertices, faces = unit_mesh(word.removesuffix(_CLEAR))
            self._handles[word] = self._server.scene.add_batched_meshes_simple(
                f"/over/{word}", vertices, faces, wxyzs, positions, batched_scales=scales, batched_colors=colors,
                batched_opacities=opacities if word.endswith(_CLEAR) else None, lod="off", cast_shadow=False,
                receive_shadow=False,
            )  # fmt: skip
            return
        handle.batched_positions, handle.batched_wxyzs, handle.batched_scales = positions, wxyzs, scales
        handle.batched_colors = colors
        if word.endswith(_CLEAR):
            handle.batched_opacities = opacities

    def _show_labels(self, labels: Sequence[tuple[str, Any]]) -> None:
        """A label each; those at the same place in the list are moved, not made anew."""
        wanted = {f"{index}:{text}": (text, place) for index, (text, place) in enumerate(labels)}
        for key in [key for key in self._labels if key not in wanted]:
            self._labels.pop(key).remove()
        for number, (key, (text, place)) in enumerate(wanted.items()):
            if key in self._labels:
                self._labels[key].position = place
            else:
                self._labels[key] = self._server.scene.add_label(
                    f"/names/{number}-{abs(hash(key))}", text, position=place
                )


def _perturb(world: ShownWorld) -> Any:
    """The body that is held, as MuJoCo draws it."""
    if not world.view.held:
        return None
    held, perturb = world.view.held[0], mujoco.MjvPerturb()
    perturb.select, perturb.active = held.body_id, int(mujoco.mjtPertBit.mjPERT_TRANSLATE)
    perturb.localpos[:] = held.point
    if held.target is not None:
        perturb.refselpos[:] = held.target
    return perturb


def _add_geom(geom: Any, rows: dict[str, list[Row]]) -> None:
    kind = int(geom.type)
    wxyz = np.empty(4)
    mujoco.mju_mat2Quat(wxyz, np.asarray(geom.mat, float).ravel())
    size, rgba, place = np.asarray(geom.size, float), np.asarray(geom.rgba, float), np.asarray(geom.pos, float)
    along = np.asarray(geom.mat, float).reshape(3, 3)[:, 2]
    if kind in _ARROWS:
        length = 2 * size[2]
        _add_stick(rows, place, place + length * along, size[0], rgba, _HEAD_SHARE * length)
    elif kind == _LINE:
        _add_stick(rows, place, place + size[2] * along, _LINE_M / 2, rgba, 0.0)
    elif kind in _SHAPES:
        rows[_SHAPES[kind]].append((place, wxyz, size, rgba))


def _add_stick(rows: dict[str, list[Row]], start: Any, end: Any, radius: float, rgba: Any, head: float) -> None:
    """A cylinder from point to point, which ends in a cone of that length."""
    way = end - start
    length = float(np.linalg.norm(way))
    if length < 1e-9:
        return
    wxyz = np.empty(4)
    mujoco.mju_quatZ2Vec(wxyz, way / length)
    shaft = max(length - head, 1e-6)
    rows["cylinder"].append((start + way * (shaft / length / 2), wxyz, np.array([radius, radius, shaft / 2]), rgba))
    if head > 0:
        wide = max(_HEAD_WIDTH * radius, 0.3 * head)
        rows["cone"].append((start + way * (shaft / length), wxyz, np.array([wide, wide, head]), rgba))


def _add_edges(rows: dict[str, list[Row]], center: Any, wxyz: Any, half: Any, rgba: Any) -> None:
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, wxyz)
    turn = flat.reshape(3, 3)
    for axis in range(3):
        one, other = (axis + 1) % 3, (axis + 2) % 3
        for first in (-1, 1):
            for second in (-1, 1):
                middle = np.zeros(3)
                middle[one], middle[other] = first * half[one], second * half[other]
                reach = np.zeros(3)
                reach[axis] = half[axis]
                start, end = center + turn @ (middle - reach), center + turn @ (middle + reach)
                _add_stick(rows, start, end, _LINE_M / 2, rgba, 0.0)


def _add_axes(rows: dict[str, list[Row]], place: Any, wxyz: Any, length: float) -> None:
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, wxyz)
    for axis, column in enumerate(turn.reshape(3, 3).T):
        _add_stick(rows, place, place + length * column, 0.02 * length, np.array([*np.eye(3)[axis], 1.0]), 0.0)
