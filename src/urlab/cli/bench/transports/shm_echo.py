"""The bare round trip through shared memory: two regions, the waiting of `urlab_wire`, and nothing else."""

import contextlib
from collections.abc import Iterator

from urlab.cli.bench.echo_sizes import READY_FILE, echo_request
from urlab.cli.bench.spawn import SHM_ECHO, ChildFailed, running
from urlab.cli.complaint import CommandError
from urlab.transport.shm.folder import ShmFolder, ShmUnavailable
from urlab_wire.shm import REPLY_FILE, REQUEST_FILE, RPC_BUFFERS, RPC_STRIDE, Region
from urlab_wire.shm_wait import SequenceWaiter, wake

_TIMEOUT_S = 5.0


class ShmEcho:
    """Two regions that lead to a process that answers at once. It is used as `Echo` is."""

    def __init__(self, requests: Region, replies: Region, pid: int) -> None:
        self.pid = pid
        self._requests, self._replies = requests, replies
        self._waiter = SequenceWaiter(replies)
        self._frame = b""

    def use(self, request_bytes: int, reply_bytes: int) -> None:
        """The sizes of the round trips from now on."""
        self._frame = echo_request(request_bytes, reply_bytes)

    def once(self) -> bytes:
        """One round trip; its reply."""
        seen = self._replies.sequence
        self._requests.write(self._frame)
        wake(self._requests)
        found = self._replies.read(seen) if self._waiter.wait(seen, _TIMEOUT_S) else None
        if found is None:
            raise ChildFailed(f"the echo in shared memory did not answer within {_TIMEOUT_S:g} s")
        return found[1]


@contextlib.contextmanager
def echoing_in_shm() -> Iterator[ShmEcho]:
    """An echo with its far end in another process; the regions are gone afterwards."""
    with contextlib.ExitStack() as opened:
        shared = _shared_folder()
        opened.callback(shared.close)
        requests, replies = (shared.make_region(name, RPC_STRIDE, RPC_BUFFERS) for name in (REQUEST_FILE, REPLY_FILE))
        opened.callback(requests.close)
        opened.callback(replies.close)
        child, folder = opened.enter_context(running([*SHM_ECHO, str(shared.path)]))
        child.wait_for_file(folder / READY_FILE)
        yield ShmEcho(requests.region, replies.region, child.pid)


def _shared_folder() -> ShmFolder:
    try:
        return ShmFolder()
    except ShmUnavailable as refused:
        raise CommandError(f"without shared memory there are no transports to compare: {refused}") from refused
