"""Requests: frames with anything in their fields, over the whole catalogue, over ZeroMQ and in process.

Each must get a reply of the protocol that is no internal error. Beside them a good client reads, or steps in lockstep;
what it waits is compared with what it waits while the same frames go to another server.

    python -m tests.campaign.fronts.requests SEED SECONDS KIND ENDPOINT...  (KIND: driver, stranger; in_process FOLDER)
"""

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import zmq

from tests.campaign import values
from tests.campaign.good_client import GoodClient
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import PROJECT, UrlabServer, Watched, run_part, scratch
from urlab_wire import CATALOGUE, ErrorCode

ABOUT = "fuzzed requests over the catalogue, in process and over ZeroMQ, beside a good client"
REPLY_LIMIT_MS = 60_000
PERIOD_S = 4.0
IN_FLIGHT = 8
FRESH_EVERY = 400
"""After so many requests a driver loads the level anew: what was spawned would slow down everything after it."""

_CODES = frozenset(map(str, ErrorCode))
_REPLY_OPS = frozenset(spec.reply_op for spec in CATALOGUE.values())


def run(plan: Plan, outcome: Outcome) -> None:
    with scratch() as folder:
        seconds = 2.0 if plan.short else plan.seconds / 3
        words = (plan.seed, seconds, "in_process", folder / "in_process")
        outcome.add_outcome(run_part("fronts.requests", *words, folder=folder, limit_s=seconds * 2 + 180))
        with UrlabServer(folder / "here") as here, UrlabServer(folder / "elsewhere") as elsewhere:
            for kind, good in (("stranger", "lockstep"), ("driver", "reader")):
                _attack(plan, outcome, folder, kind, good, seconds, [here.endpoint, elsewhere.endpoint])
            here.judge(outcome, "attacked server")
            elsewhere.judge(outcome, "other server")


def _attack(
    plan: Plan, outcome: Outcome, folder: Path, kind: str, good: str, seconds: float, endpoints: list[str]
) -> None:
    """One process of frames, which tells when it turns from one server to the other; the good client stays."""
    command = [sys.executable, "-m", "tests.campaign.fronts.requests", str(plan.seed), str(seconds), kind, *endpoints]
    client = GoodClient(good, endpoints[0], folder)
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
    except Exception as wrong:
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


def fuzz(outcome: Outcome, seed: int, seconds: float, kind: str, endpoints: list[str]) -> None:
    """Frames to one server after the other, some seconds each, with several of them on the way at a time."""
    until, number, turn = time.monotonic() + seconds, 0, 1
    with zmq.Context() as context:
        while time.monotonic() < until:
            target = endpoints[turn % len(endpoints)]
            with context.socket(zmq.DEALER) as socket:
                socket.setsockopt(zmq.LINGER, 0)
                socket.setsockopt(zmq.RCVTIMEO, REPLY_LIMIT_MS)
                socket.connect(target)
                print("here" if turn % 2 == 0 else "elsewhere", flush=True)
                end = min(until, time.monotonic() + min(PERIOD_S, seconds / 2))
                number = _fuzz_server(outcome, socket, seed, kind, number, end)
                print("between", flush=True)
            turn += 1


def _fuzz_server(outcome: Outcome, socket: Any, seed: int, kind: str, number: int, end: float) -> int:
    session_id, waiting = _begin(socket, kind), 0
    ops = values.READING if kind == "stranger" else None
    while time.monotonic() < end or waiting:
        if time.monotonic() < end and waiting < IN_FLIGHT:
            number += 1
            chance = _chance(seed, kind, number)
            use = session_id if kind == "driver" or chance.random() < 0.5 else str(chance.random())
            outcome.tried[f"frames ({kind})"] += 1
            socket.send_multipart([b"", values.frame(chance, use, ops)])
            waiting += 1
            continue
        try:
            reply = socket.recv_multipart()[-1]
        except zmq.Again:
            outcome.lose("no reply", f"seed {seed} {kind}, frame {number - waiting + 1}")
            return number
        waiting -= 1
        message = judge(outcome, reply, f"seed {seed} {kind}, frame {number - waiting}")
        if not waiting and (number % FRESH_EVERY < IN_FLIGHT or message.get("code") == "session_expired"):
            session_id = _begin(socket, kind)
    return number


def _begin(socket: Any, kind: str) -> str:
    """A session; that of a driver with a fresh level, that of a stranger may only look."""
    role = {"observer": True} if kind == "stranger" else {}

    def ask(op: str, session_id: str | None = None, **fields: Any) -> Any:
        socket.send_multipart([b"", msgpack.packb({"op": op, "session_id": session_id, **fields})])
        return values.decode(socket.recv_multipart()[-1])

    return begin(ask, **role)


def begin(ask: Callable[..., Any], **role: Any) -> str:
    """Say hello and, as a driver, begin with a fresh level."""
    session_id = str(ask("hello", **role).get("session_id"))
    if not role:
        ask("begin_pie", session_id, level_path="arena", step_mode="direct")
    return session_id


def fuzz_in_process(outcome: Outcome, seed: int, seconds: float, folder: Path) -> None:
    """The same frames for a server without sockets; `handle` must return whatever it is given."""
    from urlab.app import Server
    from urlab.config import ServerConfig

    server = Server(ServerConfig(project=Path(shutil.copytree(PROJECT, folder))), ["arena"])
    server.begin()
    handle = server.dispatcher.handle

    def ask(op: str, session_id: str | None = None, **fields: Any) -> Any:
        return values.decode(handle(msgpack.packb({"op": op, "session_id": session_id, **fields})))

    until, number, session_id = time.monotonic() + seconds, 0, begin(ask)
    while time.monotonic() < until:
        number += 1
        outcome.tried["frames (in process)"] += 1
        frame = values.frame(_chance(seed, "in_process", number), session_id)
        print(f"frame {number}", file=sys.stderr) if number % 1000 == 0 else None
        try:
            reply = handle(frame)
        except Exception as escaped:
            outcome.lose("in process: an exception escaped", f"seed {seed} in_process, frame {number}: {escaped!r}")
            continue
        message = judge(outcome, reply, f"seed {seed} in_process, frame {number}")
        if number % FRESH_EVERY == 0 or message.get("code") == "session_expired":
            session_id = begin(ask)
    outcome.check(ask("pie_status", session_id)["op"] == "pie_status_ok", "in process: unusable afterwards")
    server.close()


if __name__ == "__main__":
    found = Outcome()
    arguments = (found, int(sys.argv[1]), float(sys.argv[2]))
    if sys.argv[3] == "in_process":
        fuzz_in_process(*arguments, Path(sys.argv[4]))
    else:
        fuzz(*arguments, sys.argv[3], sys.argv[4:])
    print(found.as_json())
