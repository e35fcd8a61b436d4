"""Requests: frames with anything in their fields, over the whole catalogue, over ZeroMQ and in process.

Each must get a reply of the protocol that is no internal error. Beside them a good client reads, or steps in lockstep;
what it waits is compared with what it waits while the same frames go to another server.

    python -m tests.campaign.fronts.requests SEED SECONDS (driver|stranger) (ENDPOINT PROJECT)... | in_process FOLDER
"""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgpack
import zmq

from tests.campaign import values
from tests.campaign.good_client import GoodClient
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import PROJECT, UrlabServer, Watched, run_part, scratch, two_servers
from urlab_wire import CATALOGUE, ErrorCode

ABOUT = "fuzzed requests over the catalogue, in process and over ZeroMQ, beside a good client"
HOSTILE = ("frames (",)
REPLY_LIMIT_MS = 60_000
PERIOD_S = 4.0
IN_FLIGHT = 8
FRESH_EVERY = 400
"""After so many requests a driver loads the level anew: what was spawned would slow down everything after it."""

_CODES = frozenset(map(str, ErrorCode))
_REPLY_OPS = frozenset(spec.reply_op for spec in CATALOGUE.values())


def run(plan: Plan, outcome: Outcome) -> None:
    with scratch() as folder:
        seconds = 1.0 if plan.short else plan.seconds / 3
        if not plan.short:  # tests/compliance/test_hostile_requests.py does so as well
            words = (plan.seed, seconds, "in_process", folder / "in_process")
            outcome.add_outcome(run_part("fronts.requests", *words, folder=folder, limit_s=seconds * 2 + 180))
        with two_servers(plan, folder) as (here, elsewhere):
            for kind, good in (("stranger", "lockstep"), ("driver", "reader")):
                _attack(plan, outcome, folder, kind, good, seconds, here, elsewhere)
            here.judge(outcome, "attacked server")
            elsewhere.judge(outcome, "other server")


def _attack(
    plan: Plan,
    outcome: Outcome,
    folder: Path,
    kind: str,
    good: str,
    seconds: float,
    here: UrlabServer,
    elsewhere: UrlabServer,
) -> None:
    """One process of frames, which tells when it turns from one server to the other; the good client stays."""
    servers = [word for one in (here, elsewhere) for word in (one.endpoint, str(one.project))]
    command = [sys.executable, "-m", "tests.campaign.fronts.requests", str(plan.seed), str(seconds), kind, *servers]
    client = GoodClient(good, here.endpoint, folder)
    with Watched(command, folder / f"{kind}.log", stdout=subprocess.PIPE) as attacker:
        assert attacker.process.stdout is not None
        last = ""
        for line in attacker.process.stdout:
            last = line.decode().strip()
            if last in ("here", "elsewhere", "between"):
                client.phase(last)
        attacker.process.wait(REPLY_LIMIT_MS / 1000)
    client.finish(outcome, is_timed=not plan.short, name=f"{good} beside {kind}")
    if last.startswith("{"):
        outcome.add_json(last)
    else:
        outcome.lose(f"{kind}: the attacker found no server", attacker.log.read_text()[-500:])


# -- one process of frames ----------------------------------------------------------------------------------------


def judge(outcome: Outcome, reply: bytes, where: str) -> Any:
    """The decoded reply; what is wrong with it is lost."""
    try:
        message = values.decode(reply)
        op = message["op"]
    except Exception as wrong:  # noqa: BLE001 - whatever it is, it is a loss
        outcome.lose("a reply that is none", f"{where}: {wrong!r} {reply[:100]!r}")
        return {}
    if op == "error":
        outcome.tried["refused"] += 1
        outcome.check(message.get("code") in _CODES, "an unknown error code", f"{where}: {message}")
        outcome.check(message.get("code") != "internal_error", "internal errors", f"{where}: {message}")
        outcome.check(bool(message.get("message")), "an error without a message", f"{where}: {message}")
    else:
        outcome.tried["served"] += 1
        outcome.check(op in _REPLY_OPS, "a reply of no op", f"{where}: {str(message)[:200]}")
    return message


def _chance(seed: int, kind: str, number: int) -> random.Random:
    return random.Random(f"{seed}/{kind}/{number}")


def fuzz(outcome: Outcome, seed: int, seconds: float, kind: str, endpoints: list[str], projects: list[Path]) -> None:
    """Frames to one server after the other, some seconds each, with several of them on the way at a time."""
    until, number, turn = time.monotonic() + seconds, 0, 1
    servers = list(zip(endpoints, projects, strict=True))
    with zmq.Context() as context:
        while time.monotonic() < until:
            target, project = servers[turn % len(servers)]
            with context.socket(zmq.DEALER) as socket:
                socket.setsockopt(zmq.LINGER, 0)
                socket.setsockopt(zmq.RCVTIMEO, REPLY_LIMIT_MS)
                socket.connect(target)
                print("here" if turn % 2 == 0 else "elsewhere", flush=True)
                end = min(until, time.monotonic() + min(PERIOD_S, seconds / 2))
                number = _fuzz_server(outcome, _FuzzedSession(_Asking(socket), kind, project), seed, kind, number, end)
                print("between", flush=True)
            turn += 1


def _fuzz_server(outcome: Outcome, session: "_FuzzedSession", seed: int, kind: str, number: int, end: float) -> int:
    waiting, link = 0, session.link
    ops = values.READING if kind == "stranger" else None
    while time.monotonic() < end or waiting:
        if time.monotonic() < end and waiting < IN_FLIGHT and not session.is_worn:
            number += 1
            chance = _chance(seed, kind, number)
            use = session.id if kind == "driver" or chance.random() < 0.5 else str(chance.random())
            outcome.tried[f"frames ({kind})"] += 1
            link.send(values.frame(chance, use, ops))
            waiting += 1
            continue
        if waiting:
            reply = link.receive()
            if reply is None:
                outcome.lose("no reply", f"seed {seed} {kind}, frame {number - waiting + 1}")
                return number
            waiting -= 1
            session.learn(judge(outcome, reply, f"seed {seed} {kind}, frame {number - waiting}"))
        else:
            session.begin()
    return number


class _Asking:
    """Frames to a server and back, over a DEALER."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    def send(self, frame: bytes) -> None:
        self._socket.send_multipart([b"", frame])

    def receive(self) -> bytes | None:
        try:
            return bytes(self._socket.recv_multipart()[-1])
        except zmq.Again:
            return None

    def __call__(self, frame: bytes) -> bytes:
        self.send(frame)
        return self.receive() or b"{}"


class _FuzzedSession:
    """The session that hostile requests use, in a level that is made anew now and then: they destroy that as well."""

    def __init__(self, link: Any, kind: str, project: Path) -> None:
        self.link, self._project = link, project
        self._role = {"observer": True} if kind == "stranger" else {}
        self.begin()

    def begin(self) -> None:
        """Say hello and, as a driver, begin with a fresh level."""
        self._requests = self._expired = 0
        self.id = None
        self.id = self.ask("hello", **self._role).get("session_id")
        if not self._role:
            shutil.copytree(PROJECT, self._project, dirs_exist_ok=True)
            self.ask("begin_pie", level_path="arena", step_mode="direct")

    def ask(self, op: str, **fields: Any) -> Any:
        """The reply to a request of this session."""
        return values.decode(self.link(msgpack.packb({"op": op, "session_id": self.id, **fields})))

    def learn(self, reply: Any) -> None:
        """Go on with the session that a fuzzed hello has opened, if one did."""
        self._requests += 1
        self._expired += reply.get("code") == "session_expired"
        if reply.get("op") == "hello_ok" and not self._role:
            self.id = reply["session_id"]

    @property
    def is_worn(self) -> bool:
        """Whether it is time for a fresh one."""
        return self._requests > FRESH_EVERY or (not self._role and self._expired > FRESH_EVERY // 10)


def fuzz_in_process(outcome: Outcome, seed: int, seconds: float, folder: Path) -> None:
    """The same frames for a server without sockets; `handle` must return whatever it is given."""
    from urlab.app import Server
    from urlab.config import ServerConfig

    server = Server(ServerConfig(project=Path(shutil.copytree(PROJECT, folder))), ["arena"])
    server.begin()
    handle, number, until = server.dispatcher.handle, 0, time.monotonic() + seconds
    session = _FuzzedSession(handle, "driver", folder)
    while time.monotonic() < until:
        number += 1
        outcome.tried["frames (in process)"] += 1
        where = f"seed {seed} in_process, frame {number}"
        try:
            reply = handle(values.frame(_chance(seed, "in_process", number), session.id))
        except Exception as escaped:  # noqa: BLE001 - whatever it is, it is a loss
            outcome.lose("in process: an exception escaped", f"{where}: {escaped!r}")
            continue
        session.learn(judge(outcome, reply, where))
        if session.is_worn:
            session.begin()
    outcome.check(session.ask("pie_status").get("op") == "pie_status_ok", "in process: unusable afterwards")
    server.close()


if __name__ == "__main__":
    found = Outcome()
    arguments = (found, int(sys.argv[1]), float(sys.argv[2]))
    if sys.argv[3] == "in_process":
        fuzz_in_process(*arguments, Path(sys.argv[4]))
    else:
        fuzz(*arguments, sys.argv[3], sys.argv[4::2], list(map(Path, sys.argv[5::2])))
    print(found.as_json())
