"""The state and the pictures of a running scene in shared memory, written while a client has them open."""

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from urlab.errors import OpTimeout
from urlab.transport.publisher import SceneSource, StreamedCamera, no_op
from urlab.transport.shm.folder import ShmFolder, ShmUnavailable
from urlab.transport.shm.readers import Readers
from urlab.transport.shm.sealed import OwnedRegion
from urlab_wire.shm import STATE_FILE, STATE_STRIDE, STREAM_BUFFERS, camera_file, camera_meta_file
from urlab_wire.shm_wait import wake
from urlab_wire.stream_messages import pack_metadata

log = logging.getLogger("urlab.transport")

_SIZE_BYTES = 4
_META_STRIDE = 4096
_ROOM = 2
"""How many times larger than the first state a state may become; it hardly changes."""

_ATTACH_S = 5.0
_LOCK_S = 0.05


class ShmStreams:
    """Regions of one scene after another. They come with a scene and go with it."""

    def __init__(self, folder: ShmFolder) -> None:
        self._folder = folder
        self._state_lock, self._camera_lock = threading.Lock(), threading.Lock()
        self._source: SceneSource | None = None
        self._state: OwnedRegion | None = None
        self._cameras: dict[str, tuple[OwnedRegion, OwnedRegion]] = {}
        self._muted: set[str] = set()
        self._is_outdated = False
        self._warned_of_size = False
        self.on_subscriber: Callable[[], None] = no_op
        """Called, on a thread of its own, when a region gets its first reader or loses its last."""
        self._readers = Readers(self._readers_changed)

    def attach(self, source: SceneSource, cameras: Sequence[StreamedCamera]) -> None:
        """Make the regions of a scene, as far as there is room, and keep them up to date."""
        with source.locked(_ATTACH_S):
            first = source.state()
        with self._camera_lock:
            self._muted.clear()
            for camera in cameras:
                self._make_camera(camera)
        with self._state_lock:
            self._warned_of_size = False
            self._source = source
            self._state = self._make(STATE_FILE, max(STATE_STRIDE, _ROOM * len(first) + _SIZE_BYTES))
            if self._state is not None:
                self._state.region.write(first)
            self._is_outdated = False
        source.listen(self._published)

    def detach(self) -> None:
        """Take the regions away."""
        with self._state_lock:
            source, self._source = self._source, None
            state, self._state = self._state, None
        with self._camera_lock:
            cameras, self._cameras = self._cameras, {}
        if source is not None:
            source.unlisten(self._published)
        for region in (*([state] if state else []), *(one for pair in cameras.values() for one in pair)):
            self._readers.unwatch(region.path.name)
            region.close()

    def has_camera(self, topic: str) -> bool:
        """Whether a camera has a region, and is not muted."""
        return topic in self._cameras and topic not in self._muted

    def mute(self, topic: str, muted: bool) -> None:
        """Stop, or resume, writing a camera's pictures."""
        (self._muted.add if muted else self._muted.discard)(topic)

    def wants(self, topic: str) -> bool:
        """Whether a client has a camera's pictures open. Any thread, at once."""
        pair = self._cameras.get(topic)
        return pair is not None and topic not in self._muted and self._readers.reads(pair[1].path.name)

    def publish(self, topic: str, metadata: Mapping[str, Any], data: bytes | memoryview) -> None:
        """Write a picture, after what is known of it: both then have the same sequence."""
        if not self.wants(topic):
            return
        with self._camera_lock:
            pair = self._cameras.get(topic)
            if pair is None or len(data) > pair[1].region.capacity:
                return
            for region, payload in zip(pair, (pack_metadata(metadata), data), strict=True):
                region.region.write(payload)
                wake(region.region)

    def close(self) -> None:
        """Take everything away. Once is enough."""
        self.detach()
        self._readers.close()

    def _published(self) -> None:
        """On the stepping thread, under the physics lock."""
        if self._readers.reads(STATE_FILE):
            self._write_state()
        elif not self._is_outdated:
            self._outdate_state()

    def _outdate_state(self) -> None:
        """The next reader shall not take a state from before, perhaps of another episode, for the present one."""
        with self._state_lock:
            if self._state is not None:
                self._state.region.outdate()
            self._is_outdated = True

    def _readers_changed(self) -> None:
        """On the readers' thread: a client that begins to read gets the present state, though nothing may move."""
        source = self._source
        if source is not None and self._readers.reads(STATE_FILE):
            with contextlib.suppress(OpTimeout), source.locked(_LOCK_S):  # a long step publishes its own end
                self._write_state()
        self.on_subscriber()

    def _write_state(self) -> None:
        """The caller holds the physics lock."""
        with self._state_lock:
            source, state = self._source, self._state
            if source is None or state is None:
                return
            payload = source.state()
            if len(payload) > state.region.capacity:
                self._warn_of_size(len(payload), state.region.capacity)
                return
            state.region.write(payload)
            self._is_outdated = False
            wake(state.region)

    def _warn_of_size(self, size: int, capacity: int) -> None:
        if not self._warned_of_size:
            log.warning("the state has %d bytes, and %s holds %d: it is not written", size, STATE_FILE, capacity)
            self._warned_of_size = True

    def _make_camera(self, camera: StreamedCamera) -> None:
        meta = self._make(camera_meta_file(camera.prefix, camera.short_name), _META_STRIDE)
        if meta is None:
            return
        pixels = self._make(camera_file(camera.prefix, camera.short_name), camera.frame_bytes + _SIZE_BYTES)
        if pixels is None:
            self._readers.unwatch(meta.path.name)
            meta.close()
            return
        self._cameras[camera.topic] = (meta, pixels)

    def _make(self, name: str, stride: int) -> OwnedRegion | None:
        try:
            return self._folder.make_region(name, stride, STREAM_BUFFERS, readers=self._readers)
        except ShmUnavailable as full:
            log.warning("%s is not in shared memory, clients get it over ZeroMQ: %s", name, full)
            return None
