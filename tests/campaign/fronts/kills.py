"""kill -9 of clients, servers and evaluation workers at random moments, with reconnects: nothing is left behind.

Recordings that were told saved are readable; of one that was not saved, at most the last second is lost.

    python -m tests.campaign.fronts.kills SEED LANE KILLS (long|short) FOLDER
"""

import contextlib
import http.client
import json
import multiprocessing
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil

from tests.campaign.fronts.http import EvalServer
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import UrlabServer, run_part, scratch, settles
from urlab_client import URLabClient, URLabRPCError

ABOUT = "kill -9 of clients, servers and workers at random moments, and what is left of them"
CLIENTS_PER_SERVER = 2
"""Client kills for each kill of a server: 2,000 and 1,000 in the whole campaign."""

MOST_LOST_S = 1.0
NOTICED_S = 1.0
"""So soon a client knows that its server has died."""

TIMESTEP_S = 0.002
_PATIENCE_S = 30.0
_SHM = Path("/dev/shm")


def run(plan: Plan, outcome: Outcome) -> None:
    with scratch() as folder:
        servers = 2 if plan.short else max(5, int(1000 * plan.seconds / 2700))
        _kill_clients(plan, outcome, folder / "clients", 6 if plan.short else CLIENTS_PER_SERVER * servers)
        lanes = 1 if plan.short else 2
        threads = [
            threading.Thread(target=_run_lane, args=(plan, outcome, folder / f"lane{lane}", lane, servers // lanes))
            for lane in range(lanes)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        planned = servers // lanes * lanes
        outcome.check(outcome.tried["servers killed"] == planned, "fewer servers were killed than planned", planned)
        if not plan.short:
            _kill_workers(plan, outcome, folder / "workers", max(3, servers // 20))


# -- clients ------------------------------------------------------------------------------------------------------


def use_server(base: str, port: int, transport: str, seed: str, ready: Any) -> None:
    """What a client does until it is killed: steps, edits, streams, records, saves."""
    chance = random.Random(seed)
    client = URLabClient(base, step_port=port, transport=transport, step_mode="direct", local_model=False)
    client.discover()
    ready.set()
    while True:
        what = chance.randrange(6)
        with contextlib.suppress(URLabRPCError):
            if what < 3:
                client.step(chance.choice((1, 1, 200)))
            elif what == 3:
                client.recording.start()
                client.step(5)
                client.recording.stop()
                client.recording.save(f"killed{chance.randrange(5)}.json")
            elif what == 4:
                client.discover()
            else:
                client.step(1, include_cameras=True)


def _kill_clients(plan: Plan, outcome: Outcome, folder: Path, kills: int) -> None:
    """Of one server: clients over every transport, killed while they do anything; then it must hold nothing of them."""
    chance = random.Random(f"{plan.seed}/kills/clients")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.campaign.fronts.kills"])
    with UrlabServer(folder, "--step-mode", "direct") as server:
        base, _, port = server.endpoint.rpartition(":")
        before: dict[str, int] = {}
        for number in range(kills):
            transport = chance.choice(("zmq", "shm"))
            ready = context.Event()
            arguments = (base, int(port), transport, f"{plan.seed}/{number}", ready)
            child = context.Process(target=use_server, args=arguments, daemon=True)
            child.start()
            outcome.check(ready.wait(_PATIENCE_S), "a client found no server after kills", f"kill {number}")
            time.sleep(chance.random() * 0.05)
            child.kill()
            child.join()
            child.close()
            outcome.tried[f"clients killed ({transport})"] += 1
            if number == min(20, kills - 1):
                before = settled(server)
            if not server.is_alive:
                break
        killed = sum(count for name, count in outcome.tried.items() if name.startswith("clients killed"))
        outcome.check(killed == kills, "fewer clients were killed than planned", f"{killed} of {kills}")
        _check_usable(outcome, server, "clients")
        most = {"descriptors": before["descriptors"] + 4, "threads": before["threads"] + 20, "processes": 0}
        left = settles(server.held, most)
        outcome.check(not left, "clients killed: left behind in the server", f"{left}, before {before}")
        outcome.figures["server of killed clients: MB at the end"] = server.rss_mb
        server.judge(outcome, "server of killed clients")
        shm = _shm_folder(server)
        outcome.check(server.stop() == 0, "server of killed clients: exit code")
        outcome.check(shm is None or not shm.exists(), "clients killed: regions left", shm)
    _check_saved(outcome, folder)


def settled(server: UrlabServer) -> dict[str, int]:
    """What it holds when that has stopped to change."""
    last = server.held()
    for _ in range(50):
        time.sleep(0.2)
        now = server.held()
        if now == last:
            return now
        last = now
    return last


def _shm_folder(server: UrlabServer) -> Path | None:
    folders = [Path(path.split("/owner.lock")[0]) for path in _open_files(server.pid) if path.endswith("/owner.lock")]
    return folders[0] if folders else None


def _open_files(pid: int) -> list[str]:
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return found


def _check_usable(outcome: Outcome, server: UrlabServer, after: str) -> None:
    base, _, port = server.endpoint.rpartition(":")
    for transport in ("zmq", "shm"):
        try:
            with URLabClient(
                base, step_port=int(port), transport=transport, step_mode="direct", local_model=False
            ) as one:
                one.discover()
                one.reset()
                counts = [one.step()["step"] for _ in range(20)]
            outcome.check(counts == list(range(1, 21)), f"{after} killed: wrong steps afterwards", counts)
        except (URLabRPCError, KeyError) as failed:
            outcome.lose(f"{after} killed: unusable afterwards", f"{transport}: {failed!r}")


def _check_saved(outcome: Outcome, folder: Path) -> None:
    replays = folder / "project" / "Saved" / "URLab" / "Replays"
    for path in replays.glob("*"):
        outcome.check(not path.name.endswith(".part"), "half-written recordings", path)
        if path.suffix == ".json":
            outcome.check(_times(path) is not None, "a saved recording that cannot be read", path)


class _Frame(msgspec.Struct):
    timestamp: float


class _Saved(msgspec.Struct):
    frames: list[_Frame] = msgspec.field(name="Frames")


def _times(path: Path) -> list[float] | None:
    """When the frames of a recording were taken; None when it cannot be read."""
    try:
        return [frame.timestamp for frame in msgspec.json.decode(path.read_bytes(), type=_Saved).frames]
    except msgspec.DecodeError:
        return None


# -- servers ------------------------------------------------------------------------------------------------------


def _run_lane(plan: Plan, outcome: Outcome, folder: Path, lane: int, kills: int) -> None:
    """In a process of its own: what one lane reads must not keep the client of the other from noticing anything."""
    folder.mkdir()
    words = (plan.seed, lane, kills, "short" if plan.short else "long", folder)
    part = run_part("fronts.kills", *words, folder=folder, limit_s=300 + 30 * kills)
    part.figures = {f"lane {lane}: {name}": value for name, value in part.figures.items()}
    outcome.add_outcome(part)


def _kill_servers(plan: Plan, outcome: Outcome, folder: Path, lane: int, kills: int) -> None:
    """Start, record, kill, and start again in the same project; one client of ours reconnects every time."""
    chance = random.Random(f"{plan.seed}/kills/servers/{lane}")
    regions: list[Path] = []
    recorded: _Recorded | None = None
    for number in range(kills + 1):
        try:
            server = UrlabServer(folder, "--step-mode", "direct")
        except RuntimeError as failed:
            outcome.lose("a server did not start after a kill", failed)
            return
        with server:
            if recorded is not None:
                _check_recovered(outcome, folder, recorded, f"lane {lane}, kill {number - 1}")
            stale = [one for one in regions if one.exists()]
            outcome.check(not stale, "servers killed: regions left", stale)
            if number == kills:
                _check_usable(outcome, server, "servers")
                _check_left_over(outcome, folder)
                outcome.check(server.stop() == 0, "servers killed: exit code of the last")
                break
            shm = _shm_folder(server)
            regions = [shm] if shm is not None else []
            recorded = _record_and_kill(outcome, server, chance, is_short=plan.short)
            outcome.tried["servers killed"] += 1
    _check_saved(outcome, folder)


class _Recorded:
    """What a client knows of a recording when the server is killed: steps that were answered, and when."""

    def __init__(self) -> None:
        self.name = f"run{random.getrandbits(40):x}"
        self.steps: list[tuple[float, int]] = []
        self.saved: str | None = None
        self.killed_s = 0.0

    @property
    def safe_frames(self) -> int:
        """Frames that were a second old when the server was killed."""
        return max((count for when, count in self.steps if when < self.killed_s - MOST_LOST_S), default=0)


def _record_and_kill(outcome: Outcome, server: UrlabServer, chance: random.Random, *, is_short: bool) -> _Recorded:
    recorded, base, port = _Recorded(), *server.endpoint.rsplit(":", 1)

    def kill() -> None:
        recorded.killed_s = time.monotonic()
        server.kill()

    options: dict[str, Any] = {"transport": chance.choice(("zmq", "shm")), "local_model": False, "rcv_timeout_ms": 5000}
    with URLabClient(base, step_port=int(port), step_mode="direct", **options) as client:
        client.discover()
        client.recording.start(recorded.name)
        killing = threading.Timer(chance.choice((0.05, 0.3, 1.5, 2.5)) * chance.random() + 0.01, kill)
        killing.start()
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < _PATIENCE_S:
                count = client.step(chance.choice((1, 5)))["step"]
                recorded.steps.append((time.monotonic(), count))
                if chance.random() < 0.001:
                    client.recording.save(f"{recorded.name}.json")
                    recorded.saved = recorded.name
            outcome.lose("a client did not notice that its server was killed", options)
        except URLabRPCError as noticed:
            late_s = time.monotonic() - max(recorded.killed_s, begin)
            worst = float(outcome.figures.get("a client notices a killed server after, worst s", 0.0))
            outcome.figures["a client notices a killed server after, worst s"] = max(worst, late_s)
            words = f"{options['transport']}, {late_s:.1f} s: {noticed!r}"
            in_time = is_short or late_s < NOTICED_S
            outcome.check(in_time, "a client noticed late that its server was killed", words)
        killing.join()
    outcome.tried["steps recorded before kills"] += len(recorded.steps)
    return recorded


def _check_recovered(outcome: Outcome, folder: Path, recorded: _Recorded, where: str) -> None:
    """The next server has made a recording of what the killed one had written since it was last saved."""
    replays = folder / "project" / "Saved" / "URLab" / "Replays"
    if recorded.saved is not None:
        path = replays / f"{recorded.saved}.json"
        outcome.check(path.exists() and _times(path) is not None, "a saved recording that cannot be read", where)
    deadline = time.monotonic() + _PATIENCE_S
    found: dict[Path, list[float]] = {}
    while True:
        for path in set(replays.glob("*.json")) - found.keys():
            found[path] = (_times(path) or []) if _is_of(path, recorded.name) else []
        frames = len({when for times in found.values() for when in times})
        if frames >= recorded.safe_frames or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    told = f"{where}: {frames} of {recorded.safe_frames}, {'' if recorded.saved else 'never '}saved"
    outcome.tried["recordings with frames to be safe"] += recorded.safe_frames > 0
    outcome.check(frames >= recorded.safe_frames, "more than a second of a recording was lost", told)


def _is_of(path: Path, name: str) -> bool:
    """Whether a file has frames of that recording: its beginning has the name."""
    with path.open("rb") as file:
        return name.encode() in file.read(20_000)


def _check_left_over(outcome: Outcome, folder: Path) -> None:
    """After a start of a server, nothing of its killed predecessors is there."""
    parts = [path for path in (folder / "project").rglob("*") if path.name.endswith(".part")]
    outcome.check(not parts, "servers killed: half-written files left", parts)
    journals = list((folder / "project" / "Saved" / "URLab" / "Journal").glob("*"))
    outcome.check(len(journals) <= 1, "servers killed: journals left", journals)
    temporary = [path for path in Path(tempfile.gettempdir()).glob("urlab-import-*") if path.exists()]
    outcome.check(not temporary, "servers killed: temporary folders left", temporary)


# -- evaluation workers ---------------------------------------------------------------------------------------------


def _kill_workers(plan: Plan, outcome: Outcome, folder: Path, kills: int) -> None:
    """Workers die in the middle of an episode; the server says so, and the next reset begins anew."""
    chance = random.Random(f"{plan.seed}/kills/workers")
    with EvalServer(folder, "--episodes", str(kills)) as server:  # an episode is given up after a few attempts
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        for number in range(kills):
            connection = http.client.HTTPConnection(host, int(port), timeout=60)
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/reset", json.dumps({"worker_ids": ["0"]}), headers)
            status = connection.getresponse()
            status.read()
            outcome.check(status.status < 500, "workers killed: a reset failed", f"kill {number}: {status.status}")
            time.sleep(chance.random() * 0.05)
            workers = _workers(server.pid)
            outcome.check(bool(workers), "workers killed: no other worker came", f"kill {number}")
            for child in workers:
                with contextlib.suppress(psutil.Error):
                    child.send_signal(signal.SIGKILL)
                    outcome.tried["evaluation workers killed"] += 1
            connection.close()
            if not server.is_alive:
                break
        outcome.check(server.is_alive, "workers killed: the evaluation server died", server.log.read_text()[-500:])
    shutil.rmtree(folder, ignore_errors=True)


def _workers(pid: int) -> list[psutil.Process]:
    """The processes of an evaluation server, when there are any."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        found = [one for one in psutil.Process(pid).children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
        if found:
            return found
        time.sleep(0.02)
    return []


if __name__ == "__main__":
    seed, lane, kills, form, folder = sys.argv[1:]
    found = Outcome()
    _kill_servers(Plan(int(seed), short=form == "short"), found, Path(folder), int(lane), int(kills))
    print(found.as_json(), flush=True)
