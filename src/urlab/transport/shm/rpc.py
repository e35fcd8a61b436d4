"""RPC over shared memory: a request in one region, its reply in another, one at a time."""

import logging
import threading
from collections.abc import Callable

from urlab.transport.shm.folder import OwnedRegion, ShmFolder, ShmUnavailable
from urlab.transport.shm.kept_replies import KeptReplies
from urlab_wire import ErrorCode, encode
from urlab_wire.codec import looks_like_json
from urlab_wire.enums import Encoding
from urlab_wire.envelope import error
from urlab_wire.shm import REPLY_FILE, REQUEST_FILE, RPC_BUFFERS, RPC_STRIDE
from urlab_wire.shm_wait import SequenceWaiter, wake

log = logging.getLogger("urlab.transport")

_STOP_LIMIT_S = 3.0

Handle = Callable[[bytes], bytes]


class ShmRpcServer:
    """Serves ``handle`` until it is stopped, on a thread of its own.

    There is one pair of regions, so one client at a time: ours hold a lock on the request's file while they use it.
    """

    def __init__(self, folder: ShmFolder, handle: Handle, kept: KeptReplies, reply_stride: int = RPC_STRIDE) -> None:
        """ShmUnavailable when there is no room for the regions."""
        self._handle = handle
        self._kept = kept
        self._requests = folder.make_region(REQUEST_FILE, RPC_STRIDE, RPC_BUFFERS)
        self._replies = _make_reply_region(folder, max(reply_stride, RPC_STRIDE))
        self._waiter = SequenceWaiter(self._requests.region, moves_over=True)
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
        seen = requests.sequence
        while not waiter.stopped:
            if waiter.wait(seen) and (found := requests.read(seen)):
                seen, request = found
                self._answer(request)

    def _answer(self, request: bytes) -> None:
        try:
            reply = self._handle(request)
        except Exception:
            log.exception("a request over shared memory could not be served")
            reply = encode(error(ErrorCode.INTERNAL_ERROR, "the request could not be served"))
        if len(reply) > self._replies.region.capacity:
            self._kept.keep(request, reply)
            reply = _too_large(request, len(reply), self._replies.region.capacity)
        self._replies.region.write(reply)
        wake(self._replies.region)


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
