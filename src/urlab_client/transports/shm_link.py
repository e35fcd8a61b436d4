"""Requests and replies in one pair of regions, and whether their server lives. Not for Windows."""

import contextlib
import os
import secrets
import sys
import time
from pathlib import Path

from urlab_client.errors import ServerEndedError, URLabTimeoutError
from urlab_client.transports.shm_file import OpenedRegion, Unusable
from urlab_wire.shm import COUNT_BITS, OWNER_FILE, REPLY_FILE, REQUEST_FILE, SEALED_REPLY_FILE
from urlab_wire.shm_wait import SequenceWaiter, wake

if sys.platform != "win32":
    import fcntl


LIFE_CHECK_S = 0.2
"""A request that takes longer checks this often whether the server still lives."""


class ServerLife:
    """Tells whether the server of a folder lives. Where there is no lock to look at, it counts as alive."""

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        with contextlib.suppress(OSError):
            self._descriptor = os.open(folder / OWNER_FILE, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def has_lock(self) -> bool:
        """Whether there is a lock to look at, as our servers have it."""
        return self._descriptor is not None

    def has_ended(self) -> bool:
        """Whether the lock is free: the system lets go of it when a process ends, however it ends."""
        if self._descriptor is None:
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return True

    def close(self) -> None:
        """Look no more. Once is enough."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


SentRequest = tuple[int | None, int, int]
"""Of a request that was sent: its number, None where the server knows none; and the sequences of requests and of
replies before it was written."""


class ShmLink:
    """The requests' and the replies' region of one server. One thread uses it at a time.

    Our servers answer a request under its number, in a region that no other process can write. So no reply is taken for
    that to another request, whatever a process does to the regions; a request that was written over is sent again.
    The original's server knows no numbers: the next reply is the one.

    ``address`` is what errors call the server. ``capacity`` is the largest request in bytes.
    """

    def __init__(self, folder: Path, address: str) -> None:
        """`Unusable` when the regions cannot be had, `InUse` when another client has them."""
        self.folder = folder
        self._address = address
        with contextlib.ExitStack() as undo:
            self._life = ServerLife(folder)
            undo.callback(self._life.close)
            if self._life.has_ended():
                raise Unusable(f"the server of {folder} has ended")
            self._request_file = OpenedRegion(folder / REQUEST_FILE, writable=True)
            undo.callback(self._request_file.close)
            self._request_file.reserve()
            self._is_numbered = os.path.lexists(folder / SEALED_REPLY_FILE)
            self._reply_file = self._open_replies(folder)
            undo.callback(self._reply_file.close)
            if self._is_numbered:
                self._reply_file.reserve()
            self._undo = undo.pop_all()
        self._requests, self._replies = self._request_file.region, self._reply_file.region
        self._waiter = SequenceWaiter(self._replies)
        self.capacity = self._requests.capacity
        self._last_number = (1 + secrets.randbits(63 - COUNT_BITS)) << COUNT_BITS
        shown = self._shown_number() if self._is_numbered else None  # perhaps that of a client which left
        self._due: SentRequest | None = None if shown is None else (shown, 0, 0)

    @property
    def is_current(self) -> bool:
        """Whether the server lives, and these are still its regions."""
        return self._request_file.is_current and self._reply_file.is_current and not self._life.has_ended()

    @property
    def is_free(self) -> bool:
        """Whether no request is under way: one that was given up, or was that of a client that left."""
        if self._due is not None and self._is_over(self._due):
            self._due = None
        return self._due is None

    def ask(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a request, of `capacity` bytes at most, while `is_free`; its reply.

        Raises `URLabTimeoutError`, and ShmError when the regions were spoilt; whatever it raises, once the request is
        written its reply stays due.
        """
        requests, replies = self._requests, self._replies
        answered = replies.sequence
        number: int | None
        if self._is_numbered:
            number = self._last_number = self._last_number + 1
            self._due = number, 0, answered
            requests.write_request(frame, number)
        else:
            number = None
            self._due = None, requests.sequence, answered
            requests.write(frame)
        wake(requests)
        found = None
        if self._waiter.wait(answered, min(timeout_s, LIFE_CHECK_S)):
            found = replies.read(answered, number)
        reply = found[1] if found is not None else self._wait_on(frame, number, answered, timeout_s)
        self._due = None
        return reply

    def close(self) -> None:
        """Let other clients have the regions. Once is enough."""
        self._undo.close()

    def _open_replies(self, folder: Path) -> OpenedRegion:
        if not self._is_numbered:
            return OpenedRegion(folder / REPLY_FILE, writable=True)
        replies = OpenedRegion(folder / SEALED_REPLY_FILE)
        if replies.is_sealed and self._request_file.is_sealed:
            return replies
        replies.close()
        raise Unusable(f"the regions in {folder} are not those that a server made: another process has replaced them")

    def _wait_on(self, frame: bytes, number: int | None, answered: int, timeout_s: float) -> bytes:
        """Wait for the rest of the time, after the first `LIFE_CHECK_S`."""
        begin_s = time.monotonic() - min(LIFE_CHECK_S, timeout_s)
        while True:
            has_ended = self._life.has_ended()
            found = self._replies.read(answered, number)
            if found is not None:
                return found[1]
            passed_s = time.monotonic() - begin_s
            if has_ended:
                raise ServerEndedError(self._address, passed_s)
            if passed_s >= timeout_s:
                raise URLabTimeoutError(self._address, timeout_s)
            if number is not None and number != self._shown_number():
                self._requests.write_request(frame, number)  # written over; a server that has it passes over it
                wake(self._requests)
            self._waiter.wait(answered, min(LIFE_CHECK_S, timeout_s - passed_s))

    def _is_over(self, sent: SentRequest) -> bool:
        """Whether no reply to that request can come any more."""
        number, requests, replies = sent
        if number is None:
            return self._requests.sequence == requests or self._replies.sequence != replies
        return number == self._replies.number or number != self._shown_number()

    def _shown_number(self) -> int | None:
        """The number of the request that stands there; None when there is none, or it is damaged."""
        found = self._requests.read_request(-1)
        return None if found is None else found[2]
