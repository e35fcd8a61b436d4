"""The server's files of shared memory, and requests and replies in one pair of them. Not for Windows."""

import contextlib
import mmap
import os
import sys
import time
from pathlib import Path

from urlab_client.errors import ServerEndedError, URLabTimeoutError
from urlab_wire.shm import OWNER_FILE, REPLY_FILE, REQUEST_FILE, Region
from urlab_wire.shm_wait import SequenceWaiter, wake

if sys.platform != "win32":
    import fcntl


LIFE_CHECK_S = 0.2
"""A request that takes longer checks this often whether the server still lives."""


class Unusable(Exception):
    """Shared memory cannot be used; the message says why."""


class InUse(Unusable):
    """Another client uses it now."""


class MappedRegion:
    """A region in a file, from construction to `close`; ``region`` belongs to one thread."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        """`Unusable` when the file cannot be opened, or holds no region."""
        with contextlib.ExitStack() as undo:
            try:
                self._descriptor = os.open(path, os.O_RDWR if writable else os.O_RDONLY | os.O_NONBLOCK)
                undo.callback(os.close, self._descriptor)
                access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
                memory = undo.enter_context(mmap.mmap(self._descriptor, 0, access=access))
                self.region = Region(memory)
                undo.callback(self.region.release)
            except OSError as refused:
                raise Unusable(f"{path}: {refused.strerror or refused}") from refused
            except ValueError as broken:
                raise Unusable(f"{path} holds no region: {broken}") from broken
            self._undo = undo.pop_all()

    @property
    def is_current(self) -> bool:
        """Whether the file is still there; one that took its place is another file."""
        return os.fstat(self._descriptor).st_nlink > 0

    def reserve(self) -> None:
        """Keep other clients away until `close`, or until this process ends; `InUse` when one is there already."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse("another client uses it") from None
        except OSError as refused:
            raise Unusable(f"the request's file cannot be locked: {refused.strerror or refused}") from refused

    def close(self) -> None:
        """Let go of everything. The region must not be used any more; once is enough."""
        self._undo.close()


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


class ShmLink:
    """The requests' and the replies' region of one server. One thread uses it at a time.

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
            self._request_file = MappedRegion(folder / REQUEST_FILE, writable=True)
            undo.callback(self._request_file.close)
            self._request_file.reserve()
            self._reply_file = MappedRegion(folder / REPLY_FILE, writable=True)
            undo.callback(self._reply_file.close)
            self._undo = undo.pop_all()
        self._requests, self._replies = self._request_file.region, self._reply_file.region
        self._waiter = SequenceWaiter(self._replies)
        self.capacity = self._requests.capacity
        self._due = self._reply_due_to_others()

    @property
    def is_current(self) -> bool:
        """Whether the server lives, and these are still its regions."""
        return self._request_file.is_current and self._reply_file.is_current and not self._life.has_ended()

    @property
    def is_free(self) -> bool:
        """Whether no reply is due: a late one must not be taken for the answer to another request."""
        if self._due is not None and self._replies.settled != self._due:
            self._due = None
        return self._due is None

    def ask(self, frame: bytes, timeout_s: float) -> bytes:
        """Send a request, of `capacity` bytes at most, while `is_free`; its reply.

        Raises `URLabTimeoutError`; whatever it raises, once the request is written its reply stays due.
        """
        requests, replies = self._requests, self._replies
        before, answered, settled = requests.sequence, replies.sequence, replies.settled
        try:
            requests.write(frame)
            wake(requests)
            if self._waiter.wait(answered, min(timeout_s, LIFE_CHECK_S)):
                found = replies.read(answered)
                if found is not None:
                    return found[1]
            return self._wait_on(answered, timeout_s)
        except BaseException:
            self._due = settled if requests.sequence != before else None
            raise

    def close(self) -> None:
        """Let other clients have the regions. Once is enough."""
        self._undo.close()

    def _wait_on(self, answered: int, timeout_s: float) -> bytes:
        """Wait for the rest of the time, after the first `LIFE_CHECK_S`."""
        begin_s = time.monotonic() - min(LIFE_CHECK_S, timeout_s)
        while True:
            has_ended = self._life.has_ended()
            found = self._replies.read(answered)
            if found is not None:
                return found[1]
            passed_s = time.monotonic() - begin_s
            if has_ended:
                raise ServerEndedError(self._address, passed_s)
            if passed_s >= timeout_s:
                raise URLabTimeoutError(self._address, timeout_s)
            self._waiter.wait(answered, min(LIFE_CHECK_S, timeout_s - passed_s))

    def _reply_due_to_others(self) -> int | None:
        """The count of replies, if one is due to a client that left before it came.

        Our servers answer or skip every request once. Of others that is not known, and their counts tell nothing.
        """
        replies = self._replies.settled
        return replies if self._life.has_lock and self._requests.sequence != replies else None
