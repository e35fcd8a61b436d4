"""Long runs: lockstep steps on every transport, each reply checked; then everything at once. Memory stays flat.

python -m tests.campaign.fronts.soak steps (zmq|shm|in_process) STEPS PID ENDPOINT
python -m tests.campaign.fronts.soak ROLE SECONDS ENDPOINT SEED
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import zmq

from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import PROJECT, UrlabServer, Watched, run_part, scratch
from urlab_client import URLabClient, URLabRPCError

ABOUT = "lockstep steps on each transport with every reply checked, then all transports, streams and edits at once"
STEPS, WHOLE_S = 1_000_000, 1500.0
"""Steps on each transport in the whole campaign, in which this front has so many seconds."""

TRANSPORTS = ("zmq", "shm", "in_process")
TIMESTEP_S = 0.002
WARM_UP = 0.2
SHARE, MEGABYTES = 0.02, 4.0
"""Growth after the warm-up that is none."""


def run(plan: Plan, outcome: Outcome) -> None:
    with scratch() as folder:
        steps = 1000 if plan.short else max(5000, int(STEPS * plan.seconds / WHOLE_S))
        for transport in TRANSPORTS:
            _lockstep(outcome, folder / transport, transport, steps, is_judged=not plan.short)
        if plan.short:
            return
        _together(plan, outcome, folder / "together", max(20.0, plan.left_s))


# -- lockstep -----------------------------------------------------------------------------------------------------


def _lockstep(outcome: Outcome, folder: Path, transport: str, steps: int, *, is_judged: bool) -> None:
    with contextlib.ExitStack() as started:
        folder.mkdir()
        words: tuple[object, ...] = ("steps", transport, steps, 0, "")
        if transport != "in_process":
            server = started.enter_context(UrlabServer(folder, "--step-mode", "direct"))
            words = ("steps", transport, steps, server.pid, server.endpoint)
        part = run_part("fronts.soak", *words, folder=folder, limit_s=120 + steps / 200)
        grown = {name: value for name, value in part.figures.items() if "grown" in name}
        for name, value in grown.items():
            base = float(part.figures[name.replace("grown by", "after the warm-up")])
            is_flat = float(value) <= max(MEGABYTES, SHARE * base)
            outcome.check(is_flat or not is_judged, f"memory grows: {name}", f"{value:.1f} MB on {base:.0f} MB")
        outcome.add_outcome(part)
        if transport != "in_process":
            server.judge(outcome, f"server ({transport})")


def step_and_check(outcome: Outcome, transport: str, steps: int, server_pid: int, endpoint: str) -> None:
    """Step, and check count and time of every reply; the memory of both ends, after the warm-up and at the end."""
    processes = {"client": psutil.Process(), **({"server": psutil.Process(server_pid)} if server_pid else {})}
    with contextlib.ExitStack() as opened:
        client = opened.enter_context(_client(transport, endpoint, opened))
        client.discover()
        start = client.reset()["time"]
        base: dict[str, float] = {}
        begin = time.monotonic()
        for number in range(1, steps + 1):
            reply = client.step()
            if reply["step"] != number or abs(reply["time"] - start - number * TIMESTEP_S) > 1e-6:
                outcome.lose(f"wrong replies ({transport})", f"step {number}: {reply['step']}, {reply['time']}")
            if number == int(WARM_UP * steps):
                base = {name: _mb(one) for name, one in processes.items()}
        outcome.tried[f"lockstep steps ({transport})"] += steps
        outcome.figures[f"steps per second ({transport})"] = steps / (time.monotonic() - begin)
        for name, one in processes.items():
            outcome.figures[f"{transport}, {name}: MB after the warm-up"] = base[name]
            outcome.figures[f"{transport}, {name}: MB grown by"] = _mb(one) - base[name]


def _client(transport: str, endpoint: str, opened: contextlib.ExitStack) -> URLabClient:
    options: dict[str, Any] = {"step_mode": "direct", "local_model": False, "camera_streams": False}
    if transport == "in_process":
        import urlab

        folder = Path(opened.enter_context(tempfile.TemporaryDirectory())) / "project"
        return urlab.launch("arena", project=shutil.copytree(PROJECT, folder))
    base, _, port = endpoint.rpartition(":")
    return URLabClient(base, step_port=int(port), transport=transport, **options)


def _mb(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6


# -- everything at once -------------------------------------------------------------------------------------------


def _together(plan: Plan, outcome: Outcome, folder: Path, seconds: float) -> None:
    """Six clients that behave, each in a process of its own, on one live server with cameras."""
    with UrlabServer(folder, target="panda") as server, contextlib.ExitStack() as started:
        clients = {}
        for role in ROLES:
            words = [role, str(seconds), json.dumps(server.ready), str(plan.seed)]
            command = [sys.executable, "-m", "tests.campaign.fronts.soak", *words]
            log = folder / f"{role}.log"
            clients[role] = started.enter_context(Watched(command, log, stdout=subprocess.PIPE))
        samples: list[tuple[float, float]] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until and server.is_alive:
            samples.append((time.monotonic(), server.rss_mb))
            time.sleep(0.5)
        for role, client in clients.items():
            _finish(outcome, role, client)
        eighths = samples[:: max(1, len(samples) // 8)]
        outcome.figures["together: MB after each eighth of the time"] = ", ".join(f"{mb:.0f}" for _, mb in eighths)
        half = samples[len(samples) // 2 :]
        if len(half) > 4:
            early, late = _mean(half[: len(half) // 4]), _mean(half[-(len(half) // 4) :])
            outcome.figures["together: MB at half time"] = early
            outcome.figures["together: MB grown by in the second half"] = late - early
            outcome.check(late - early <= max(MEGABYTES, SHARE * early), "memory grows: together", f"{early} {late}")
        held = server.held()
        outcome.figures["together: descriptors, threads"] = f"{held['descriptors']}, {held['threads']}"
        server.judge(outcome, "server (together)")
        outcome.check(server.stop() == 0, "server (together): exit code", server.log.read_text()[-300:])


def _finish(outcome: Outcome, role: str, client: Watched) -> None:
    try:
        told = client.process.communicate(timeout=90)[0].decode()
        outcome.add_json(told.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError) as failed:
        client.kill()
        outcome.lose(f"together: {role} died or hung", f"{failed!r} {client.log.read_text()[-500:]}")


def _mean(samples: list[tuple[float, float]]) -> float:
    return sum(value for _, value in samples) / len(samples)


Role = Callable[[Outcome, Any, Any, random.Random], None]


def _drive(outcome: Outcome, client: Any, ready: Any, chance: random.Random) -> None:
    outcome.tried["steps"] += 1
    client.step(1)


def _look(outcome: Outcome, client: Any, ready: Any, chance: random.Random) -> None:
    outcome.tried["observations"] += 1
    client.step(1)


def _author(outcome: Outcome, client: Any, ready: Any, chance: random.Random) -> None:
    outcome.tried["edits"] += 1
    name = f"actor{chance.randrange(5)}"
    with contextlib.suppress(URLabRPCError):
        client.scene.spawn_actor("quadruped", actor_id=name, location=(chance.random(), 2.0, 0.5))
    with contextlib.suppress(URLabRPCError):
        client.outliner.list_actors()
        client.scene.destroy_actor(name)


def _draw(outcome: Outcome, client: Any, ready: Any, chance: random.Random) -> None:
    outcome.tried["viewport pictures"] += 1
    client.viewport.screenshot()
    time.sleep(0.2)


def _subscribe(outcome: Outcome, client: Any, ready: Any, chance: random.Random) -> None:
    """A subscriber of every stream, for a moment."""
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.subscribe(b"")
        for endpoint in (ready["state"], ready["info"], *ready["cameras"].values()):
            socket.connect(endpoint)
        until = time.monotonic() + 1.0
        while time.monotonic() < until:
            if socket.poll(50):
                socket.recv_multipart()
                outcome.tried["stream messages"] += 1


def _come_and_go(outcome: Outcome, client: Any, ready: Any, chance: random.Random) -> None:
    """Sessions that are opened and never closed."""
    base, _, port = ready["step"].rpartition(":")
    transport = chance.choice(("zmq", "shm"))
    options: dict[str, Any] = {"transport": transport, "observer": True, "local_model": False}
    with URLabClient(base, step_port=int(port), **options) as one:
        one.discover()
        one.step()
    outcome.tried["sessions"] += 1
    time.sleep(0.05)


ROLES: dict[str, tuple[Role, dict[str, Any]]] = {
    "drives": (_drive, {"transport": "shm"}),
    "observes": (_look, {"transport": "zmq", "observer": True}),
    "edits": (_author, {"transport": "zmq", "operator": True}),
    "draws": (_draw, {"transport": "zmq", "observer": True}),
    "subscribes": (_subscribe, {"transport": "zmq", "observer": True}),
    "comes and goes": (_come_and_go, {"transport": "zmq", "observer": True}),
}


def behave(outcome: Outcome, role: str, seconds: float, ready: Any, seed: str) -> None:
    """One client of the soak; an error that it gets is a loss, as it does nothing wrong."""
    act, options = ROLES[role]
    base, _, port = ready["step"].rpartition(":")
    chance, until = random.Random(f"{seed}/{role}"), time.monotonic() + seconds
    with URLabClient(base, step_port=int(port), local_model=False, camera_streams=False, **options) as client:
        client.discover()
        while time.monotonic() < until:
            try:
                act(outcome, client, ready, chance)
            except URLabRPCError as failed:
                outcome.lose(f"together: {role}", repr(failed))
                time.sleep(0.1)


if __name__ == "__main__":
    found = Outcome()
    if sys.argv[1] == "steps":
        step_and_check(found, sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        behave(found, sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4])
    print(found.as_json(), flush=True)
    os._exit(0)
