"""The evaluation server over HTTP: bodies, pickles that would run something, heads, slow and silent connections.

A good client asks for the status beside them. Half of the time the same goes to another server, to compare its waits.

    python -m tests.campaign.fronts.http SEED SECONDS MARKER URL...
"""

import contextlib
import http.client
import json
import os
import pickle
import random
import socket as sockets
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.campaign import values
from tests.campaign.good_client import figures_of, in_words, judge_phases
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import ROOT, Watched, scratch

ABOUT = "bodies, pickles, heads, slow and silent connections on the evaluation server, beside a good client"
TASK = ROOT / "tests" / "urlab" / "evaluation" / "cube_on_plate.toml"
HOSTILE = ("bodies: ", "broken heads", "slow bodies", "silent connections")
MEMORY_LIMIT_MB = 2500
PERIOD_S = 4.0
ROUTES = (
    "/create_workers", "/reset_result", "/step", "/step_chunk", "/give_up", "/kill", "/start_new_job", "/load_config",
)  # fmt: skip
"""All but /reset, which starts a process for every worker that it names; that one is sent broken bodies only."""

TYPES = ("application/octet-stream", "application/json", "application/msgpack", "application/x-pickle")
_REPLY_S = 60.0


class EvalServer(Watched):
    """`urlab eval serve` on a free port."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir()
        ready_file = folder / "ready.json"
        words = ["eval", "serve", "--port", "0", "--no-cameras", "--tasks", str(TASK), "--episodes", "3"]
        words += ["--workers", "2", "--results", str(folder / "results"), "--ready-file", str(ready_file)]
        super().__init__([sys.executable, "-m", "urlab", *words, *options], folder / "log", memory_mb=MEMORY_LIMIT_MB)
        self.url: str = self.wait_for(ready_file)["url"]


class GoodHttpClient:
    """Asks for the status, on a thread of its own, and measures."""

    def __init__(self, url: str) -> None:
        self.phase, self.wrong, self.requests = "before", [], 0
        self.waits: dict[str, list[float]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(_place(url),), daemon=True)
        self._thread.start()

    def _run(self, place: tuple[str, int]) -> None:
        connection = http.client.HTTPConnection(*place, timeout=_REPLY_S)
        while not self._stopping.wait(0.005):
            begin, phase = time.perf_counter(), self.phase
            try:
                connection.request("GET", "/status")
                reply = connection.getresponse()
                found = json.loads(reply.read())
                if reply.status != 200 or "data" not in found:
                    self.wrong.append(f"{reply.status}: {str(found)[:100]}")
            except (OSError, http.client.HTTPException, ValueError) as failed:
                self.wrong.append(repr(failed))
                connection.close()
            self.requests += 1
            self.waits.setdefault(phase, []).append(time.perf_counter() - begin)

    def finish(self, outcome: Outcome, *, is_timed: bool) -> None:
        self._stopping.set()
        self._thread.join(_REPLY_S)
        outcome.tried["good client: requests"] += self.requests
        for detail in self.wrong:
            outcome.lose("good client: wrong replies", detail)
        figures = {phase: figures_of(waits) for phase, waits in self.waits.items()}
        outcome.figures.update({f"good client, attack {phase}": in_words(one) for phase, one in figures.items()})
        if is_timed:
            judge_phases(outcome, "HTTP", figures)


def run(plan: Plan, outcome: Outcome) -> None:
    with contextlib.ExitStack() as started:
        folder = started.enter_context(scratch())
        here = started.enter_context(EvalServer(folder / "here"))
        elsewhere = here if plan.short else started.enter_context(EvalServer(folder / "elsewhere"))
        _start_a_worker(here.url)
        good = GoodHttpClient(here.url)
        marker = folder / "marker"
        seconds = 1.5 if plan.short else plan.seconds
        words = [str(plan.seed), str(seconds), str(marker), here.url, elsewhere.url]
        command = [sys.executable, "-m", "tests.campaign.fronts.http", *words]
        with Watched(command, folder / "attacker.log", stdout=subprocess.PIPE) as attacker:
            assert attacker.process.stdout is not None
            last = ""
            for line in attacker.process.stdout:
                last = line.decode().strip()
                good.phase = last if last in ("here", "elsewhere") else good.phase
            attacker.process.wait(_REPLY_S)
        good.finish(outcome, is_timed=not plan.short)
        if last.startswith("{"):
            outcome.add_json(last)
        else:
            outcome.lose("the attacker died", attacker.log.read_text()[-500:])
        outcome.check(not marker.exists(), "a pickle was executed", marker)
        here.judge(outcome, "attacked server")
        elsewhere.judge(outcome, "other server")


def _place(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)


def _start_a_worker(url: str) -> None:
    """So that actions meet a simulation."""
    connection = http.client.HTTPConnection(*_place(url), timeout=_REPLY_S)
    connection.request("POST", "/reset", json.dumps({"worker_ids": ["0"]}), {"Content-Type": "application/json"})
    connection.getresponse().read()
    connection.close()


# -- one process of attacks ---------------------------------------------------------------------------------------


class _Calls:
    """Pickles as a call of anything with anything."""

    def __init__(self, *reduced: Any) -> None:
        self._reduced = reduced

    def __reduce__(self) -> Any:
        return self._reduced


def armed(chance: random.Random, marker: str) -> bytes:
    """A pickle that makes the file ``marker`` when pickle itself loads it."""
    shell, code = f"touch {marker}", f"open({marker!r}, 'w')"
    line = shell.encode()
    payload = chance.choice(
        (
            _Calls(os.system, (shell,)),
            _Calls(eval, (code,)),
            _Calls(exec, (code,)),
            _Calls(subprocess.Popen, (["touch", marker],)),
            _Calls(np.ndarray, ((0,),), (1, (1,), np.dtype("O"), False, [_Calls(os.system, (shell,))])),
            np.array([_Calls(os.system, (shell,))], dtype=object),
            _Calls(list, (), None, iter([_Calls(os.system, (shell,))])),
            _Calls(dict, (), None, None, iter([("a", _Calls(os.system, (shell,)))])),
            _Calls(getattr, (os, "system")),
        )
    )
    by_hand = (
        b"(S'" + line + b"'\nios\nsystem\n.",
        b"(cos\nsystem\nS'" + line + b"'\no.",
        b"\x80\x04\x8c\x05numpy\x8c\x0dcore.os.system\x93\x8c" + bytes([len(line)]) + line + b"\x85R.",
        b"cbuiltins\ngetattr\n(cos\n__dict__\nX\x06\x00\x00\x00systemtR(X"
        + struct.pack("<I", len(line))
        + line
        + b"tR.",
    )
    if chance.random() < 0.3:
        return chance.choice(by_hand)
    wrapped = chance.choice((payload, {"0": payload}, {"worker_ids": [payload]}, [{"0": {"action": payload}}]))
    with contextlib.suppress(Exception):
        return pickle.dumps(wrapped, chance.randrange(6))
    return by_hand[0]


def bomb(chance: random.Random) -> bytes:
    """A pickle that asks for far more memory than it has bytes."""
    array = np.zeros(chance.choice((10, 10_000)))
    encoded = {
        "type": "numpy_array",
        "dtype": "float64",
        "shape": [len(array)],
        "data": "A" * (len(array) * 8 * 4 // 3),
    }
    size = struct.pack("<Q", chance.choice((1 << 31, 1 << 40, 1 << 62)))
    return chance.choice(
        (
            pickle.dumps([encoded] * 50_000, 5),
            pickle.dumps([array] * 50_000, 5),
            pickle.dumps(array, 5).replace(b"\x85", b"\x85", 1).replace(b"K\x0a", b"J\xff\xff\xff\x7f"),
            b"\x80\x04\x8e" + size + b"x.",
            b"\x80\x05\x96" + size + b"x.",
            b"\x80\x02](" + b"]q\x00" + b"".join(b"](h%ch%ce" % (i, i) + b"q%c" % (i + 1) for i in range(60)) + b"e.",
            b"\x80\x02" + b"](" * 100_000 + b"e" * 100_000 + b".",
            b"\x80\x02})" + b"\x85" * 200_000 + b"Ns.",
        )
    )


def honest(chance: random.Random) -> Any:
    """What clients send."""
    numbers = [
        chance.choice((0.0, 0.1, float("nan"), float("inf"), 1e308, -5)) for _ in range(chance.choice((0, 7, 9)))
    ]
    action = {"action": chance.choice((numbers, np.array(numbers), None, "x", [[0.1] * 3, [1, 0, 0, 0], 1.0])),
              "control_type": chance.choice(("joint_position", "ee_pose", "no", None, 7))}  # fmt: skip
    return chance.choice(
        (
            {"0": action}, [{"0": action}] * chance.choice((1, 3, 500)), {"worker_ids": ["0"]},
            {"data": {"worker_ids": []}},
            {"worker_ids": ["0"], "reason": "x" * 1000}, {"data": {"config_path": ["no"], "run_id": "../x"}},
            {"data": {"config_path": chance.choice((["/etc/passwd"], "../..", [str(TASK)], 7)), "episodes": -1}},
        )
    )  # fmt: skip


KINDS = {
    "armed pickles": 3, "bombs": 1, "mutated pickles": 6, "honest pickles": 2, "fuzzed maps": 5, "random bytes": 2,
}  # fmt: skip
"""Of bodies, and how often each is sent."""


def body(chance: random.Random, marker: str) -> tuple[str, bytes, str]:
    """(kind, bytes, media type)."""
    kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
    if kind == "armed pickles":
        return kind, armed(chance, marker), chance.choice(TYPES)
    if kind == "bombs":
        return kind, bomb(chance), TYPES[0]
    if kind == "random bytes":
        return kind, chance.randbytes(chance.choice((0, 1, 50, 5000))), chance.choice(TYPES)
    if kind == "fuzzed maps":
        value = chance.choice(
            (values.anything(chance), {"data": values.anything(chance)}, {"0": values.anything(chance)})
        )
        is_json = chance.random() < 0.5
        return kind, _encoded(value, is_json), TYPES[1] if is_json else TYPES[2]
    pickled = pickle.dumps(honest(chance), chance.randrange(6))
    return kind, values.spoil(chance, pickled) if kind == "mutated pickles" else pickled, TYPES[0]


def _encoded(value: Any, is_json: bool) -> bytes:
    encode: Callable[[Any], bytes] = values.in_json if is_json else values.in_msgpack
    return encode(value)


def attack(outcome: Outcome, seed: int, seconds: float, marker: str, urls: list[str]) -> None:
    """Bodies, and now and then something below HTTP, to one server after the other."""
    until, number, turn = time.monotonic() + seconds, 0, 1
    while time.monotonic() < until:
        url = urls[turn % len(urls)]
        print("here" if turn % 2 == 0 else "elsewhere", flush=True)
        end = min(until, time.monotonic() + min(PERIOD_S, seconds / 2))
        connection = http.client.HTTPConnection(*_place(url), timeout=_REPLY_S)
        idle: list[sockets.socket] = []
        while time.monotonic() < end:
            number += 1
            chance = random.Random(f"{seed}/http/{number}")
            if chance.random() < 0.05:
                _below_http(outcome, chance, _place(url), idle)
            else:
                connection = _send(outcome, connection, chance, marker, f"seed {seed} http {number}")
        connection.close()
        for one in idle:
            one.close()
        turn += 1


def _send(outcome: Outcome, connection: Any, chance: random.Random, marker: str, where: str) -> Any:
    kind, data, media_type = body(chance, marker)
    is_broken = kind in ("armed pickles", "random bytes", "bombs")
    route = chance.choice((*ROUTES, "/reset") if is_broken and data else ROUTES)
    headers = {} if chance.random() < 0.05 else {"Content-Type": media_type}
    if chance.random() < 0.1:
        strange = {
            "Host": "evil.example",
            "Origin": "http://evil.example",
            "X-Run-Id": "x" * 500,
            "Expect": "100-continue",
        }
        name = chance.choice(list(strange))
        headers[name] = strange[name]
    outcome.tried[f"bodies: {kind}"] += 1
    try:
        connection.request("POST", route, data, headers)
        reply = connection.getresponse()
        reply.read()
        outcome.tried[f"answered {reply.status // 100}xx"] += 1
        outcome.check(reply.status < 500, "server errors", f"{where} {route} {kind}: {reply.status}")
        if headers.get("Host") or headers.get("Origin"):
            outcome.check(reply.status >= 400, "a foreign page was answered", f"{where} {route} {headers}")
    except (OSError, http.client.HTTPException) as failed:
        outcome.tried["connections that the server ended"] += 1
        if isinstance(failed, TimeoutError):
            outcome.lose("no reply", f"{where} {route} {kind}")
        connection.close()
        return http.client.HTTPConnection(connection.host, connection.port, timeout=_REPLY_S)
    return connection


HEADS = (
    b"POST /step HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n",
    b"POST /step HTTP/1.1\r\n" + b"X: y\r\n" * 5000,
    b"POST /step HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    b"POST /step HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * 1000,
    b"GET /status HTTP/1.1\r\nHost:" + b"a" * 70_000,
    b"POST /step HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
)  # fmt: skip


def _below_http(outcome: Outcome, chance: random.Random, place: tuple[str, int], idle: list[sockets.socket]) -> None:
    """Heads that are none, bodies that never end, connections that say nothing."""
    try:
        peer = sockets.create_connection(place, _REPLY_S)
    except OSError as refused:
        outcome.lose("a connection was not taken", repr(refused))
        return
    kind = chance.choice(("broken heads", "slow bodies", "silent connections"))
    outcome.tried[kind] += 1
    with contextlib.suppress(OSError):
        if kind == "broken heads":
            head = chance.choice(HEADS)
            peer.sendall(values.spoil(chance, head) if chance.random() < 0.5 else head)
        elif kind == "slow bodies":
            peer.sendall(b"POST /step HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n")
            peer.sendall(b"Content-Length: 1000000\r\n\r\n[" + b"0," * chance.randrange(1000))
    idle.append(peer)
    while len(idle) > 300:
        idle.pop(0).close()


if __name__ == "__main__":
    found = Outcome()
    attack(found, int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:])
    print(found.as_json())
