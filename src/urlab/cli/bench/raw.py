"""The thinnest client there can be: frames encoded beforehand, a bare REQ socket, replies left as they come."""

from collections.abc import Mapping
from typing import Any

import msgspec
import zmq

from urlab_client import URLabClient
from urlab_wire import encode

_TIMEOUT_MS = 10_000
_decode = msgspec.msgpack.Decoder().decode


class RawClient:
    """Sends one frame again and again, as the bare echo's client does; what comes back is decoded only on demand."""

    def __init__(self, endpoint: str) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, _TIMEOUT_MS)
        self._socket.connect(endpoint)
        self.frame = b""
        self._last = b""

    def once(self) -> None:
        """Send the frame and receive the answer."""
        self._socket.send(self.frame)
        self._last = self._socket.recv()

    def ask(self) -> dict[str, Any]:
        """One round trip; its reply."""
        self.once()
        return self.reply

    def measure_reply(self) -> int:
        """One round trip; the size of its reply in bytes."""
        self.once()
        return len(self._last)

    @property
    def reply(self) -> dict[str, Any]:
        """The last answer."""
        return dict(_decode(self._last))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def step_frame(client: URLabClient, n_steps: int, observations: str) -> bytes:
    """The frame that ``client.step(n_steps, observations=...)`` would send, in the client's session."""
    request: Mapping[str, Any] = {
        "op": "step",
        "session_id": client.session_id,
        "n_steps": n_steps,
        "per_articulation": {prefix: one.command() for prefix, one in client.articulations.items()},
        "observations": observations,
        "include_cameras": False,
    }
    return encode(request)


def connect(endpoint: str, step_mode: str = "direct", **options: Any) -> URLabClient:
    """A typed client of a server that was started elsewhere; ``options`` are more of the client's."""
    base, _, port = endpoint.rpartition(":")
    client = URLabClient(base, step_port=int(port), step_mode=step_mode, camera_streams=False, **options)
    try:
        client.discover()
    except BaseException:
        client.close()
        raise
    return client
