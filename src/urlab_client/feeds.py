"""What streams bring to a client: the newest state, and the frames of its cameras.

Nothing here refers to the client: its threads must not keep a client alive that its owner has dropped.
"""

import threading
from collections.abc import Iterable

import msgspec

from urlab_client.handles.camera import GLOBAL, URLabCameraView
from urlab_client.transports import Transport
from urlab_wire.codec import Tree
from urlab_wire.stream_messages import StateFull


class StateFeed:
    """The newest whole state of the stream. ``take`` is called on the stream's thread, under the data lock."""

    def __init__(self, lock: "threading.RLock") -> None:
        self._lock = lock
        self._typed: tuple[Tree, StateFull] | None = None
        self.snapshot: Tree | None = None
        self.count = 0

    def take(self, snapshot: Tree) -> None:
        """Take one snapshot of the stream."""
        with self._lock:
            self.snapshot = snapshot
            self.count += 1

    def forget(self) -> None:
        """The scene is another one: its first state is yet to come."""
        with self._lock:
            self.snapshot = self._typed = None

    def newest(self) -> StateFull | None:
        """The newest state, typed; None before there is one."""
        with self._lock:
            snapshot, typed = self.snapshot, self._typed
            if snapshot is None:
                return None
            if typed is None or typed[0] is not snapshot:
                typed = self._typed = snapshot, msgspec.convert(snapshot, StateFull)
            return typed[1]


class CameraFeeds:
    """Feeds views from streams: those that `follow` was last given, at the endpoints that they had then."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._fed: list[tuple[URLabCameraView, str | None, str | None]] = []
        self._is_old = False

    def renew(self) -> None:
        """Begin all streams anew with the next `follow`: what is under way now belongs to another scene."""
        with self._lock:
            self._is_old = True

    def follow(self, views: Iterable[URLabCameraView]) -> None:
        """Feed these views, as far as they stream, and no others. Nothing happens where nothing changed."""
        wanted = [(view, view.zmq_endpoint, view.zmq_topic) for view in views if view.streams]
        with self._lock:
            if wanted == self._fed and not self._is_old:
                return
            self._is_old = False
            self._transport.stop_camera_streams()
            for view, endpoint, topic in wanted:
                self._transport.start_camera_stream(view.owner, view.name, endpoint or "", topic or "", view.take)
            self._fed = wanted

    def stop(self) -> None:
        """Feed no view any more; the frames that are there stay."""
        self.follow(())

    def frames(self) -> dict[str, Tree]:
        """What the streams have brought so far, newest frames only: ``{prefix: {camera: {pixels, mode, resolution,
        frame_count}}}``. The prefix of the scene's own cameras is ``global``. The caller holds the data lock."""
        shown: dict[str, Tree] = {}
        for view, _, _ in self._fed:
            frame = view.latest if view.streamed and not view._gone else None
            if frame is not None:
                shown.setdefault(view.owner or GLOBAL, {})[view.name] = {
                    "pixels": frame.pixels,
                    "mode": frame.mode,
                    "resolution": frame.resolution,
                    "frame_count": view.frame_count,
                }
        return shown
