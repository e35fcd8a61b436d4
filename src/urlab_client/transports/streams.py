"""Streams over ZeroMQ, for every transport whose server publishes them: whole states, and pictures of cameras."""

import threading
from collections.abc import Mapping
from typing import Any

from urlab_client.live import Listener
from urlab_client.transports.address import stream_endpoint
from urlab_client.transports.base import FrameCallback, StateCallback, Transport
from urlab_client.transports.channels import CameraChannel, StateChannel
from urlab_wire.codec import decode


class StreamingTransport(Transport):
    """A transport with ZeroMQ streams beside it: one thread for states, one for all cameras, while they are on.

    ``base`` is the address at which this client reaches the server; without ``state_endpoint`` there are states only
    where the handshake tells an endpoint. A caller who names a port of its own (``follow_handshake`` is False) keeps
    it: there may be a tunnel in between.
    """

    def __init__(self, base: str, state_endpoint: str | None, *, follow_handshake: bool = True) -> None:
        self._base = base
        self._own_state_endpoint = state_endpoint
        self._follow_handshake = follow_handshake
        self.state_endpoint = state_endpoint
        self._streams_lock = threading.Lock()
        self._streams_closed = False
        self._states: tuple[str, Listener] | None = None
        self._cameras: Listener | None = None

    def absorb_handshake(self, handshake: Mapping[str, Any]) -> None:
        """Learn where states are published."""
        told = (handshake.get("streams") or {}).get("state")
        known = stream_endpoint(told, self._base) if told and self._follow_handshake else self._own_state_endpoint
        self.state_endpoint = known

    def start_state_stream(self, on_snapshot: StateCallback) -> None:
        """Subscribe to whole-state snapshots, at the endpoint now known; silent while nobody publishes them."""
        endpoint, running = self.state_endpoint, self._states
        if running is not None and running[0] == endpoint:
            return
        self.stop_state_stream()
        if endpoint is not None:
            self._begin_states(endpoint, on_snapshot)

    def stop_state_stream(self) -> None:
        """Unsubscribe and wait for the thread."""
        with self._streams_lock:
            states, self._states = self._states, None
        if states is not None:
            states[1].stop()

    def start_camera_stream(
        self,
        prefix: str,  # noqa: ARG002 - the endpoint and the topic say it all
        name: str,  # noqa: ARG002
        endpoint: str,
        topic: str,
        on_frame: FrameCallback,
    ) -> None:
        """Subscribe to one more camera."""
        with self._streams_lock:
            if self._streams_closed:
                return
            if self._cameras is None:
                self._cameras = Listener("urlab-cameras")
            self._cameras.add(CameraChannel(stream_endpoint(endpoint, self._base), topic, on_frame))

    def stop_camera_streams(self) -> None:
        """Unsubscribe from all cameras and wait for the thread."""
        with self._streams_lock:
            cameras, self._cameras = self._cameras, None
        if cameras is not None:
            cameras.stop()

    def close(self) -> None:
        """End the streams; none begins any more."""
        with self._streams_lock:
            self._streams_closed = True
        self.stop_state_stream()
        self.stop_camera_streams()

    def _begin_states(self, endpoint: str, on_snapshot: StateCallback) -> None:
        with self._streams_lock:
            if self._streams_closed or self._states is not None:
                return
            listener = Listener("urlab-states")
            listener.add(StateChannel(endpoint, lambda payload: on_snapshot(decode(payload))))
            self._states = endpoint, listener
