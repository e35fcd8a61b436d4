"""Who may connect to ZeroMQ's own sockets, which accept by themselves, and what a connection may cost.

Each socket has a monitor, which tells the descriptor of every connection that it accepts, and a ZAP domain, so that
ZeroMQ asks before it ends a connection's handshake. One thread reads both. There is one I/O thread per context, which
tells of a connection before it works on it: so when the question comes, the thread has been told the descriptor. It
ends connections of other users of the machine there and then, and only then answers. Hence such a connection never
gets, or gets through, anything but the first bytes of ZeroMQ's greeting.

With keys, connections are encrypted, and only those are let in whose key is known and has the role that the socket
needs; then the user of a connection within this machine does not matter.

ZeroMQ keeps the frames of a message until its last one has come, however many that are. So the same thread compares,
ten times a second, what each connection has sent with what the socket's owner has got of it.
"""

import contextlib
import errno
import itertools
import logging
import os
import socket as sockets
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import zmq
from zmq.utils import z85

from urlab import access
from urlab.access import KeyPair, KeysFolder, KnownKey, Role
from urlab.monitoring.watchdog import Turns

log = logging.getLogger("urlab.transport")

MOST_CONNECTIONS = 500
"""To one socket at a time."""

MOST_CONNECTIONS_PER_KEY = 64

HANDSHAKE_MS = 5000
"""A connection that has not ended its handshake by then is closed."""

MOST_UNDELIVERED_BYTES = 64 * 1024 * 1024
"""What a connection may have sent that did not come out of the socket."""

_HEARTBEAT_BYTES_PER_S = 1000
"""Heartbeats never come out of a socket."""

_FRAME_OVERHEAD_BYTES = 16
_LOOK_EVERY_MS = 50
_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_ZAP_FRAMES = 6
_EVENT = struct.Struct("=HI")
_LEFT = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
"""The connection that is told to be disconnected next left, or said nothing, in the middle of its handshake."""

_EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED | zmq.EVENT_MONITOR_STOPPED | _LEFT
_TCP_INFO, _TCP_INFO_BYTES, _BYTES_RECEIVED_AT = 11, 136, 128
_STOP_LIMIT_S = 3.0


Connected = Callable[[KnownKey, str], None]
"""Takes the key of a client that was let in, and its address."""


@dataclass(slots=True)
class ConnectionUse:
    """What a connection has cost so far; only the owner of its socket counts up ``topics`` and the bytes."""

    since_s: float = field(default_factory=time.monotonic)
    delivered_bytes: int = 0
    topics: int = 0
    name: str | None = None
    """The name of its key, once a message of it has come."""

    ended: bool = False
    address: str = ""
    is_judged: bool = False
    """Whether it was refused, or ZeroMQ has asked about it. Of connections of one address, the oldest counts."""

    def deliver(self, size: int, frames: int = 1) -> None:
        """The owner of the socket has got a message of this connection."""
        self.delivered_bytes += size + frames * _FRAME_OVERHEAD_BYTES

    def undelivered(self, received_bytes: int) -> float:
        """How much of what it has sent is still kept somewhere, at most."""
        return received_bytes - self.delivered_bytes - _HEARTBEAT_BYTES_PER_S * (time.monotonic() - self.since_s)


@dataclass(eq=False)
class GuardedSocket:
    """A socket whose connections are judged; ``connections`` has them by descriptor.

    ``on_end`` is called with the account of a connection that has ended, on the guard's thread.
    """

    endpoint: str
    monitor: Any
    domain: bytes
    needs: Role = Role.OBSERVER
    has_keys: bool = False
    most_undelivered_bytes: int = 0
    connections: dict[int, ConnectionUse] = field(default_factory=dict)
    on_end: Callable[[ConnectionUse], None] | None = None
    has_left: bool = False

    def use_by(self, frame: zmq.Frame) -> ConnectionUse | None:
        """The account of the connection that a frame has come from; None when it has gone already."""
        descriptor = source(frame)
        use = self.connections.get(descriptor)
        if use is not None:
            use.is_judged = True
        if use is not None and self.has_keys and use.name is None:
            use.name = key_name(frame)
            if sum(one.name == use.name for one in list(self.connections.values())) > MOST_CONNECTIONS_PER_KEY:
                self.refuse(descriptor, f"{MOST_CONNECTIONS_PER_KEY} connections are the most for the key {use.name!r}")
        return use

    def refuse(self, descriptor: int, reason: str) -> None:
        """End a connection of this socket, and say why in the log."""
        with held(descriptor) as connection:
            if connection is not None and self.has(connection):
                if (use := self.connections.get(descriptor)) is not None:
                    use.is_judged = True
                access.disconnect(connection)
                access.refusals.say(self.endpoint, f"{self.endpoint}: a connection is ended: {reason}")

    def asked_about(self, address: str) -> None:
        """ZeroMQ asks about a connection from that address."""
        waiting = [use for use in self.connections.values() if not use.is_judged]
        if waiting:
            next((use for use in waiting if use.address == address), waiting[0]).is_judged = True

    def ended(self, descriptor: int) -> None:
        """A connection has ended; one that ZeroMQ ended without asking has no key, or does not speak its protocol."""
        use, has_left = self.connections.pop(descriptor, None), self.has_left
        self.has_left = False
        if use is not None and self.on_end is not None:
            use.ended = True
            self.on_end(use)
        if use is None or use.is_judged or (has_left and not self.has_keys):
            return  # one that only looked whether there is a server is not worth a word
        why, reason = ("it has no key", "key") if self.has_keys else ("it does not speak ZeroMQ's protocol", "protocol")
        who = f"a client at {use.address}" if use.address else "a client that has gone meanwhile"
        text = f"{self.endpoint}: {who} is refused: {why}"
        access.refusals.say(f"{self.endpoint} {reason}", text, reason)

    def has(self, connection: sockets.socket) -> bool:
        """Whether a connection is to this socket; its descriptor may have got another meaning meanwhile."""
        try:
            name = connection.getsockname()
        except OSError:
            return False
        path = self.endpoint.removeprefix("ipc://")
        return bool(name == path if isinstance(name, str) else name[1] == int(path.rpartition(":")[2]))


class ConnectionGuard:
    """Ends connections of other users of this machine, unless they are welcome, and those that cost too much."""

    def __init__(
        self,
        context: "zmq.Context[zmq.Socket[bytes]]",
        *,
        share: bool = False,
        keys: KeysFolder | None = None,
        on_connected: Connected | None = None,
    ) -> None:
        """``context`` is that of the sockets; ``share`` lets other users of this machine in.

        ``keys`` are those that are let in, from wherever; ``on_connected`` is told of each, with its address.
        """
        self.context = context
        self._share = share or keys is not None
        self._keys = keys
        self._server_pair = None if keys is None else keys.server_pair(new_pair)
        self._keys_version = 0
        self._on_connected = on_connected
        self._guarded: dict[bytes, GuardedSocket] = {}
        self._domains = itertools.count()
        self._zap = context.socket(zmq.REP)
        self._zap.setsockopt(zmq.LINGER, 0)
        self._zap.bind(_ZAP_ENDPOINT)
        self._wake_in, self._wake_out = sockets.socketpair()
        self._stopping = False
        self._look_s = 0.0
        self._watched = Turns("urlab-guard")
        self._thread = threading.Thread(target=self._run, name="urlab-guard", daemon=True)
        self._thread.start()

    def guard(
        self, socket: Any, endpoint: str, needs: Role = Role.OBSERVER, most_undelivered_bytes: int | None = None
    ) -> GuardedSocket:
        """Guard a socket that is about to be bound; on the thread that owns the socket. Keys need that role.

        ``most_undelivered_bytes`` is for a socket whose messages may be larger than usual.
        """
        if self._server_pair is not None:
            socket.curve_server = True
            socket.curve_secretkey = self._server_pair.secret.encode()
        domain = f"urlab-{next(self._domains)}"
        socket.setsockopt(zmq.ZAP_DOMAIN, domain.encode())
        socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        socket.monitor(f"inproc://{domain}", _EVENTS)
        monitor = self.context.socket(zmq.PAIR)
        monitor.setsockopt(zmq.LINGER, 0)
        monitor.connect(f"inproc://{domain}")
        guarded = self._guarded[domain.encode()] = GuardedSocket(
            endpoint,
            monitor,
            domain.encode(),
            needs,
            self._keys is not None,
            most_undelivered_bytes or MOST_UNDELIVERED_BYTES,
        )
        self._wake()
        return guarded

    def close(self) -> None:
        """End the thread, after the sockets that it guards are closed. Once is enough."""
        if self._stopping:
            return
        self._stopping = True
        self._wake()
        self._thread.join(_STOP_LIMIT_S)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_out.send(b"!")

    # -- the thread's part --------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._watched.open()
        try:
            while not self._stopping:
                self._serve_once()
        finally:
            self._watched.close()
            for one in self._guarded.values():
                one.monitor.close()
            self._zap.close()
            self._wake_in.close()
            self._wake_out.close()

    def _serve_once(self) -> None:
        guarded = list(self._guarded.values())
        events = self._wait(guarded)
        self._watched.busy()
        try:
            for one in guarded:
                if one.monitor in events:
                    self._follow(one)
            if self._zap in events:
                self._answer(self._zap.recv_multipart())
            if time.monotonic() >= self._look_s:
                self._look_s = time.monotonic() + _LOOK_EVERY_MS / 1000
                for one in guarded:
                    _end_hoarders(one)
                if self._keys is not None:
                    self._end_revoked(self._keys, guarded)
        except zmq.ContextTerminated:
            self._stopping = True
        except Exception:
            log.exception("a connection could not be judged")
        self._watched.idle()

    def _wait(self, guarded: list[GuardedSocket]) -> dict[Any, int]:
        poller = zmq.Poller()
        poller.register(self._wake_in.fileno(), zmq.POLLIN)
        poller.register(self._zap, zmq.POLLIN)
        for one in guarded:
            if not one.monitor.closed:
                poller.register(one.monitor, zmq.POLLIN)
        events = dict(poller.poll(_LOOK_EVERY_MS if any(one.connections for one in guarded) else None))
        if self._wake_in.fileno() in events:
            self._wake_in.recv(4096)
        return events

    def _answer(self, question: list[bytes]) -> None:
        """Let ZeroMQ end a handshake, of a connection that has been judged by then."""
        request_id, domain = (question[1], question[2]) if len(question) >= _ZAP_FRAMES else (b"", b"")
        one = self._guarded.get(domain)
        if one is not None:
            self._follow(one)
            one.asked_about(question[3].decode("ascii", "replace"))
        if one is None:
            reply = [b"500", b"unknown domain", b"", b""]
        elif self._keys is None:
            reply = [b"200", b"OK", b"", b""]
        else:
            reply = self._judge_key(one, self._keys, question)
        self._zap.send_multipart([b"1.0", request_id, *reply])

    def _judge_key(self, one: GuardedSocket, keys: KeysFolder, question: list[bytes]) -> list[bytes]:
        """Status, text, user and metadata of the answer for a client that has proved to have a key."""
        address, mechanism, credentials = question[3].decode("ascii", "replace"), question[5], question[6:]
        public = z85.encode(credentials[0]).decode() if mechanism == b"CURVE" and len(credentials) == 1 else ""
        known = keys.find(public) if public else None
        if known is None:
            text = f"{one.endpoint}: a client at {address} is refused: its key is not known"
            access.refusals.say(f"{one.endpoint} key", text, "key")
            return [b"400", b"the key is not known", b"", b""]
        if not known.role.covers(one.needs):
            why = f"its role is {known.role}, and {one.needs} is needed"
            text = f"{one.endpoint}: {known.name!r} at {address} is refused: {why}"
            access.refusals.say(f"{one.endpoint} {known.name}", text, "key")
            return [b"400", b"the role of the key is not enough", b"", b""]
        if self._on_connected is not None:
            self._on_connected(known, address)
        return [b"200", b"OK", known.name.encode(), b""]

    def _end_revoked(self, keys: KeysFolder, guarded: list[GuardedSocket]) -> None:
        """End connections whose key was revoked, or lost the role that it needs, if the keys have changed."""
        keys.refresh()
        if keys.version == self._keys_version:
            return
        self._keys_version = keys.version
        for one in guarded:
            for descriptor, use in list(one.connections.items()):
                known = None if use.name is None else keys.by_name(use.name)
                if use.name is not None and (known is None or not known.role.covers(one.needs)):
                    one.refuse(descriptor, f"the key of {use.name!r} was revoked")

    def _follow(self, one: GuardedSocket) -> None:
        """Take what the monitor of a socket tells, up to now."""
        for event, descriptor in _events(one.monitor):
            if event == zmq.EVENT_ACCEPTED:
                self._judge(one, descriptor)
            elif event == _LEFT:
                one.has_left = True
            elif event == zmq.EVENT_DISCONNECTED:
                one.ended(descriptor)
            elif event == zmq.EVENT_MONITOR_STOPPED:
                one.monitor.close()
                one.connections.clear()
                self._guarded.pop(one.domain, None)

    def _judge(self, one: GuardedSocket, descriptor: int) -> None:
        use = one.connections[descriptor] = ConnectionUse()
        with held(descriptor) as connection:
            if connection is None or not one.has(connection):
                return  # closed already; the descriptor may be that of another connection by now
            use.address = _address(connection)
            if not self._share and access.is_stranger(connection):
                use.is_judged = True
                access.refusals.refused(one.endpoint, connection)
                access.disconnect(connection)
        if len(one.connections) > MOST_CONNECTIONS:
            one.refuse(descriptor, f"{MOST_CONNECTIONS} connections are the most")


def _address(connection: sockets.socket) -> str:
    """Of the other end of a TCP connection, without its port; empty when there is none."""
    try:
        name = connection.getpeername()
    except OSError:
        return ""
    return name[0] if isinstance(name, tuple) else ""


def _end_hoarders(one: GuardedSocket) -> None:
    for descriptor, use in list(one.connections.items()):
        if use.undelivered(_received_bytes(descriptor)) > one.most_undelivered_bytes:
            one.refuse(descriptor, f"more than {one.most_undelivered_bytes} bytes wait for the end of their message")


def _received_bytes(descriptor: int) -> int:
    """What the peer of a TCP connection has sent so far; 0 for other sockets."""
    try:
        connection = sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM, sockets.IPPROTO_TCP, fileno=descriptor)
    except OSError:
        return 0
    try:
        info = connection.getsockopt(sockets.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_BYTES)
        return int.from_bytes(info[_BYTES_RECEIVED_AT:_TCP_INFO_BYTES], sys.byteorder)
    except OSError:
        return 0
    finally:
        connection.detach()


def new_pair() -> KeyPair:
    """A fresh pair of keys."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def key_name(frame: zmq.Frame) -> str:
    """The name of the key of the connection that a frame has come from; empty when it has none."""
    try:
        return str(frame.get("User-Id"))
    except zmq.ZMQError:
        return ""


def source(frame: zmq.Frame) -> int:
    """The descriptor of the connection that a frame has come from; -1 when there is none."""
    try:
        return int(frame.get(zmq.SRCFD))
    except zmq.ZMQError:
        return -1


@contextlib.contextmanager
def held(descriptor: int) -> Iterator[sockets.socket | None]:
    """A socket of another part of this process, which may close it meanwhile without its number being used anew.

    None when it is closed already. Where there are no descriptors left, the socket is disconnected unseen.
    """
    try:
        connection = sockets.socket(fileno=os.dup(descriptor))
    except OSError as failed:
        if failed.errno in (errno.EMFILE, errno.ENFILE):
            _disconnect_unseen(descriptor)
        yield None
        return
    with connection:
        yield connection


def _disconnect_unseen(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        connection = sockets.socket(fileno=descriptor)
        try:
            access.disconnect(connection)
        finally:
            connection.detach()


def _events(monitor: Any) -> Iterator[tuple[int, int]]:
    """(event, value) of what a monitor has told by now; for connections the value is the descriptor."""
    with contextlib.suppress(zmq.Again):
        while not monitor.closed:
            event, value = _EVENT.unpack(monitor.recv_multipart(zmq.NOBLOCK)[0])
            yield event, value
