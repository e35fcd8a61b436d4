"""The transform gizmo: moves and turns the selected actor of the edited level, in steps if that is wanted."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from urlab.editor.feed import ShownWorld

if TYPE_CHECKING:
    from urlab.editor.page import Page

_SIZE_PX = 90.0
"""On the screen, however large the actor is and however far away."""


class Gizmo:
    """On one page, while nothing plays. The level changes once, when the pointer lets go: that is one step to undo."""

    def __init__(self, page: "Page") -> None:
        self._page = page
        self._handle: Any = None
        self._shown: tuple[Any, ...] = ()
        self.snap_m = 0.0
        self.snap_deg = 0.0

    def show(self, world: ShownWorld) -> None:
        """Stand where the selected actor is; nowhere while the level plays, or another page holds the controls."""
        page, actor = self._page, world.view.selected
        is_wanted = actor is not None and not world.view.playing and page.editor.controls.holder == page.number
        wanted = (actor, world.view.model) if is_wanted else ()
        if wanted == self._shown:
            return
        self._shown = wanted
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        if is_wanted and actor is not None:
            self._add(actor)

    def _add(self, actor: str) -> None:
        found = self._page.read(lambda client: client.outliner.find_actors(name_prefix=actor)) or []
        info = next((one for one in found if one.name == actor), None)
        if info is None:
            return
        x, y, z, w = info.rotation_quat
        self._handle = self._page.client.scene.add_transform_controls(
            "/gizmo", scale=_SIZE_PX, position=info.location, wxyz=(w, x, y, z), depth_test=False, fixed=True
        )
        self._handle.on_drag_end(lambda _: self._move(actor))

    def _move(self, actor: str) -> None:
        if self._handle is None:
            return
        place = snapped(np.asarray(self._handle.position, float), self.snap_m)
        w, x, y, z = snapped_quat(np.asarray(self._handle.wxyz, float), self.snap_deg)
        self._page.change(
            f"move {actor}",
            lambda client: client.scene.set_actor_transform(
                actor, by_name=True, location=place.tolist(), rotation_quat=(x, y, z, w)
            ),
        )


def snapped(place: Any, step: float) -> Any:
    """The nearest place on a grid; the place itself where the step is 0."""
    return np.round(place / step) * step if step > 0 else place


def snapped_quat(wxyz: Any, step_deg: float) -> tuple[float, float, float, float]:
    """The orientation with its turn about the vertical in whole steps; itself where the step is 0."""
    w, x, y, z = (float(one) for one in wxyz)
    if step_deg > 0:
        yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        step = math.radians(step_deg)
        turn = (round(yaw / step) * step - yaw) / 2
        c, s = math.cos(turn), math.sin(turn)
        w, x, y, z = c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w
    return w, x, y, z
