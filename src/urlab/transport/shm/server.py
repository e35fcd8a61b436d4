"""Shared memory of one server: its folder, the requests, the streams."""

import contextlib
from pathlib import Path

from urlab.transport.shm.folder import SHM_ROOT, ShmFolder
from urlab.transport.shm.kept_replies import KeptReplies
from urlab.transport.shm.rpc import Handle, ShmRpcServer
from urlab.transport.shm.streams import ShmStreams
from urlab_wire.shm import RPC_STRIDE

_HEADROOM_BYTES = 1 << 20
_LARGEST_REPLY_BYTES = 64 << 20


class SharedMemory:
    """One folder from construction to `close`; scenes are attached and detached in between."""

    def __init__(self, handle: Handle, kept: KeptReplies, *, reply_bytes: int = 0, root: Path = SHM_ROOT) -> None:
        """``reply_bytes`` are those of the largest reply that is likely.

        ShmUnavailable when there is no shared memory to be had, or not enough of it.
        """
        stride = min(max(RPC_STRIDE, reply_bytes + _HEADROOM_BYTES), _LARGEST_REPLY_BYTES)
        with contextlib.ExitStack() as undo:
            self._folder = ShmFolder(root)
            undo.callback(self._folder.close)
            self._rpc = ShmRpcServer(self._folder, handle, kept, stride)
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
        """Take the files away; the memory stays for those who have it."""
        self._folder.close()

    def close(self) -> None:
        """Answer what is being served, then take everything away. Once is enough."""
        self._undo.close()
