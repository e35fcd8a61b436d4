"""A server in the same process: requests are function calls."""

import threading
from collections.abc import Callable

from urlab_client.transports.zmq_streams import StreamingTransport


class InProcessTransport(StreamingTransport):
    """Calls ``handle`` with each encoded request. No ports, no threads, and the handler's own time limits.

    Streams come over sockets as elsewhere, where the handshake tells an endpoint.

    ``on_close``, when given, is called once by `close`: an embedded server ends with its client.
    """

    def __init__(self, handle: Callable[[bytes], bytes], *, on_close: Callable[[], None] | None = None) -> None:
        super().__init__("inproc://", None)
        self._handle = handle
        self._on_close = on_close
        self._lock = threading.RLock()

    def request(self, frame: bytes, *, timeout_ms: int) -> bytes:  # noqa: ARG002 - the handler has its own limits
        """Handle the request on the calling thread."""
        with self._lock:
            return self._handle(frame)

    def close(self) -> None:
        """End the streams and tell the owner of the handler, once."""
        super().close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
