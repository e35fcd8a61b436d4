"""Streams and control: subscriptions without end, subscribers that never read, broken bytes, garbage for the robots.

The server runs live. A subscriber that behaves must go on receiving the state, a client that reads its replies; what
that one waits is compared with what it waits while the same goes to another server.
"""

import contextlib
import random
import socket as sockets
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import zmq

from tests.campaign import values
from tests.campaign.fronts.zmtp import GREETING, command, frame, ready, shake_hands
from tests.campaign.good_client import ELSEWHERE, HERE, GoodClient
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import UrlabServer, scratch, settles, two_servers

ABOUT = "subscriptions, subscribers that never read, broken bytes and garbage controls, beside a good subscriber"
HOSTILE = (
    "long subscriptions", "subscribers", "connections with broken bytes", "control messages", "large control frames",
    "control frames with MORE",
)  # fmt: skip
TOPIC_BYTES, TOPICS = 3500, 100_000
LONGEST_GAP_S = 5.0
PATIENCE_S = 60.0
ROUND_S = 2.0
_CONNECT_S = 5.0


class GoodSubscriber:
    """Receives the whole state; the steps in it only grow. A thread of its own reads."""

    def __init__(self, endpoint: str) -> None:
        self.messages, self.worst_gap_s, self.wrong = 0, 0.0, 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(endpoint,), daemon=True)
        self._thread.start()

    def _run(self, endpoint: str) -> None:
        with zmq.Context() as context, context.socket(zmq.SUB) as socket:
            socket.setsockopt(zmq.LINGER, 0)
            socket.subscribe(b"state/full")
            socket.connect(endpoint)
            last_s, last_step = time.monotonic(), -1
            while not self._stopping.is_set():
                if socket.poll(100):
                    step = int(values.decode(socket.recv_multipart()[1])["step"])
                    self.messages += 1
                    self.wrong += step < last_step
                    self.worst_gap_s, last_s = max(self.worst_gap_s, time.monotonic() - last_s), time.monotonic()
                    last_step = step
                self.worst_gap_s = max(self.worst_gap_s, time.monotonic() - last_s)

    def finish(self, outcome: Outcome, *, is_timed: bool) -> None:
        """It must receive more after the attacks; with ``is_timed`` the longest gap is judged too."""
        after, until = self.messages, time.monotonic() + PATIENCE_S
        while self.messages == after and time.monotonic() < until:
            time.sleep(0.01)
        outcome.check(self.messages > after, "good subscriber: nothing after the attacks")
        self._stopping.set()
        self._thread.join(10)
        outcome.tried["messages of the good subscriber"] += self.messages
        outcome.figures["good subscriber: longest gap, s"] = self.worst_gap_s
        outcome.check(self.wrong == 0, "good subscriber: steps that went back", self.wrong)
        is_short = self.worst_gap_s < LONGEST_GAP_S
        outcome.check(is_short or not is_timed, "good subscriber: nothing for long", self.worst_gap_s)


def run(plan: Plan, outcome: Outcome) -> None:
    # Two subscribers of every camera, which are drawn by one core, leave little to everything else.
    live = ("--step-mode", "live")
    with scratch() as folder, two_servers(plan, folder, *live, target="panda") as (server, elsewhere):
        subscriber = GoodSubscriber(server.ready["state"])
        good = GoodClient("reader", server.endpoint, folder)
        before: dict[str, int] = {}
        attacks: list[Callable[[_Target, random.Random, float], None]] = [
            *(_subscriptions, _many_subscribers, _never_reads, _broken_bytes, _controls, _large_controls)
        ]
        number = 0
        while plan.left_s > 0 or number < len(attacks):
            attack = attacks[number % len(attacks)]
            for phase, attacked in ((ELSEWHERE, elsewhere), (HERE, server))[plan.short :]:
                good.phase(phase)
                chance = random.Random(f"{plan.seed}/streams/{number}")
                attack(_Target(attacked, outcome), chance, 0.3 if plan.short else ROUND_S)
                good.phase("between")
            number += 1
            if number == len(attacks):  # by now everything has been drawn and subscribed to once
                before = server.held()
            if not server.is_alive or (plan.short and number == len(attacks)):
                break
        good.finish(outcome, is_timed=not plan.short, name="reader beside streams")
        subscriber.finish(outcome, is_timed=not plan.short)
        if server.is_alive:
            most = {**before, "threads": before["threads"] + 30, "descriptors": before["descriptors"] + 5}
            left = settles(server.held, most)
            outcome.check(not left, "left behind", f"{left}, before {before}")
        server.judge(outcome)


class _Target:
    def __init__(self, server: UrlabServer, outcome: Outcome) -> None:
        self.outcome = outcome
        ready_file = server.ready
        self.control: str = ready_file["control"]
        self.publishing: list[str] = [ready_file["state"], ready_file["info"], *ready_file["cameras"].values()]
        self.all = [*self.publishing, self.control]

    def count(self, what: str, number: int = 1) -> None:
        self.outcome.tried[what] += number


def _address(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    return host, int(port)


def _subscriptions(target: _Target, chance: random.Random, seconds: float) -> None:
    """Many long topics on one connection, as raw bytes; the server ends it at some point."""
    until = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        with shake_hands(_address(chance.choice(target.publishing)), b"SUB") as peer:
            peer.settimeout(1.0)
            for _ in range(TOPICS):
                peer.sendall(frame(b"\x01" + chance.randbytes(TOPIC_BYTES)))
                target.count("long subscriptions")
                if time.monotonic() > until:
                    break


def _many_subscribers(target: _Target, chance: random.Random, seconds: float) -> None:
    """Subscribers that come and go, with many short topics each."""
    until = time.monotonic() + seconds
    with zmq.Context() as context:
        while time.monotonic() < until:
            with context.socket(zmq.SUB) as socket:
                socket.setsockopt(zmq.LINGER, 0)
                for _ in range(chance.choice((1, 10, 2000))):
                    socket.subscribe(chance.randbytes(chance.choice((0, 1, 20))))
                socket.connect(chance.choice(target.publishing))
                target.count("subscribers")
                socket.poll(chance.choice((0, 5, 50)))


def _never_reads(target: _Target, chance: random.Random, seconds: float) -> None:
    """Raw peers that subscribe to everything and never read a byte."""
    peers = []
    for endpoint in target.publishing * 2:
        with contextlib.suppress(OSError):
            peer = shake_hands(_address(endpoint), b"SUB")
            peer.sendall(frame(b"\x01"))
            peers.append(peer)
            target.count("subscribers that never read")
    time.sleep(seconds)
    for peer in peers:
        peer.close()


def _broken_bytes(target: _Target, chance: random.Random, seconds: float) -> None:
    """Handshakes and frames with spoilt bytes, on every port that libzmq serves."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        whole = GREETING + ready(chance.choice((b"SUB", b"PUB", b"XSUB", b"PAIR", b"x"))) + command(b"PING", b"\0\0ctx")
        whole += b"".join(frame(chance.randbytes(chance.randrange(300)), chance.choice((0, 1))) for _ in range(5))
        data = chance.choice((chance.randbytes(chance.randrange(1, 500)), values.spoil(chance, whole), whole))
        with contextlib.suppress(OSError):
            with sockets.create_connection(_address(chance.choice(target.all)), _CONNECT_S) as peer:
                if chance.random() < 0.3:
                    peer.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
                peer.sendall(data)
                target.count("connections with broken bytes")


def _control(chance: random.Random) -> list[bytes]:
    topic = chance.choice(
        (b"panda/control", b"panda/gains", b"panda/twist", b"no/control", b"/control", b"", chance.randbytes(20))
    )
    count = chance.choice((0, 1, 7, 2**16, 2**32 - 1))
    numbers = [chance.choice((0.0, 1.0, float("nan"), float("inf"), 1e38)) for _ in range(chance.randrange(9))]
    pairs = b"".join(struct.pack("<If", chance.choice((0, 1, 6, 2**31)), one) for one in numbers)
    payload = chance.choice((struct.pack("<I", count) + pairs, struct.pack("<I", len(numbers)) + pairs))
    payload = values.spoil(chance, payload) if chance.random() < 0.3 else payload
    return chance.choice(([topic, payload], [topic, payload], [topic], [topic, payload, payload], [payload]))


def _controls(target: _Target, chance: random.Random, seconds: float) -> None:
    """Messages for robots that are broken, or ask for what no actuator can do."""
    until = time.monotonic() + seconds
    with zmq.Context() as context, context.socket(zmq.PUB) as socket:
        _prepare(socket, target.control)
        while time.monotonic() < until:
            for _ in range(20):
                socket.send_multipart(_control(chance))
            target.count("control messages", 20)
            time.sleep(0.001)


def _large_controls(target: _Target, chance: random.Random, seconds: float) -> None:
    """Frames that are larger than any, and messages of frames without end."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            with shake_hands(_address(target.control), b"PUB") as peer:
                peer.settimeout(1.0)
                if chance.random() < 0.5:
                    peer.sendall(frame(bytes(chance.choice((200_000, 300_000, 5_000_000)))))
                    target.count("large control frames")
                else:
                    for _ in range(500):
                        peer.sendall(frame(bytes(50_000), flags=1))
                        target.count("control frames with MORE")


def _prepare(socket: Any, endpoint: str) -> None:
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, 1000)
    socket.connect(endpoint)
    time.sleep(0.05)  # messages before the handshake are dropped by ZeroMQ itself
