"""The thread that takes connections from the listening socket: whose they are is found out before they are served."""

import contextlib
import errno
import logging
import os
import select
import socket as sockets
import threading
from collections.abc import Callable, Hashable
from typing import Any

from urlab import access
from urlab.monitoring.watchdog import Turns
from urlab.transport.endpoint import ListeningSocket

log = logging.getLogger("urlab.transport")

_STOP_LIMIT_S = 1.0
_RETRY_S = 0.1
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_OUT_OF_MEMORY = (errno.ENOBUFS, errno.ENOMEM)

Admit = Callable[[sockets.socket, Any, Hashable], None]


class Acceptor:
    """Accepts connections until it is stopped, and hands them to ``admit`` (socket, address, peer), on its own thread.

    A connection of another user of this machine is closed at once, unless the server is shared: see `urlab.access`. To
    find a peer's user takes a look at all sockets of the machine, which no client that is served should wait for.
    ``peer`` stands for the user, or for the address on another machine.
    """

    def __init__(self, listener: ListeningSocket, admit: Admit, *, share: bool) -> None:
        self._listener = listener
        self._listener.socket.setblocking(False)
        self._poller = select.poll()
        self._poller.register(listener.socket, select.POLLIN)
        self._admit = admit
        self._share = share
        self._stopping = threading.Event()
        self._reserve: int | None = _open_reserve()
        self._thread = threading.Thread(target=self._run, name="urlab-zmq-accept", daemon=True)

    def start(self) -> None:
        """Begin to accept."""
        self._thread.start()

    def stop(self) -> None:
        """Accept no more, and close the listening socket. Once is enough."""
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.socket.shutdown(sockets.SHUT_RDWR)  # wakes the thread
        if self._thread.is_alive():
            self._thread.join(_STOP_LIMIT_S)
        self._listener.close()
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None

    def _run(self) -> None:
        watched = Turns("urlab-zmq-accept").open()
        try:
            while not self._stopping.is_set():
                self._poller.poll()
                watched.busy()
                self._accept()
                watched.idle()
        finally:
            watched.close()

    def _accept(self) -> None:
        try:
            socket, address = self._listener.socket.accept()
        except OSError as failed:
            if not self._stopping.is_set():
                self._recover(failed)
            return
        try:
            self._judge(socket, address)
        except Exception:
            log.exception("a connection could not be taken")
            socket.close()

    def _judge(self, socket: sockets.socket, address: Any) -> None:
        if not access.is_from_this_machine(socket):
            self._admit(socket, address, address[0])
            return
        uid = access.peer_uid(socket)
        if self._share or access.is_own(uid):
            self._admit(socket, address, uid)
            return
        access.refusals.refused(self._listener.endpoint, socket)
        socket.close()

    def _recover(self, failed: OSError) -> None:
        """Go on after a failed accept. Without descriptors, the connection that waits is turned away.

        It would stay the first in line, and this thread would find it again and again.
        """
        if failed.errno in _OUT_OF_DESCRIPTORS:
            self._say("a client is turned away: this process has no file descriptors left (ulimit -n)")
            self._turn_away()
            self._stopping.wait(_RETRY_S)
        elif failed.errno in _OUT_OF_MEMORY:
            self._say("a client has to wait: the system is out of memory for sockets")
            self._stopping.wait(_RETRY_S)

    def _say(self, message: str) -> None:
        access.refusals.say(f"{self._listener.endpoint} {message}", f"{self._listener.endpoint}: {message}")

    def _turn_away(self) -> None:
        """Use the descriptor that is kept for this: accept, close, and keep one again."""
        if self._reserve is not None:
            os.close(self._reserve)
            with contextlib.suppress(OSError):
                self._listener.socket.accept()[0].close()
        self._reserve = _open_reserve()


def _open_reserve() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
