"""The RPC port below ZeroMQ: raw bytes, broken handshakes and frames, silent and slow peers, unread bursts.

A good client steps in lockstep beside them. Everything goes to the attacked server and to another one in turns, so that
what the good client waits can be compared.

    python -m tests.campaign.fronts.zmtp SEED SECONDS HOST PORT  (one process of bytes)
"""

import contextlib
import random
import socket as sockets
import struct
import sys
import time
from collections.abc import Callable, Iterator

import msgpack
import zmq

from tests.campaign import values
from tests.campaign.good_client import ELSEWHERE, HERE, GoodClient
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import UrlabServer, run_part, scratch, settles, two_servers

ABOUT = "raw bytes, handshakes, frames, silent and slow peers, and bursts on the RPC port, beside a good client"
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
HOSTILE = ("connections: ", "burst: ", "silent connections", "slow handshakes")
SENT_AT_MOST = 4 << 20
SILENT = 1200
LORISES = 200
MORE_BYTES = 300 << 20
_CONNECT_S = 10.0
_REPLY_S = 60.0

Attack = Callable[[random.Random], bytes]


def command(name: bytes, body: bytes = b"") -> bytes:
    """A command frame."""
    content = bytes((len(name),)) + name + body
    return bytes((4, len(content))) + content


def ready(kind: bytes = b"DEALER") -> bytes:
    """The READY command of a peer."""
    return command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind)


def shake_hands(address: tuple[str, int], kind: bytes) -> sockets.socket:
    """A raw peer after its handshake; libzmq ends connections that send messages before its own half has come."""
    peer = sockets.create_connection(address, _CONNECT_S)
    peer.sendall(GREETING)
    stream = peer.makefile("rb", buffering=0)
    received = 0
    while received < len(GREETING) and (part := stream.read(len(GREETING) - received)):
        received += len(part)
    peer.sendall(ready(kind))
    head = stream.read(2)
    if head is None or len(head) < 2 or not stream.read(head[1]):
        raise ConnectionResetError("no handshake")
    return peer


def frame(body: bytes, flags: int = 0) -> bytes:
    """A frame, as it should be."""
    if len(body) < 256:
        return bytes((flags, len(body))) + body
    return bytes((flags | 2,)) + struct.pack(">Q", len(body)) + body


def request(op: str, **fields: object) -> bytes:
    """The two frames of a REQ client."""
    return b"\x01\x00" + frame(msgpack.packb({"op": op, **fields}))


# -- what single connections send ---------------------------------------------------------------------------------


def _random_bytes(chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice((1, 10, 64, 65, 1000, 100_000)))


def _good(chance: random.Random) -> bytes:
    count = chance.randrange(1, 6)
    return GREETING + ready() + b"".join(b"\x01\x00" + frame(values.frame(chance, None)) for _ in range(count))


def _truncated(chance: random.Random) -> bytes:
    whole = _good(chance)
    return whole[: chance.randrange(len(whole))]


def _mutated(chance: random.Random) -> bytes:
    return values.spoil(chance, _good(chance))


def _mutated_handshake(chance: random.Random) -> bytes:
    return values.spoil(chance, GREETING) + values.spoil(chance, ready()) + request("meta")


def _lengths(chance: random.Random) -> bytes:
    size = chance.choice((0, 1, 255, 2**16, 2**26, 2**26 + 1, 2**30, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1))
    head = bytes((chance.choice((2, 3, 6, 7, 0x83, 0xFF)),)) + struct.pack(">Q", size)
    return GREETING + ready() + chance.choice((b"", b"\x01\x00")) + head + chance.randbytes(chance.choice((0, 5, 5000)))


def _socket_types(chance: random.Random) -> bytes:
    kind = chance.choice((b"REQ", b"SUB", b"PUB", b"ROUTER", b"PAIR", b"XPUB", b"", b"x" * 200, b"\xff\xfe"))
    return GREETING + ready(kind) + request("meta")


def _mechanisms(chance: random.Random) -> bytes:
    name = chance.choice((b"PLAIN", b"CURVE", b"GSSAPI", b"", b"\xff" * 20, b"null"))
    return GREETING[:12] + name.ljust(20, b"\0") + GREETING[32:] + command(b"HELLO", chance.randbytes(194)) + ready()


def _many_frames(chance: random.Random) -> bytes:
    return GREETING + ready() + b"\x01\x00" * chance.choice((2, 10, 999, 1001, 5000)) + b"\x00\x00" + request("meta")


def _commands(chance: random.Random) -> bytes:
    names = (b"PING", b"PONG", b"ERROR", b"SUBSCRIBE", b"CANCEL", b"READY", b"X" * 200, b"")
    pings = b"".join(command(chance.choice(names), chance.randbytes(chance.choice((0, 2, 18, 19)))) for _ in range(50))
    return GREETING + ready() + pings + request("meta")


BYTES: dict[str, Attack] = {
    "random bytes": _random_bytes,
    "good requests": _good,
    "truncated": _truncated,
    "mutated": _mutated,
    "mutated handshakes": _mutated_handshake,
    "length prefixes": _lengths,
    "socket types": _socket_types,
    "mechanisms": _mechanisms,
    "many frames": _many_frames,
    "commands": _commands,
}


def send_bytes(outcome: Outcome, seed: int, seconds: float, address: tuple[str, int]) -> None:
    """One connection after the other; ended by closing, by a reset, or left for a while."""
    until, number, left = time.monotonic() + seconds, 0, []
    while time.monotonic() < until:
        number += 1
        chance = random.Random(f"{seed}/zmtp/{number}")
        name = chance.choice(list(BYTES))
        outcome.tried[f"connections: {name}"] += 1
        try:
            peer = sockets.create_connection(address, _CONNECT_S)
        except OSError as refused:
            outcome.lose("a connection was not taken", f"{number}: {refused!r}")
            continue
        with contextlib.suppress(OSError):
            _send(peer, BYTES[name](chance), chance)
        if chance.random() < 0.3:
            peer.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            outcome.tried["connections that were reset"] += 1
        if chance.random() < 0.1:
            left.append(peer)
            del left[:-50]
        else:
            peer.close()


def _send(peer: sockets.socket, data: bytes, chance: random.Random) -> None:
    for part in _parts(data, chance):
        peer.sendall(part)
    if chance.random() < 0.5:
        peer.settimeout(0.005)
        peer.recv(1 << 16)


def _parts(data: bytes, chance: random.Random) -> Iterator[bytes]:
    if chance.random() < 0.7:
        yield data
        return
    size = chance.choice((1, 7, 64, 1000))
    for start in range(0, min(len(data), 50 * size), size):
        yield data[start : start + size]


# -- bursts, of which none is read ----------------------------------------------------------------------------------


BURSTS: dict[str, tuple[Callable[[str], bytes], bool]] = {
    "hello x 50, closed": (lambda _: request("hello") * 50, True),
    "hello x 100, closed": (lambda _: request("hello") * 100, True),
    "hello x 200, closed": (lambda _: request("hello") * 200, True),
    "hello x 700, closed": (lambda _: request("hello") * 700, True),
    "hello of observers x 700, open": (lambda _: request("hello", observer=True) * 700, False),
    "meta x 5000, open": (lambda _: request("meta") * 5000, False),
    "cameras x 100, open": (lambda own: request("step", session_id=own, include_cameras=True) * 100, False),
    "step(100) x 915, open": (lambda own: request("step", session_id=own, n_steps=100) * 915, False),
    "ping x 20000, open": (lambda _: command(b"PING", b"\0\0") * 20_000, False),
}
"""(bytes for the session of an observer, whether the connection is closed at once)."""

BURST_S = 1.5


def _burst(server: UrlabServer, data: bytes, is_closed: bool) -> sockets.socket:
    """Send it, without reading a byte."""
    peer = sockets.create_connection(server.address, _CONNECT_S)
    peer.settimeout(BURST_S)
    with contextlib.suppress(OSError):
        peer.sendall(GREETING + ready() + data)
    if is_closed:
        peer.close()
    return peer


FLOODERS, IN_FLIGHT = 4, 50


def _flood(server: UrlabServer, seconds: float) -> int:
    """Clients that ask far ahead, and do read: so many requests were answered."""
    with contextlib.ExitStack() as opened:
        context = opened.enter_context(zmq.Context())
        dealers = [opened.enter_context(context.socket(zmq.DEALER)) for _ in range(FLOODERS)]
        poller, answered = zmq.Poller(), 0
        frames = [b"", msgpack.packb({"op": "meta"})]
        for dealer in dealers:
            dealer.setsockopt(zmq.LINGER, 0)
            dealer.connect(server.endpoint)
            poller.register(dealer, zmq.POLLIN)
            for _ in range(IN_FLIGHT):
                dealer.send_multipart(frames)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for dealer, _ in poller.poll(100):
                dealer.recv_multipart()
                dealer.send_multipart(frames)
                answered += 1
    return answered


def ask(address: tuple[str, int], op: str, **fields: object) -> dict[str, object]:
    """One request on a connection of its own, with plain sockets."""
    with sockets.create_connection(address, _CONNECT_S) as peer:
        peer.settimeout(_REPLY_S)
        peer.sendall(GREETING + ready() + request(op, **fields))
        stream = peer.makefile("rb")
        stream.read(64)
        while True:
            flags, size = stream.read(1)[0], 0
            size = struct.unpack(">Q", stream.read(8))[0] if flags & 2 else stream.read(1)[0]
            body = stream.read(size)
            if not flags & 5:
                reply: dict[str, object] = values.decode(body)
                return reply


def _bursts(plan: Plan, outcome: Outcome, here: UrlabServer, elsewhere: UrlabServer, good: GoodClient) -> None:
    while True:
        for name in BURSTS:
            for phase, server in (("elsewhere", elsewhere), ("here", here)):
                outcome.tried[f"burst: {name}"] += 1
                make, is_closed = BURSTS[name]
                data = make(str(ask(server.address, "hello", observer=True)["session_id"]))
                good.phase(phase)
                with _burst(server, data, is_closed):
                    time.sleep(BURST_S if not plan.short else 0.1)
                good.phase("between")
            if plan.left_s < 0:
                return
        for phase, server in (("flood " + ELSEWHERE, elsewhere), ("flood " + HERE, here)):
            good.phase(phase)
            outcome.tried["burst: flood of clients that read"] += _flood(server, 0.2 if plan.short else BURST_S)
            good.phase("between")
        if plan.short:
            return


# -- peers that are silent, slow, or never end ----------------------------------------------------------------------


def _silent(plan: Plan, outcome: Outcome, server: UrlabServer) -> None:
    """More connections that say nothing than the server takes: a new client is served all the same."""
    with contextlib.ExitStack() as open_ones:
        for _ in range(100 if plan.short else SILENT):
            with contextlib.suppress(OSError):
                open_ones.enter_context(contextlib.closing(sockets.create_connection(server.address, _CONNECT_S)))
                outcome.tried["silent connections"] += 1
        begin = time.monotonic()
        reply = _asked(outcome, server, "silent connections lock newcomers out")
        outcome.figures["a newcomer's wait beside silent connections, s"] = time.monotonic() - begin
        outcome.check(reply, "silent connections lock newcomers out")


def _asked(outcome: Outcome, server: UrlabServer, what: str) -> bool:
    try:
        return ask(server.address, "meta")["op"] == "meta_ok"
    except OSError as failed:
        outcome.lose(what, repr(failed))
        return True


def _slow(plan: Plan, outcome: Outcome, server: UrlabServer) -> None:
    """Handshakes of a byte a second are ended, within the time that a handshake has."""
    count, seconds = (20, 1.0) if plan.short else (LORISES, min(12.0, max(plan.left_s, 8.0)))
    peers = [sockets.create_connection(server.address, _CONNECT_S) for _ in range(count)]
    outcome.tried["slow handshakes"] += count
    until, place = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.send(GREETING[place : place + 1])
        place += 1
        time.sleep(0.5)
    left = sum(_is_open(peer) for peer in peers)
    outcome.check(plan.short or left == 0, "slow handshakes that are still open", left)
    for peer in peers:
        peer.close()


def _is_open(peer: sockets.socket) -> bool:
    peer.setblocking(False)
    try:
        while True:
            if not peer.recv(4096):
                return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def _endless(plan: Plan, outcome: Outcome, server: UrlabServer) -> None:
    """Frames with MORE for ever, and requests behind an own long step: memory stays bounded."""
    most = (8 << 20) if plan.short else MORE_BYTES
    for name, data in (
        ("frames with MORE", frame(bytes(60_000), flags=1)),
        ("requests ahead", request("step", n_steps=5) + request("meta", padding="x" * 60_000)),
    ):
        with sockets.create_connection(server.address, _CONNECT_S) as peer:
            peer.settimeout(1.0)
            sent = 0
            with contextlib.suppress(OSError):
                peer.sendall(GREETING + ready() + b"\x01\x00")
                while sent < most:
                    peer.sendall(data)
                    sent += len(data)
            outcome.tried[f"MB of {name}"] += sent >> 20


def run(plan: Plan, outcome: Outcome) -> None:
    with scratch() as folder, two_servers(plan, folder) as (here, elsewhere):
        before = here.held()
        good = GoodClient("lockstep", here.endpoint, folder)
        _bursts(plan.part(0.4), outcome, here, elsewhere, good)
        for name, attack in (("endless", _endless), ("silent", _silent), ("slow", _slow)):
            for where, server in ((ELSEWHERE, elsewhere), (HERE, here))[plan.short :]:
                good.phase(f"{name} {where}")
                attack(plan, outcome, server)
                good.phase("between")
        seconds = 1.0 if plan.short else max(plan.left_s / 2, 10.0)
        for where, server in ((ELSEWHERE, elsewhere), (HERE, here))[plan.short :]:
            good.phase(f"bytes {where}")
            words = (plan.seed, seconds, *server.address)
            outcome.add_outcome(run_part("fronts.zmtp", *words, folder=folder, limit_s=seconds + 120))
            good.phase("between")
        good.finish(outcome, is_timed=not plan.short)
        outcome.check(_asked(outcome, here, "unusable afterwards"), "unusable afterwards")
        left = settles(here.held, {**before, "threads": before["threads"] + 30, "descriptors": before["descriptors"]})
        outcome.check(not left, "left behind", f"{left}, before {before}")
        here.judge(outcome)


if __name__ == "__main__":
    found = Outcome()
    send_bytes(found, int(sys.argv[1]), float(sys.argv[2]), (sys.argv[3], int(sys.argv[4])))
    print(found.as_json())
