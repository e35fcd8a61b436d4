"""The camera streams of a client: which views are fed, and the frames that they brought."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from urlab_client.handles.camera import GLOBAL, URLabCameraView
from urlab_client.transports import Transport


class StreamedFrames(dict[str, Any]):
    """The streamed frames that a live step reports: ``{prefix: {camera: {pixels, mode, resolution, frame_count}}}``.

    The prefix of the scene's own cameras is ``global``. Frames that the step itself brought are found as well, under
    the names that it asked for.
    """

    def __init__(self, streamed: Mapping[str, Any], of_step: Mapping[str, Any] | None) -> None:
        super().__init__(streamed)
        self._of_step = of_step or {}

    def __missing__(self, key: str) -> Any:
        return self._of_step[key]


class CameraFeeds:
    """Feeds views from streams: those it was last told to follow, at the endpoints that they had then."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._fed: list[tuple[URLabCameraView, str | None, str | None]] = []

    def follow(self, views: Iterable[URLabCameraView]) -> None:
        """Feed these views, as far as they stream, and no others. Nothing happens where nothing changed."""
        wanted = [(view, view.zmq_endpoint, view.zmq_topic) for view in views if view.streams]
        with self._lock:
            if wanted == self._fed:
                return
            self._transport.stop_camera_streams()
            for view, endpoint, topic in wanted:
                self._transport.start_camera_stream(view.owner, view.name, endpoint or "", topic or "", view.take)
            self._fed = wanted

    def stop(self) -> None:
        """Feed nobody; the frames that are there stay."""
        self.follow(())

    def frames(self) -> dict[str, dict[str, Any]]:
        """What the streams have brought so far, newest frames only. The caller holds the data lock."""
        shown: dict[str, dict[str, Any]] = {}
        for view, _, _ in self._fed:
            frame = view.latest if view.streamed else None
            if frame is not None:
                shown.setdefault(view.owner or GLOBAL, {})[view.name] = {
                    "pixels": frame.pixels,
                    "mode": frame.mode,
                    "resolution": frame.resolution,
                    "frame_count": view.frame_count,
                }
        return shown
