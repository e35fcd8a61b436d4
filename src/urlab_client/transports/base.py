"""What the client needs of a transport: one request in, one reply out; streams where it has them."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from urlab_client.errors import TRANSPORT_ERROR, URLabRPCError
from urlab_wire.codec import DecodeError, decode, encode

StateCallback = Callable[[dict[str, Any]], None]

DEFAULT_TIMEOUT_MS = 5000


class FrameCallback(Protocol):
    """Takes one picture of a stream: raw pixels, what the stream tells about it, and how many it superseded.

    ``pixels`` belong to the caller and are good during the call only.
    """

    def __call__(
        self, pixels: bytes | memoryview, meta: Mapping[str, Any] | None = None, skipped: int = 0, /
    ) -> object: ...


class Transport:
    """Carries frames to a server and back. Requests are answered one at a time, from any thread.

    A transport implements `request`, or `rpc` when it does not speak bytes. The other methods do nothing unless a
    transport has a use for them.
    """

    def request(self, frame: bytes, *, timeout_ms: int) -> bytes:
        """Send one encoded request and wait for its encoded reply; raises `URLabTimeoutError`."""
        raise NotImplementedError(f"{type(self).__name__} implements neither request nor rpc")

    def rpc(self, request: Mapping[str, Any], *, rcv_timeout_ms: int = DEFAULT_TIMEOUT_MS) -> dict[str, Any]:
        """Send one request map and wait for the reply map, which may be an error reply."""
        reply = self.request(encode(request), timeout_ms=rcv_timeout_ms)
        try:
            return decode(reply)
        except DecodeError as broken:
            raise URLabRPCError(TRANSPORT_ERROR, f"the reply cannot be read: {broken}") from broken

    def absorb_handshake(self, handshake: Mapping[str, Any]) -> None:
        """See the handshake, which says where faster channels are. Called after every hello."""

    def start_state_stream(self, on_snapshot: StateCallback) -> None:
        """Begin handing state snapshots to a callback, on another thread. Starting twice changes nothing."""

    def stop_state_stream(self) -> None:
        """End the state stream; afterwards the callback is not called any more."""

    def start_camera_stream(self, prefix: str, name: str, endpoint: str, topic: str, on_frame: FrameCallback) -> None:
        """Begin handing the pictures of one camera to a callback, on another thread.

        ``prefix`` and ``name`` say which camera it is, ``endpoint`` and ``topic`` are those of the handshake.
        """

    def stop_camera_streams(self) -> None:
        """End all camera streams."""

    def close(self) -> None:
        """Stop streams and let go of every resource. Idempotent."""
