"""Pictures for the pages, each drawn once however many pages show it: blueprints, and frames of cameras."""

import base64
import threading
import time
from html import escape
from typing import Any

from urlab.editor.server_link import FAILURES, ServerLink, reason
from urlab_client import URLabClient

_FRESH_S = 0.15
_MOST = 200
_CENTRED = "display:block;margin:0 auto 0.5em"


class BlueprintPictures:
    """Small pictures of models, kept as HTML. Any thread may call it."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link
        self._kept: dict[tuple[str, int, int], str] = {}

    def get(self, path: str, width: int, height: int) -> str:
        """An ``<img>`` of a blueprint; a sentence where it cannot be drawn."""
        key = (path, width, height)
        drawn = self._kept.get(key)
        if drawn is None:
            try:
                drawn = self._draw(*key)
            except FAILURES as failed:
                return f"<small>no picture: {escape(reason(failed)[:200])}</small>"
            if len(self._kept) >= _MOST:
                self._kept.clear()
            self._kept[key] = drawn
        return drawn

    def forget(self) -> None:
        """Models may look different now."""
        self._kept = {}

    def _draw(self, path: str, width: int, height: int) -> str:
        png = self._link.draw(lambda client: client.outliner.blueprint_picture(path, width=width, height=height))
        coded = base64.b64encode(png).decode()
        source, size = f"data:image/png;base64,{coded}", f'width="{width}" height="{height}"'
        return f'<img src="{source}" {size} alt="{escape(path)}" style="{_CENTRED}">'


class CameraFrames:
    """The newest frame of each camera that is asked for. Any thread may call it."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, Any]] = {}

    def names(self) -> list[str]:
        """``prefix/name`` of every camera of the running scene, and global ones by their name."""
        found = self._link.draw(lambda client: list(_views(client)))
        with self._lock:
            self._kept = {name: kept for name, kept in self._kept.items() if name in found}
        return found

    def frame(self, name: str) -> Any:
        """A `CameraFrame` of about now; LookupError when there is none yet, or no such camera any more."""
        with self._lock:
            when_s, frame = self._kept.get(name, (0.0, None))
            if time.monotonic() - when_s < _FRESH_S:
                return frame
            frame = self._link.draw(lambda client: _latest(client, name))
            self._kept[name] = (time.monotonic(), frame)
            return frame


def _views(client: URLabClient) -> dict[str, Any]:
    """The cameras of the scene that plays, by name: `ServerLink` shakes hands when it is another."""
    found = {
        f"{prefix}/{name}": view
        for prefix, robot in client.articulations.items()
        for name, view in robot.cameras.items()
    }
    return {**found, **client.global_cameras}


def _latest(client: URLabClient, name: str) -> Any:
    client.step(include_cameras={name: "latest"}, observations="minimal")
    prefix, _, short = name.rpartition("/")
    view = client.articulations[prefix].cameras[short] if prefix else client.global_cameras[name]
    if view.latest is None:
        raise LookupError(f"there is no picture of {name} yet")
    return view.latest
