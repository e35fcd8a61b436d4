"""Shared memory of one server: its folder, its streams, and requests: one in a region, its reply in another."""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from urlab.transport.repeats import RequestRegistry, RunningRequest
from urlab.transport.shm.folder import SHM_ROOT, OwnedRegion, ShmFolder, ShmUnavailable
from urlab.transport.shm.streams import ShmStreams
from urlab.watchdog import Turns
from urlab_wire import ErrorCode, encode
from urlab_wire.codec import looks_like_json
from urlab_wire.enums import Encoding
from urlab_wire.envelope import error
from urlab_wire.shm import REPLY_FILE, REQUEST_FILE, RPC_BUFFERS, RPC_STRIDE
from urlab_wire.shm_wait import SequenceWaiter, wake

log = logging.getLogger("urlab.transport")

_STOP_LIMIT_S = 3.0
_HEADROOM_BYTES = 1 << 20
_LARGEST_REPLY_BYTES = 64 << 20
_SEQUENCE_MASK = (1 << 64) - 1

Handle = Callable[[bytes], bytes]


class SharedMemory:
    """One folder from construction to `close`; scenes are attached and detached in between."""

    def __init__(
        self, handle: Handle, registry: RequestRegistry, *, reply_bytes: int = 0, root: Path = SHM_ROOT
    ) -> None:
        """``reply_bytes`` are those of the largest reply that is likely; ``registry`` keeps larger ones.

        ShmUnavailable when there is no shared memory to be had, or not enough of it.
        """
        stride = min(max(RPC_STRIDE, reply_bytes + _HEADROOM_BYTES), _LARGEST_REPLY_BYTES)
        with contextlib.ExitStack() as undo:
            self._folder = ShmFolder(root)
            undo.callback(self._folder.close)
            self._rpc = ShmRpcServer(self._folder, handle, registry, stride)
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
    """Serves ``handle`` until it is stopped, on a thread of its own.

    There is one pair of regions, so one client at a time: ours hold a lock on the request's file while they use it. A
    reply whose client has gone on, to ZeroMQ or to another request, is skipped: it would answer the wrong request.
    """

    def __init__(self, folder: ShmFolder, handle: Handle, registry: RequestRegistry, stride: int = RPC_STRIDE) -> None:
        """ShmUnavailable when there is no room for the regions."""
        self._handle = handle
        self._registry = registry
        self._requests = folder.make_region(REQUEST_FILE, RPC_STRIDE, RPC_BUFFERS)
        self._replies = _make_reply_region(folder, max(stride, RPC_STRIDE))
        self._waiter = SequenceWaiter(self._requests.region)
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
        self._requests.close()
        self._replies.close()

    def _run(self) -> None:
        requests, waiter = self._requests.region, self._waiter
        seen, watched = requests.sequence, Turns("urlab-shm-rpc").open()
        while not waiter.stopped:
            if waiter.wait(seen) and (found := requests.read(seen)):
                lost = (found[0] - seen - 1) & _SEQUENCE_MASK
                seen, request = found
                watched.busy()
                self._serve(request, seen, lost)
                watched.idle()
        watched.close()

    def _serve(self, request: bytes, seen: int, lost: int) -> None:
        """Serve a request; ``lost`` ones before it were written over while this thread was busy."""
        running = self._registry.begin(request, self)
        if lost:
            self._replies.region.skip(lost)
        if running.owner is not self:
            self._settle(request, self._reply_of(running), seen)
            return
        begun_s = time.monotonic()
        reply = self._run_handler(request)
        written = self._replies.region.sequence + 1
        self._registry.finish_in_turn(
            running,
            reply,
            time.monotonic() - begun_s,
            fits=len(reply) <= self._replies.region.capacity,
            settle=lambda is_repeated: self._settle(request, reply, seen, is_repeated),
            withdraw=lambda: self._replies.region.withdraw(written),
        )

    def _run_handler(self, request: bytes) -> bytes:
        try:
            return self._handle(request)
        except Exception:
            log.exception("a request over shared memory could not be served")
            return encode(error(ErrorCode.INTERNAL_ERROR, "the request could not be served"))

    def _reply_of(self, running: RunningRequest) -> bytes:
        """The reply to a request that runs on another transport."""
        taken: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._registry.attach(running, taken.put)
        return taken.get()

    def _settle(self, request: bytes, reply: bytes, seen: int, is_repeated: bool = False) -> None:
        """Write the reply, or that it is too large for its region; skip it if its client has gone on."""
        replies = self._replies.region
        if is_repeated or self._requests.region.sequence != seen:
            replies.skip()
            return
        fits = len(reply) <= replies.capacity
        replies.write(reply if fits else _too_large(request, len(reply), replies.capacity))
        wake(replies)


def _make_reply_region(folder: ShmFolder, stride: int) -> OwnedRegion:
    """A region for replies of the size that is wanted, or, where there is no room for that, of the usual one."""
    try:
        return folder.make_region(REPLY_FILE, stride, RPC_BUFFERS)
    except ShmUnavailable as full:
        if stride == RPC_STRIDE:
            raise
        log.warning("replies with pictures will go over ZeroMQ: %s", full)
        return folder.make_region(REPLY_FILE, RPC_STRIDE, RPC_BUFFERS)


def _too_large(request: bytes, size: int, capacity: int) -> bytes:
    message = f"the reply has {size} bytes and its region holds {capacity}: send the same request over ZeroMQ"
    encoding = Encoding.JSON if looks_like_json(request) else Encoding.MSGPACK
    return encode(error(ErrorCode.REPLY_TOO_LARGE, message), encoding)
