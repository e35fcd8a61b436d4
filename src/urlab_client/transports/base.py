"""What the client needs of a transport: one request in, one reply out, streams where it has them; where a server is."""

import contextlib
import os
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from urlab_client.errors import TRANSPORT_ERROR, URLabRPCError
from urlab_client.transports.keys import ClientKey
from urlab_client.transports.repeated_blocks import LARGE_BYTES, RepeatedBlocks
from urlab_wire.codec import DecodeError, Tree, decode, encode
from urlab_wire.stream_messages import unpack_metadata
from urlab_wire.streams import StreamError

StateCallback = Callable[[Tree], None]

DEFAULT_TIMEOUT_MS = 5000
REQUEST_ID = "request_id"
"""The field by which a server knows a request that is sent again; it is among the first ones of ours."""

PORTS = range(1, 65536)
DEFAULT_STATE_PORT = 5555
_SCHEMES = ("tcp", "ipc")
_ANY_HOST = ("", "*", "0.0.0.0", "[::]")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is: base address, ports, the shared-memory folder when the caller names one, the client's key."""

    base: str
    step_port: int
    state_port: int
    connect_timeout_ms: int
    shm_dir: str | None = None
    key: ClientKey | None = None


def check_base(address: str, *, own_transport: bool) -> None:
    """ValueError unless this is a base address; ``inproc://`` is one for a caller with its own transport."""
    schemes = (*_SCHEMES, "inproc") if own_transport else _SCHEMES
    if not re.fullmatch(rf"({'|'.join(schemes)})://.+", str(address)):
        raise ValueError(
            f"address {address!r} is not one: write tcp://host or ipc:///path, without a port (pass step_port=)"
        )


def check_ports(**ports: int) -> None:
    """ValueError that names the first one that is no port number."""
    for name, port in ports.items():
        if isinstance(port, bool) or not isinstance(port, int) or port not in PORTS:
            raise ValueError(f"{name} must be a whole number within 1 and 65535, not {port!r}")


def stream_endpoint(bound: str, base: str) -> str:
    """Where to connect for a stream that the server binds at ``bound``, for a client that reaches it at ``base``.

    Over TCP only the port counts: the server may know itself by a wildcard, or by a name that means nothing here.
    """
    scheme, _, place = bound.partition("://")
    host, _, port = place.rpartition(":")
    if scheme != "tcp":
        return bound
    if base.startswith("tcp://"):
        return f"{base}:{port}"
    return f"tcp://127.0.0.1:{port}" if host in _ANY_HOST else bound


class FrameCallback(Protocol):
    """Takes one picture of a stream: raw pixels, what the stream tells about it, and how many it superseded.

    ``pixels`` belong to the caller and are good during the call only.
    """

    def __call__(self, pixels: bytes | memoryview, meta: Tree | None = None, skipped: int = 0, /) -> object: ...


def description(payload: bytes | None) -> Tree | None:
    """What a stream tells about a picture; one that cannot be read counts as none."""
    if payload is None:
        return None
    try:
        return unpack_metadata(payload)
    except StreamError:
        return None


class Transport:
    """Carries frames to a server and back. Requests are answered one at a time, from any thread.

    A transport implements `request`, or `rpc` when it does not speak bytes. The other methods do nothing unless a
    transport has a use for them.
    """

    _repeated: RepeatedBlocks | None = None
    _request_lock: "threading.RLock | None" = None
    """Held during a request, by a transport that has one at a time."""

    def request(self, frame: bytes, *, timeout_ms: int) -> bytes:
        """Send one encoded request and wait for its encoded reply; raises `URLabTimeoutError`."""
        raise NotImplementedError(f"{type(self).__name__} implements neither request nor rpc")

    def rpc(self, request: Mapping[str, Any], *, rcv_timeout_ms: int = DEFAULT_TIMEOUT_MS) -> Tree:
        """Send one request map and wait for the reply map, which may be an error reply."""
        reply = self.request(encode(request), timeout_ms=rcv_timeout_ms)
        try:
            return decode(reply) if len(reply) < LARGE_BYTES else self._decode_large(reply)
        except DecodeError as broken:
            raise URLabRPCError(TRANSPORT_ERROR, f"the reply cannot be read: {broken}") from broken

    def _decode_large(self, reply: bytes) -> Tree:
        if self._repeated is None:
            self._repeated = RepeatedBlocks()
        return self._repeated.decode(reply)

    def absorb_handshake(self, handshake: Mapping[str, Any]) -> None:
        """See the handshake, which says where faster channels are. Called after every hello."""

    @property
    def has_state_stream(self) -> bool:
        """Whether there is a state stream to listen to."""
        return True

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

    def wait_until_free(self, timeout_s: float) -> bool:
        """Wait for the request of another thread to be answered; whether none is under way by then."""
        if self._request_lock is None:
            return True
        is_free = self._request_lock.acquire(timeout=timeout_s)
        if is_free:
            self._request_lock.release()
        return is_free

    def close(self) -> None:
        """Stop streams and let go of every resource. Idempotent."""


class InheritedTransport(Transport):
    """What every transport of a process becomes in a process that is forked from it: it refuses, and touches nothing.

    Sockets and shared memory belong to the parent, and the threads of a server in the same process were not copied.
    """

    def rpc(self, request: Mapping[str, Any], *, rcv_timeout_ms: int = DEFAULT_TIMEOUT_MS) -> Tree:  # noqa: ARG002
        """Refuse."""
        raise URLabRPCError(
            TRANSPORT_ERROR,
            f"this client belongs to process {os.getppid()}, from which process {os.getpid()} was forked: "
            f"make a client in this process, or call urlab.launch() in it",
        )


_in_use: weakref.WeakSet[Transport] = weakref.WeakSet()


def refuse_after_fork(transport: Transport) -> None:
    """Have a transport refuse its work in processes that are forked from this one."""
    with contextlib.suppress(TypeError):  # a transport of the caller's own that cannot be referred to weakly
        _in_use.add(transport)


def _leave_to_parent() -> None:
    for transport in list(_in_use):
        with contextlib.suppress(TypeError):
            transport.__class__ = InheritedTransport
    _in_use.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
