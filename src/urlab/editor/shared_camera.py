"""The camera of the page that holds the controls and that of `client.viewport` are one: both see what moves it."""

import math
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import viser

from urlab.editor.feed import ShownWorld
from urlab.editor.server_link import FAILURES

if TYPE_CHECKING:
    from urlab.editor.editor import Editor

_SEND_PERIOD_S = 0.1
_SAME = 1e-3
_OPENING_S, _MOVING_S = 15.0, 1.0
"""How long a page that opens, or was moved, may still tell where its camera was before."""


class SharedCamera:
    """Follows the viewport's camera, and moves it when a user turns that of the page."""

    def __init__(self, editor: "Editor") -> None:
        self._editor = editor
        self._known: tuple[Any, Any, float] | None = None
        """Location, direction of view and field of view that both have agreed on."""
        self._lock = threading.Lock()
        self._sent_s = 0.0
        self._moved_by_user_s = 0.0
        self._placing: dict[int, float] = {}
        """Until when a page, by its number, is on its way to where it was told to look."""

    def place(self, client: viser.ClientHandle) -> None:
        """A new page looks where the viewport does."""
        self._placing[client.client_id] = time.monotonic() + _OPENING_S
        world = self._editor.feed.world
        if world is not None:
            self._move(client, world)
        client.camera.on_update(self._note_user)

    def forget(self, number: int) -> None:
        """A page is gone."""
        self._placing.pop(number, None)

    def follow(self, world: ShownWorld) -> None:
        """Move the page's camera if the viewport's was moved otherwise, or send it the page's."""
        holder = self._editor.controls.holder
        page = next((one for one in self._editor.pages if one.number == holder), None)
        if page is None or not page.shares_camera:
            return
        there = _pose(world)
        with self._lock:
            known = self._known
        if known is None or not _is_same(there, known):
            if time.monotonic() - self._moved_by_user_s < 2 * _SEND_PERIOD_S and known is not None:
                return
            with self._lock:
                self._known = there
            self._move(page.client, world)

    def _move(self, client: viser.ClientHandle, world: ShownWorld) -> None:
        number = client.client_id
        self._placing[number] = max(self._placing.get(number, 0.0), time.monotonic() + _MOVING_S)
        location, forward, fov_deg = _pose(world)
        distance = max(0.2, float(np.dot(world.model.stat.center - location, forward)))
        aspect = client.camera.aspect or 16 / 9
        with client.atomic():
            client.camera.position = location
            client.camera.look_at = location + min(distance, 100.0) * forward
            client.camera.fov = 2 * math.atan(math.tan(math.radians(fov_deg) / 2) / aspect)

    def _note_user(self, camera: viser.CameraHandle) -> None:
        client, controls = camera.client, self._editor.controls
        page = next((one for one in self._editor.pages if one.number == client.client_id), None)
        if page is None or controls.holder != page.number or not page.shares_camera:
            return
        forward = np.asarray(camera.look_at) - np.asarray(camera.position)
        length = float(np.linalg.norm(forward))
        if length < 1e-9:
            return
        fov_deg = math.degrees(2 * math.atan(math.tan(camera.fov / 2) * camera.aspect))
        here = (np.asarray(camera.position), forward / length, fov_deg)
        with self._lock:
            if (
                self._known is None
                or self._is_on_its_way(page.number, here, self._known)
                or _is_same(here, self._known)
            ):
                return
            self._known = here
        self._moved_by_user_s = now_s = time.monotonic()
        if now_s - self._sent_s < _SEND_PERIOD_S:
            return
        self._sent_s = now_s
        self._send(here)

    def _is_on_its_way(self, number: int, here: tuple[Any, Any, float], there: tuple[Any, Any, float]) -> bool:
        """Whether a page has not come yet to where it was told to look: what it says then is no user's doing."""
        until_s = self._placing.get(number)
        if until_s is None:
            return False
        has_come = _is_same((*here[:2], there[2]), there)
        if has_come or time.monotonic() > until_s:
            self._placing.pop(number, None)
            return has_come
        return True

    def _send(self, pose: tuple[Any, Any, float]) -> None:
        location, forward, fov_deg = pose
        pitch = -math.degrees(math.asin(max(-1.0, min(1.0, float(forward[2])))))
        yaw = math.degrees(math.atan2(float(forward[1]), float(forward[0])))
        fov = min(max(fov_deg, 1.0), 179.0)
        try:
            self._editor.link.change(
                lambda client: client.viewport.set_camera(location.tolist(), rotation_euler=(0.0, pitch, yaw), fov=fov)
            )
        except FAILURES:
            return


def _pose(world: ShownWorld) -> tuple[Any, Any, float]:
    x, y, z, w = world.view.rotation_quat
    forward = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
    return np.array(world.view.location), forward, world.view.fov


def _is_same(one: tuple[Any, Any, float], other: tuple[Any, Any, float]) -> bool:
    near = max(_SAME, _SAME * float(np.linalg.norm(one[0])))
    return bool(
        np.abs(one[0] - other[0]).max() < near
        and np.abs(one[1] - other[1]).max() < _SAME
        and abs(one[2] - other[2]) < 0.5
    )
