"""Live pictures of the robots' cameras."""

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from viser import Icon

from urlab.editor.feed import ShownWorld
from urlab.editor.panels.base import Panel
from urlab.editor.server_link import FAILURES, reason
from urlab_client import URLabClient
from urlab_client.enums import CameraMode
from urlab_client.handles.frame import rgb_picture

if TYPE_CHECKING:
    from urlab.editor.page import Page

_NONE = "(off)"
_PERIOD_S = 0.2
_DEPTH_RANGE = (5, 95)
"""Percentiles of the depth that the legend covers."""
_MOST_PANES = 4
_NOTHING = 90
"""The grey of pixels that show no surface."""


class CamerasPanel(Panel):
    """One pane at first; its user may open more."""

    title = "Cameras"
    icon = Icon.CAMERA
    order = 30

    def build(self) -> None:
        """The first pane, and the button for another."""
        self._names: tuple[str, ...] = ()
        self._panes = [CameraPane(self.page)]
        self._more_panes = self.gui.add_folder(None)
        self._another = self.gui.add_button("Another camera", icon=Icon.PLUS)
        self._another.on_click(lambda _: self._add_pane())

    def _add_pane(self) -> None:
        if len(self._panes) < _MOST_PANES:
            with self._more_panes, self.gui.add_folder(f"Camera {len(self._panes) + 1}"):
                self._panes.append(CameraPane(self.page, self._names))
        self._another.visible = len(self._panes) < _MOST_PANES

    def show_model(self, world: ShownWorld) -> None:
        """The cameras of the scene that plays."""
        self._names = ()
        if world.view.playing:
            with contextlib.suppress(*FAILURES):
                self._names = tuple(self.page.editor.cameras.names())
        for pane in self._panes:
            pane.offer(self._names)

    def close(self) -> None:
        """No more pictures."""
        for pane in self._panes:
            pane.close()


class CameraPane:
    """One camera at a time, with its mode; a depth picture has a legend."""

    def __init__(self, page: "Page", names: tuple[str, ...] = ()) -> None:
        self._page = page
        gui = page.gui
        self._camera: Any = gui.add_dropdown("Camera", (_NONE, *names))
        self._mode = page.acting(gui.add_dropdown("Mode", tuple(mode.value for mode in CameraMode)))
        self._mode.on_update(self._change_mode)
        self._picture = gui.add_image(np.full((90, 160, 3), 230, np.uint8), visible=False)
        self._legend = gui.add_markdown("")
        page.button("Look through it in the view", "look through a camera", self._look_through, icon=Icon.EYE)
        self._is_closed, self._is_chosen = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._camera.on_update(lambda _: self._follow())

    def offer(self, names: tuple[str, ...]) -> None:
        """Let its user choose among these."""
        if self._camera.value not in (_NONE, *names):
            self._camera.value = _NONE
        self._camera.options = (_NONE, *names)

    def close(self) -> None:
        """No more pictures."""
        self._is_closed.set()
        self._is_chosen.set()

    def _change_mode(self, event: Any) -> None:
        if event.client is not None and self._camera.value != _NONE:
            camera, mode = self._camera.value, self._mode.value
            self._page.change(f"{camera} in {mode}", lambda client: client.runtime.set_camera_mode(camera, mode))

    def _look_through(self, client: URLabClient) -> None:
        if self._camera.value == _NONE:
            raise ValueError("choose a camera first")
        client.viewport.look_through(self._camera.value)

    def _follow(self) -> None:
        """Fetch pictures while a camera is chosen; a camera that no page shows draws nothing."""
        self._picture.visible = self._camera.value != _NONE
        self._is_chosen.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._fetch, name="urlab-editor-camera", daemon=True)
            self._thread.start()

    def _fetch(self) -> None:
        while not self._is_closed.is_set():
            begin_s, name = time.monotonic(), self._camera.value
            if name == _NONE:
                self._legend.content = ""
                self._is_chosen.wait()
                self._is_chosen.clear()
                continue
            try:
                self._show(self._page.editor.cameras.frame(name))
            except FAILURES as failed:
                self._legend.content = reason(failed)
            self._is_closed.wait(max(0.02, _PERIOD_S - (time.monotonic() - begin_s)))

    def _show(self, frame: Any) -> None:
        pixels, legend = shown_pixels(frame)
        self._picture.image = pixels
        self._legend.content = legend
        self._page.follow(self._mode, frame.mode.value)


def shown_pixels(frame: Any) -> tuple[Any, str]:
    """A camera frame as RGB, and what its colours mean."""
    values = frame.pixels
    if values.ndim == 2:
        is_hit = np.isfinite(values)
        if not is_hit.any():
            return np.full((*values.shape, 3), _NOTHING, np.uint8), "depth: nothing in sight"
        near, far = np.percentile(values[is_hit], _DEPTH_RANGE)
        share = np.clip((np.where(is_hit, values, far) - near) / max(far - near, 1e-6), 0, 1)
        pixels = depth_colors(share)
        pixels[~is_hit] = _NOTHING
        return pixels, f"depth: red {near:.2f} m to blue {far:.2f} m, grey: nothing"
    return rgb_picture(frame), ""


def depth_colors(share: Any) -> Any:
    """Near is red, far is blue, over yellow and green."""
    anchors = np.array([[200, 30, 30], [235, 200, 60], [60, 170, 90], [40, 70, 170]], float)
    place = share * (len(anchors) - 1)
    low = np.clip(place.astype(int), 0, len(anchors) - 2)
    part = (place - low)[..., None]
    return (anchors[low] * (1 - part) + anchors[low + 1] * part).astype(np.uint8)
