"""The thread that owns every publishing socket.

ZeroMQ's sockets belong to one thread, and each send lets go of the interpreter: on the stepping thread, sixty rows
would mean a hundred chances per step to lose the processor to another thread. So whoever has something to publish
hands it over, which costs a few microseconds, and this thread sends it.
"""

import contextlib
import logging
import socket as sockets
import threading
from collections import deque

import zmq

from urlab.transport.outlet import Outlet

log = logging.getLogger("urlab.transport")

_STOP_LIMIT_S = 3.0


class PublishingThread:
    """Sends what the outlets are offered and follows their subscriptions; sleeps while there is neither."""

    def __init__(self, context: "zmq.Context[zmq.Socket[bytes]]") -> None:
        """``context`` is where the outlets' sockets are made."""
        self.context = context
        self._outlets: list[Outlet] = []
        self._new: deque[Outlet] = deque()
        self._poller = zmq.Poller()
        self._wake_in, self._wake_out = sockets.socketpair()
        for end in (self._wake_in, self._wake_out):
            end.setblocking(False)
        self._poller.register(self._wake_in.fileno(), zmq.POLLIN)
        self._asleep = False
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="urlab-publishing", daemon=True)
        self._thread.start()

    def add(self, outlet: Outlet) -> None:
        """Serve one more outlet; its socket is this thread's from now on."""
        outlet.wake = self._wake
        self._new.append(outlet)
        self._wake()

    def close(self) -> None:
        """End the thread and close its sockets; what was not sent by then is lost. Once is enough."""
        if self._stopping:
            return
        self._stopping = True
        self._wake()
        self._thread.join(_STOP_LIMIT_S)

    def _wake(self) -> None:
        if self._asleep:
            self._asleep = False
            with contextlib.suppress(OSError):
                self._wake_out.send(b"!")

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._serve_once()
        finally:
            self._close()

    def _serve_once(self) -> None:
        self._asleep = True
        # Whoever offers something from here on wakes us; what was offered before is seen now.
        busy = self._stopping or self._new or any(outlet.has_work for outlet in self._outlets)
        events = dict(self._poller.poll(0 if busy else None))
        self._asleep = False
        if self._wake_in.fileno() in events:
            self._wake_in.recv(4096)
        self._adopt_new()
        for outlet in self._outlets:
            if outlet.has_work or outlet.socket in events:
                self._serve(outlet, outlet.socket in events)

    def _adopt_new(self) -> None:
        while self._new:
            outlet = self._new.popleft()
            self._outlets.append(outlet)
            self._poller.register(outlet.socket, zmq.POLLIN)

    def _serve(self, outlet: Outlet, spoken_to: bool) -> None:
        try:
            if spoken_to:
                outlet.hear()
            outlet.flush()
        except Exception:
            log.exception("a stream at %s failed for a moment", outlet.endpoint)

    def _close(self) -> None:
        for outlet in (*self._outlets, *self._new):
            outlet.close()
        self._wake_in.close()
        self._wake_out.close()
