"""Shared memory: the transport for a server on the same machine, with ZeroMQ beside it."""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from urlab_client.errors import TRANSPORT_ERROR, ServerEndedError, URLabRPCError
from urlab_client.transports.base import FrameCallback, StateCallback, Transport
from urlab_client.transports.shm_file import InUse, Unusable
from urlab_client.transports.shm_link import ShmLink
from urlab_client.transports.shm_streams import CameraRegionSource, RegionSource, RegionStream, StateRegionSource
from urlab_client.transports.zmq import ZmqTransport
from urlab_wire.codec import DecodeError, decode
from urlab_wire.errors import ErrorCode
from urlab_wire.shm import ShmError

_SMALL_BYTES = 1024
"""No hello is larger, and no error that asks for ZeroMQ."""

_OVER_ZMQ = (ErrorCode.REPLY_TOO_LARGE.value, ErrorCode.WRONG_TRANSPORT.value)
_WORDS = tuple(word.encode() for word in _OVER_ZMQ)

_log = logging.getLogger(__name__)


class ShmTransport(Transport):
    """Requests and streams in the shared memory of the server that the handshake names.

    What has no place there goes over ``zmq``, which this transport owns: every hello, a frame or a reply that is too
    large, a camera without a region, everything while a late reply is due. So does the whole session where shared
    memory cannot be used (the log says why, once) or another client uses it: there is one pair of regions for requests.
    Every handshake tries again. ``shm_dir`` is where the server's folder is, for a caller who knows better.
    """

    def __init__(self, zmq: ZmqTransport, shm_dir: str | None = None) -> None:
        self._zmq = zmq
        self._shm_dir = shm_dir
        self._request_lock: threading.RLock = threading.RLock()
        self._link: ShmLink | None = None
        self._closed = False
        self._logged_reason = ""
        self._streams_lock = threading.Lock()
        self._streams_folder: Path | None = None
        self._states: tuple[Path, RegionStream] | None = None
        self._cameras: list[RegionStream] = []

    @property
    def is_attached(self) -> bool:
        """Whether this client has the server's regions for requests."""
        return self._link is not None

    # -- requests -----------------------------------------------------------------------------------------------

    def request(self, frame: bytes, *, timeout_ms: int) -> bytes:
        """One round trip, through shared memory where that can be."""
        with self._request_lock:
            link = self._link
            if link is None or not 0 < len(frame) <= link.capacity or not link.is_free or _is_hello(frame):
                return self._zmq.request(frame, timeout_ms=timeout_ms)
            try:
                reply = link.ask(frame, timeout_ms / 1000)
            except ServerEndedError:
                self._detach()
                raise
            except ShmError as spoilt:
                self._detach()
                raise URLabRPCError(
                    TRANSPORT_ERROR, f"the shared memory of {link.folder} is spoilt: {spoilt}"
                ) from spoilt
            if len(reply) <= _SMALL_BYTES and _asks_for_zmq(reply):
                return self._zmq.request(frame, timeout_ms=timeout_ms)
            return reply

    def absorb_handshake(self, handshake: Mapping[str, Any]) -> None:
        """Go where the server's shared memory is now."""
        self._zmq.absorb_handshake(handshake)
        place = self._shm_dir or handshake.get("shm_session_dir")
        with self._request_lock:
            if self._closed:
                return
            try:
                self._attach(_folder(place))
                usable, self._logged_reason = True, ""
            except Unusable as refused:
                self._detach()
                usable = isinstance(refused, InUse)
                self._log_reason(str(refused), logging.INFO if usable else logging.WARNING)
            with self._streams_lock:
                self._streams_folder = Path(str(place)) if usable else None

    def close(self) -> None:
        """Stop the streams, let other clients have the regions, and close the sockets."""
        with self._request_lock:
            self._closed = True
        with self._streams_lock:
            self._streams_folder = None
        self.stop_state_stream()
        self.stop_camera_streams()
        with self._request_lock:
            self._detach()
        self._zmq.close()

    def _attach(self, folder: Path) -> None:
        if self._link is not None and self._link.folder == folder and self._link.is_current:
            return
        self._detach()
        self._link = ShmLink(folder, self._zmq.step_endpoint)

    def _detach(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _log_reason(self, reason: str, level: int) -> None:
        """Say why it is ZeroMQ, unless that was said already."""
        if reason != self._logged_reason:
            _log.log(level, "no shared memory with %s, ZeroMQ instead: %s", self._zmq.step_endpoint, reason)
            self._logged_reason = reason

    # -- streams ------------------------------------------------------------------------------------------------

    def start_state_stream(self, on_snapshot: StateCallback) -> None:
        """Hand over whole-state snapshots; of several at once the newest only."""
        folder, running = self._streams_folder, self._states
        if running is not None and running[0] == folder:
            return
        self._stop_states()
        if self._begin_states(on_snapshot):
            self._zmq.stop_state_stream()
        else:
            self._zmq.start_state_stream(on_snapshot)

    def stop_state_stream(self) -> None:
        """End the stream and wait for its thread."""
        self._stop_states()
        self._zmq.stop_state_stream()

    def start_camera_stream(self, prefix: str, name: str, endpoint: str, topic: str, on_frame: FrameCallback) -> None:
        """Hand over the pictures of one more camera; of several at once the newest only."""
        with self._streams_lock:
            folder = self._streams_folder
            if folder is not None:
                stream = _open("urlab-shm-camera", lambda: CameraRegionSource(folder, prefix, name, on_frame))
                if stream is not None:
                    self._cameras.append(stream)
                    return
        self._zmq.start_camera_stream(prefix, name, endpoint, topic, on_frame)

    def stop_camera_streams(self) -> None:
        """End all camera streams and wait for their threads."""
        with self._streams_lock:
            cameras, self._cameras = self._cameras, []
        for stream in cameras:
            stream.stop()
        self._zmq.stop_camera_streams()

    def _begin_states(self, on_snapshot: StateCallback) -> bool:
        """Whether states come out of shared memory now."""
        with self._streams_lock:
            folder = self._streams_folder
            if self._states is None and folder is not None:
                stream = _open("urlab-shm-states", lambda: StateRegionSource(folder, on_snapshot))
                self._states = None if stream is None else (folder, stream)
            return self._states is not None

    def _stop_states(self) -> None:
        with self._streams_lock:
            states, self._states = self._states, None
        if states is not None:
            states[1].stop()


def _folder(place: str | None) -> Path:
    """Where the regions are; `Unusable` when that is nowhere on this machine."""
    if sys.platform == "win32":
        raise Unusable("it is not used on Windows")
    if not place:
        raise Unusable("the server has none (it was started with --no-shm, or could not make any)")
    folder = Path(str(place))
    with contextlib.suppress(OSError):
        if folder.is_dir():
            _check_access(folder)
            return folder
    raise Unusable(f"the folder {folder} is not there: is the server on another machine, or in a container?")


def _check_access(folder: Path) -> None:
    if not os.access(folder, os.R_OK | os.X_OK):
        owner = folder.stat().st_uid
        raise Unusable(
            f"the folder {folder} is that of user {owner}, and this program runs as user {os.geteuid()}: "
            f"run client and server as one user"
        )


def _open(name: str, source: Callable[[], RegionSource]) -> RegionStream | None:
    """A stream out of a region; None when there is none."""
    try:
        return RegionStream(name, source)
    except Unusable:
        return None


def _is_hello(frame: bytes) -> bool:
    """Whether a request is a hello: a server that was started again is found over ZeroMQ only."""
    return len(frame) <= _SMALL_BYTES and b"hello" in frame and _field(frame, "op") == "hello"


def _asks_for_zmq(reply: bytes) -> bool:
    """Whether a small reply is an error that asks for the same request over ZeroMQ."""
    return (_WORDS[0] in reply or _WORDS[1] in reply) and _field(reply, "code") in _OVER_ZMQ


def _field(frame: bytes, name: str) -> object:
    try:
        return decode(frame).get(name)
    except DecodeError:
        return None
