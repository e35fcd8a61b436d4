"""Skins and flexes: meshes whose vertices move by themselves, sent anew with every state that moved them."""

from typing import Any

import mujoco
import numpy as np
import viser

from urlab.editor.feed import ShownWorld

_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)
_LINE_PX = 3.0


class SoftBodies:
    """Shows the skins and flexes of one world after the other. MuJoCo computes where their vertices are. One thread."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._model: Any = None
        self._scene: Any = None
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._handles: dict[str, Any] = {}

    def update(self, world: ShownWorld) -> None:
        """Show a state; ``world.data`` has its kinematics."""
        model = world.model
        if self._model is not model:
            for handle in self._handles.values():
                handle.remove()
            self._handles, self._model = {}, model
            self._scene = mujoco.MjvScene(model, maxgeom=1) if model.nskin or model.nflex else None
        if self._scene is None:
            return
        self._option.geomgroup[:] = 0
        category = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(model, world.data, self._option, None, self._camera, category, self._scene)
        for skin in range(model.nskin):
            self._show_skin(skin)
        for flex in range(model.nflex):
            self._show_flex(flex)

    def _show_skin(self, skin: int) -> None:
        model, scene = self._model, self._scene
        first, count = int(model.skin_vertadr[skin]), int(model.skin_vertnum[skin])
        face, faces = int(model.skin_faceadr[skin]), int(model.skin_facenum[skin])
        vertices = np.asarray(scene.skinvert).reshape(-1, 3)[first : first + count]
        color = _color(model, int(model.skin_matid[skin]), model.skin_rgba[skin])
        self._show_mesh(f"skin-{skin}", vertices, model.skin_face[face : face + faces], color)

    def _show_flex(self, flex: int) -> None:
        model, scene = self._model, self._scene
        color = _color(model, int(model.flex_matid[flex]), model.flex_rgba[flex])
        first, count = int(model.flex_vertadr[flex]), int(model.flex_vertnum[flex])
        vertices = np.asarray(scene.flexvert).reshape(-1, 3)[first : first + count]
        if int(model.flex_dim[flex]) == 1:
            edge, edges = int(model.flex_edgeadr[flex]), int(model.flex_edgenum[flex])
            self._show_lines(f"flex-{flex}", vertices[np.asarray(model.flex_edge[edge : edge + edges])], color)
            return
        corners, elements = int(model.flex_dim[flex]) + 1, int(model.flex_elemnum[flex])
        element = int(model.flex_elemdataadr[flex])
        indices = np.asarray(model.flex_elem[element : element + elements * corners]).reshape(-1, corners)
        sides = [indices] if corners == 3 else [indices[:, one] for one in ([0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3])]
        self._show_mesh(f"flex-{flex}", vertices, np.concatenate(sides), color)

    def _show_mesh(self, name: str, vertices: Any, faces: Any, color: tuple[int, int, int]) -> None:
        handle = self._handles.get(name)
        if handle is None:
            self._handles[name] = self._server.scene.add_mesh_simple(
                f"/soft/{name}", np.asarray(vertices, np.float32), np.asarray(faces, np.uint32), color=color,
                side="double", cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        else:
            handle.vertices = np.asarray(vertices, np.float32)

    def _show_lines(self, name: str, points: Any, color: tuple[int, int, int]) -> None:
        handle = self._handles.get(name)
        if handle is None:
            self._handles[name] = self._server.scene.add_line_segments(
                f"/soft/{name}", np.asarray(points, np.float32), colors=color, thickness=_LINE_PX
            )
        else:
            handle.points = np.asarray(points, np.float32)


def _color(model: Any, material: int, own: Any) -> tuple[int, int, int]:
    """The material's colour, unless it has one of its own."""
    is_default = bool(np.allclose(own, _DEFAULT_RGBA))
    rgba = model.mat_rgba[material] if material >= 0 and is_default else own
    red, green, blue = (int(255 * min(1.0, max(0.0, float(one)))) for one in rgba[:3])
    return red, green, blue
