"""A client that behaves, beside an attack: every reply must be right, and what it waits for replies is measured.

``python -m tests.campaign.good_client KIND ENDPOINT``, with KIND ``lockstep`` (drives, and counts its steps) or
``reader`` (observes, and asks for what can be read). It reads names of phases from standard input, one a line; what it
waits counts for the phase that was named last. At the end of its input it prints what it found.
"""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgpack
import zmq

from tests.campaign.outcome import Outcome, percentile
from tests.campaign.processes import Watched
from tests.campaign.values import decode

REPLY_LIMIT_MS = 60_000
PAUSE_S = 0.002
READS = ("pie_status", "current_level", "recording_status", "get_camera", "list_actors")
WORST_WAIT_S, P99_RATIO = 0.25, 3.0
"""What a good client has to put up with: longer waits are losses."""

HERE, ELSEWHERE = "here", "elsewhere"
"""Phases are called so, or end so: the load goes to the good client's own server, or to another one."""


class GoodClient:
    """The process of a good client, seen from the front that attacks."""

    def __init__(self, kind: str, endpoint: str, folder: Path) -> None:
        self.kind = kind
        self._process = Watched(
            [sys.executable, "-m", "tests.campaign.good_client", kind, endpoint],
            folder / f"good_{kind}.log",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        out = self._process.process.stdout
        if out is None or out.readline().strip() != b"ready":
            raise RuntimeError(f"the good client: {self._process.log.read_text()}")

    def phase(self, name: str) -> None:
        """From now on, what it waits counts for this phase."""
        stdin = self._process.process.stdin
        if stdin is not None and self._process.is_alive:
            stdin.write(f"{name}\n".encode())
            stdin.flush()

    def finish(self, outcome: Outcome, *, is_timed: bool, name: str = "") -> None:
        """End it, and take in what it found; with ``is_timed`` its waits are judged: `HERE` beside `ELSEWHERE`."""
        name = name or self.kind
        try:
            told = self._process.process.communicate(timeout=REPLY_LIMIT_MS / 1000 + 10)[0].decode()
            found = json.loads(told.splitlines()[-1])
        except (subprocess.TimeoutExpired, ValueError, IndexError) as failed:
            self._process.kill()
            outcome.lose(f"good client ({name}): died or hung", f"{failed!r} {self._process.log.read_text()[-500:]}")
            return
        outcome.tried[f"good client ({name}): requests"] += found["requests"]
        for what in ("wrong", "unanswered"):
            for detail in found[what]:
                outcome.lose(f"good client ({name}): {what}", detail)
        figures = {phase: figures_of(waits) for phase, waits in found["waits"].items() if waits}
        for phase, numbers in figures.items():
            outcome.figures[f"good client ({name}), attack {phase}"] = in_words(numbers)
        if is_timed:
            judge_phases(outcome, name, figures)


def judge_phases(outcome: Outcome, name: str, figures: dict[str, dict[str, float]]) -> None:
    """Judge every phase whose load went to both servers; one that went to none of another is a loss of ours."""
    kinds = sorted(phase.removesuffix(HERE) for phase in figures if phase.split()[-1:] == [HERE])
    outcome.check(bool(kinds), f"good client ({name}): nothing was measured")
    for kind in kinds:
        told = f"{name}, {kind.strip()}" if kind else name
        if outcome.check(kind + ELSEWHERE in figures, f"good client ({told}): nothing to compare with"):
            judge_waits(outcome, told, figures[kind + HERE], figures[kind + ELSEWHERE])


def judge_waits(outcome: Outcome, name: str, here: dict[str, float], elsewhere: dict[str, float]) -> None:
    """Lose a p99 above `P99_RATIO` of that elsewhere, and a wait above `WORST_WAIT_S`.

    Where the machine itself let it wait longer than that beside the load elsewhere, which is told, twice that counts.
    """
    ratio = here["p99 ms"] / max(elsewhere["p99 ms"], 0.001)
    outcome.figures[f"good client ({name}): p99 here / elsewhere"] = ratio
    outcome.check(ratio <= P99_RATIO, f"good client ({name}): p99 above {P99_RATIO:g} x", f"{here} {elsewhere}")
    limit_ms = WORST_WAIT_S * 1000
    if elsewhere["worst ms"] > limit_ms:
        outcome.skipped.append(
            f"good client ({name}): a worst wait under {limit_ms:g} ms: the machine itself let it wait "
            f"{elsewhere['worst ms']:.0f} ms, so twice that was the limit"
        )
        limit_ms = 2 * elsewhere["worst ms"]
    outcome.check(here["worst ms"] <= limit_ms, f"good client ({name}): waited too long", f"{here} {elsewhere}")


def in_words(numbers: dict[str, float]) -> str:
    """For people."""
    return ", ".join(f"{name} {value:.1f}" for name, value in numbers.items() if name != "requests")


def figures_of(waits: list[float]) -> dict[str, float]:
    return {
        "p50 ms": percentile(waits, 0.5) * 1000,
        "p99 ms": percentile(waits, 0.99) * 1000,
        "worst ms": max(waits) * 1000,
        "requests": len(waits),
    }


# -- the process itself -------------------------------------------------------------------------------------------


class _Client:
    def __init__(self, kind: str, endpoint: str) -> None:
        self.is_driver = kind == "lockstep"
        self.endpoint = endpoint
        self.context = zmq.Context()
        self.phase = "before"
        self.waits: dict[str, list[float]] = {}
        self.wrong: list[str] = []
        self.unanswered: list[str] = []
        self.requests = 0
        self.count = 0
        self.session_id: str | None = None
        self.connect()

    def connect(self) -> None:
        self.socket = self.context.socket(zmq.REQ)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVTIMEO, REPLY_LIMIT_MS)
        self.socket.connect(self.endpoint)

    def ask(self, op: str, **fields: Any) -> Any:
        """The reply; None when there is none."""
        begin, phase = time.perf_counter(), self.phase
        self.requests += 1
        self.socket.send(msgpack.packb({"op": op, "session_id": self.session_id, **fields}))
        try:
            reply = decode(self.socket.recv())
        except zmq.Again:
            self.unanswered.append(f"{op} in {phase}")
            self.socket.close()
            self.connect()
            reply = None
        self.waits.setdefault(phase, []).append(time.perf_counter() - begin)
        return reply

    def begin(self) -> None:
        """A session, again if another client took the seat."""
        role = {} if self.is_driver else {"observer": True}
        self.session_id = None
        reply = self.ask("hello", observations="minimal", **role) or {}
        self.session_id, self.count = reply.get("session_id"), 0
        if self.is_driver:
            self.ask("set_mode", mode="direct")
            self.ask("reset")

    def step(self) -> None:
        reply = self.ask("step", n_steps=1)
        if reply is None:
            return self.begin()
        self.count += 1
        if reply["op"] == "error" and reply["code"] in ("session_expired", "no_active_manager"):
            return self.begin()
        if (reply["op"], reply.get("step")) != ("step_ok", self.count):
            self.wrong.append(f"step {self.count}: {str(reply)[:200]}")
            self.begin()
        return None

    def read(self) -> None:
        op = READS[self.requests % len(READS)]
        reply = self.ask(op)
        if reply is None or (reply["op"] == "error" and reply["code"] == "session_expired"):
            self.begin()
        elif reply["op"] != f"{op}_ok" and reply.get("code") not in ("no_active_manager", "no_world"):
            self.wrong.append(f"{op}: {str(reply)[:200]}")

    def run(self) -> None:
        self.begin()
        print("ready", flush=True)
        listening = threading.Thread(target=self._listen, daemon=True)
        listening.start()
        while listening.is_alive():
            self.step() if self.is_driver else self.read()
            time.sleep(PAUSE_S)
        found = {"requests": self.requests, "wrong": self.wrong, "unanswered": self.unanswered}
        print(json.dumps({**found, "waits": self.waits}))

    def _listen(self) -> None:
        for line in sys.stdin:
            self.phase = line.strip()


if __name__ == "__main__":
    _Client(sys.argv[1], sys.argv[2]).run()
