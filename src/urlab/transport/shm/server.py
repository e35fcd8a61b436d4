"""Shared memory of one server: its folder, its streams, and requests: one in a region, its reply in another."""

import contextlib
import logging
import queue
import threading
import time
from pathlib import Path
from typing import Any, Protocol

from urlab.monitoring.watchdog import Turns
from urlab.transport.repeats import RequestKey, RequestRegistry, RunningRequest
from urlab.transport.shm.folder import SHM_ROOT, ShmFolder, ShmUnavailable
from urlab.transport.shm.sealed import LockProbe, OwnedRegion
from urlab.transport.shm.streams import ShmStreams
from urlab_wire import ErrorCode, encode
from urlab_wire.codec import looks_like_json
from urlab_wire.enums import Encoding
from urlab_wire.envelope import error
from urlab_wire.shm import (
    COUNT_BITS,
    NUMBER_BYTES,
    REPLY_FILE,
    REQUEST_FILE,
    RPC_BUFFERS,
    RPC_STRIDE,
    SEALED_REPLY_FILE,
)
from urlab_wire.shm_wait import SequenceWaiter, wake

log = logging.getLogger("urlab.transport")

_STOP_LIMIT_S = 3.0
_HEADROOM_BYTES = 1 << 20
_LARGEST_REPLY_BYTES = 64 << 20
_MOST_CLIENTS = 256
_RESTORE_S = 1.0
"""While no request comes, this often the headers are put right, should a process have written over them."""


class IdentifiedRequest(Protocol):
    """A request that a `FrameHandler` has parsed."""

    @property
    def key(self) -> RequestKey | None:
        """Its session and id, if it has an id."""

    @property
    def holder(self) -> str | None:
        """The session for which it takes hold of a body, if it does."""


class FrameHandler(Protocol):
    """Answers requests, one at a time."""

    def parse(self, frame: bytes) -> Any:
        """An `IdentifiedRequest`, for `serve`."""

    def serve(self, request: Any, /) -> bytes:
        """The reply to a request that `parse` gave."""

    def let_go(self, session_id: str, /) -> None:
        """Release what a session holds: the client that took hold of it is gone."""


class SharedMemory:
    """One folder from construction to `close`; scenes are attached and detached in between."""

    def __init__(
        self, handler: FrameHandler, registry: RequestRegistry, *, reply_bytes: int = 0, root: Path = SHM_ROOT
    ) -> None:
        """``reply_bytes`` are those of the largest reply that is likely; ``registry`` keeps larger ones.

        ShmUnavailable when there is no shared memory to be had, or not enough of it.
        """
        stride = min(max(RPC_STRIDE, reply_bytes + _HEADROOM_BYTES), _LARGEST_REPLY_BYTES)
        with contextlib.ExitStack() as undo:
            self._folder = ShmFolder(root)
            undo.callback(self._folder.close)
            self._rpc = ShmRpcServer(self._folder, handler, registry, stride)
            undo.callback(self._rpc.stop)
            self.streams = ShmStreams(self._folder)
            undo.callback(self.streams.close)
            self._undo = undo.pop_all()

    @property
    def folder(self) -> Path:
        """Where the regions are."""
        return self._folder.path

    def start(self) -> None:
        """Begin to serve requests."""
        self._rpc.start()

    def remove_files(self) -> None:
        """Take the files away; the memory stays for the peers that have it mapped."""
        self._folder.close()

    def close(self) -> None:
        """Answer what is being served, then take everything away. Once is enough."""
        self._undo.close()


class ShmRpcServer:
    """Serves requests until it is stopped, on a thread of its own.

    There is one pair of regions, so one client at a time: ours hold a lock on the request's file while they use it, and
    number their requests. The reply to a numbered request goes to the sealed region, under its number, and a request
    that comes twice is served once. The reply to any other, as the original's clients send them, goes to the other
    region, unless its client has gone on, to ZeroMQ or to its next request: it would answer the wrong one.

    Any process of this user can write over requests. So one without a number is passed over while a client of ours has
    the regions: it is a damaged one, which that client sends again. And when that client has left, what it asked for is
    wiped out, to be shown no second time, and what it held is released.
    """

    def __init__(
        self, folder: ShmFolder, handler: FrameHandler, registry: RequestRegistry, stride: int = RPC_STRIDE
    ) -> None:
        """ShmUnavailable when there is no room for the regions."""
        self._handler = handler
        self._registry = registry
        with contextlib.ExitStack() as undo:
            self._requests = folder.make_region(REQUEST_FILE, RPC_STRIDE, RPC_BUFFERS, peers_write=True)
            undo.callback(self._requests.close)
            self._replies = folder.make_region(REPLY_FILE, RPC_STRIDE, RPC_BUFFERS, peers_write=True)
            undo.callback(self._replies.close)
            self._sealed = _make_sealed_region(folder, max(stride, RPC_STRIDE) + NUMBER_BYTES)
            undo.callback(self._sealed.close)
            self._numbering = LockProbe(self._sealed.descriptor)
            undo.callback(self._numbering.close)
            self._undo = undo.pop_all()
        self._capacity = self._sealed.region.capacity - NUMBER_BYTES
        self._taken: dict[int, int] = {}
        self._next_number = 0
        self._holders: set[str] = set()
        self._is_clean = True
        self._waiter = SequenceWaiter(self._requests.region)
        self._seen = self._requests.region.sequence
        """Of the last request that was looked at. A client may be here before the thread is."""
        self._thread = threading.Thread(target=self._run, name="urlab-shm-rpc", daemon=True)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what is being served, then take the regions away. Once is enough."""
        self._waiter.stop()
        if self._thread.is_alive():
            self._thread.join(_STOP_LIMIT_S)
        if self._thread.is_alive():  # it is in the midst of a request, and needs the regions
            log.warning("a request over shared memory did not end in time")
            return
        self._undo.close()

    def _run(self) -> None:
        requests, waiter = self._requests.region, self._waiter
        seen, watched = self._seen, Turns("urlab-shm-rpc").open()
        while not waiter.stopped:
            if not waiter.wait(seen, _RESTORE_S):
                self._tidy_up()
            elif found := requests.read_request(seen):
                seen, request, number = found
                watched.busy()
                if number is None:
                    if not self._numbering.is_locked():
                        self._serve_plain(request, seen)
                elif number == self._next_number or self._is_new(number):
                    self._next_number = number + 1
                    self._serve_numbered(request, number)
                watched.idle()
        watched.close()

    def _tidy_up(self) -> None:
        """While no request comes: put right what a process may have written over, wipe out what a client left."""
        self._requests.region.restore()
        self._replies.region.restore()
        if not self._is_clean and not self._numbering.is_locked():
            self._requests.region.clear()
            self._is_clean = True
            self._let_go()

    def _let_go(self) -> None:
        """Release the bodies that the last client held; it has left."""
        for session_id in self._holders:
            self._handler.let_go(session_id)
        self._holders.clear()

    def _is_new(self, number: int) -> bool:
        """Whether a request that is not the next one of the last client was not served yet: each counts upwards."""
        client, before = number >> COUNT_BITS, self._next_number - 1
        self._taken[before >> COUNT_BITS] = before
        if client != before >> COUNT_BITS:
            self._let_go()
        while len(self._taken) > _MOST_CLIENTS:
            del self._taken[next(iter(self._taken))]
        return number > self._taken.get(client, -1)

    def _serve_numbered(self, request: bytes, number: int) -> None:
        """Have a request served here, unless it runs on another transport already; its reply is known by its number."""
        self._is_clean = False
        parsed = self._parse(request)
        if parsed is not None and parsed.holder is not None:
            self._holders.add(parsed.holder)
        running = self._registry.begin(request, self, parsed.key if parsed is not None else None)
        is_own = running.owner is self
        reply = self._run_handler(parsed) if is_own else self._reply_of(running)
        if len(reply) > self._capacity:
            if is_own:  # kept for the client, who will ask for it over ZeroMQ
                self._registry.finish_in_turn(running, reply, 0.0, False, settle=_nothing, withdraw=_nothing)
            is_own, reply = False, _too_large(request, len(reply), self._capacity)
        sealed = self._sealed.region
        sealed.write(reply, number)
        wake(sealed)
        if is_own:  # while the client is at work with it; a repeat that comes before is given it here
            self._registry.finish(running, reply)

    def _serve_plain(self, request: bytes, seen: int) -> None:
        """The same; nothing says which request the reply answers, so it is sent only while its client waits for it."""
        parsed = self._parse(request)
        running = self._registry.begin(request, self, parsed.key if parsed is not None else None)
        if running.owner is not self:
            self._settle(request, self._reply_of(running), seen)
            return
        begun_s = time.monotonic()
        reply = self._run_handler(parsed)
        replies = self._replies.region
        written = replies.sequence + 1
        self._registry.finish_in_turn(
            running,
            reply,
            time.monotonic() - begun_s,
            fits=len(reply) <= replies.capacity,
            settle=lambda is_repeated: self._settle(request, reply, seen, is_repeated),
            withdraw=lambda: replies.withdraw(written),
        )

    def _settle(self, request: bytes, reply: bytes, seen: int, is_repeated: bool = False) -> None:
        """Write the reply, or that it is too large for its region; not if its client has gone on."""
        replies = self._replies.region
        if not is_repeated and self._requests.region.sequence == seen:
            fits = len(reply) <= replies.capacity
            replies.write(reply if fits else _too_large(request, len(reply), replies.capacity))
            wake(replies)

    def _parse(self, request: bytes) -> IdentifiedRequest | None:
        """The request for the handler; None when that fails to read it, however it is."""
        try:
            parsed: IdentifiedRequest = self._handler.parse(request)
        except Exception:
            log.exception("a request over shared memory could not be read")
            return None
        return parsed

    def _run_handler(self, parsed: IdentifiedRequest | None) -> bytes:
        try:
            return _FAILED if parsed is None else self._handler.serve(parsed)
        except Exception:
            log.exception("a request over shared memory could not be served")
            return _FAILED

    def _reply_of(self, running: RunningRequest) -> bytes:
        """The reply to a request that runs on another transport."""
        taken: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._registry.attach(running, taken.put)
        return taken.get()


_FAILED = encode(error(ErrorCode.INTERNAL_ERROR, "the request could not be served"))


def _nothing(*_: object) -> None:
    """A numbered reply that comes late answers no other request: it need not be taken back."""


def _make_sealed_region(folder: ShmFolder, stride: int) -> OwnedRegion:
    """A region for replies of the size that is wanted, or, where there is no room for that, of the usual one."""
    try:
        return folder.make_region(SEALED_REPLY_FILE, stride, RPC_BUFFERS)
    except ShmUnavailable as full:
        usual = RPC_STRIDE + NUMBER_BYTES
        if stride == usual:
            raise
        log.warning("replies with pictures will go over ZeroMQ: %s", full)
        return folder.make_region(SEALED_REPLY_FILE, usual, RPC_BUFFERS)


def _too_large(request: bytes, size: int, capacity: int) -> bytes:
    message = f"the reply has {size} bytes and its region holds {capacity}: send the same request over ZeroMQ"
    encoding = Encoding.JSON if looks_like_json(request) else Encoding.MSGPACK
    return encode(error(ErrorCode.REPLY_TOO_LARGE, message), encoding)
