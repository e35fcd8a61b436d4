"""Attacks on the shared memory of a server while a client steps: ``python shm_attacks.py SEED SECONDS``.

Processes of the same user can open the regions. Here one cuts them short, grows, replaces, unlinks and writes over
them, at random moments, while a client in a process of its own goes on stepping. Neither may die, every step must
return its own reply or an error, and time never goes back. `attack` counts what was tried and what was lost.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from urlab.child_process import ServerProcess
from urlab_client import URLabClient, URLabRPCError

MODEL = """
<mujoco model="rod"><option timestep="0.001"/><worldbody>
  <body name="rod" pos="0 0 1"><joint name="hinge" axis="0 1 0" damping=".1"/><geom size=".1 .4" type="capsule"/></body>
  </worldbody><actuator><motor name="push" joint="hinge"/></actuator></mujoco>"""
TIMESTEP_S = 0.001
REGIONS = ("req.shm", "rep.shm", "rep_sealed.shm", "state.shm")
WRITABLE = ("req.shm", "rep.shm")
SEQUENCE, LATEST, STRIDE = 16, 24, 1 << 20
LOSSES = ("server died", "client died", "client hung", "time went back", "foreign replies", "server unusable")
"""What must not happen: all of these are 0."""

_ROUND_S = 1.5
_CLIENT_LIMIT_S = 30.0
_PUNCH_HOLE = 0x01 | 0x02

Attack = Callable[[Path, random.Random], object]


def attack(seed: int, seconds: float) -> dict[str, int]:
    """Attack for so long; what was tried, how many steps were made meanwhile, and what was lost (`LOSSES`)."""
    chance, counts = random.Random(seed), Counter(dict.fromkeys((*LOSSES, "steps", "errors"), 0))
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as project:
        model = Path(project) / "rod.xml"
        model.write_text(MODEL, encoding="utf-8")
        while time.monotonic() < until:
            with ServerProcess(str(model), "--project", project) as server:
                _attack_server(server, chance, counts, until)
    return dict(counts)


def _attack_server(server: ServerProcess, chance: random.Random, counts: Counter[str], until: float) -> None:
    """Some rounds with attacks on the content, then one that takes the files themselves away."""
    base, _, port = server.endpoints["step"].rpartition(":")
    with URLabClient(base, step_port=int(port), local_model=False, camera_streams=False) as observer:
        observer.discover()
        folder = Path(observer.shm_session_dir or "")
    for attacks in [CONTENT] * 3 + [NAMES]:
        _attack_client(server, folder, attacks, chance, counts)
        if server.process.poll() is not None:
            counts["server died"] += 1
            return
        if not _is_usable(base, int(port)):
            counts["server unusable"] += 1
        if time.monotonic() > until:
            return


def _attack_client(
    server: ServerProcess, folder: Path, attacks: dict[str, Attack], chance: random.Random, counts: Counter[str]
) -> None:
    base, _, port = server.endpoints["step"].rpartition(":")
    command = [sys.executable, __file__, "client", base, port, str(_ROUND_S), str(chance.random())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        if not client.stdout.readline():
            counts["client died"] += 1  # before it could step
            return
        begin = time.monotonic()
        while time.monotonic() - begin < _ROUND_S and client.poll() is None:
            name = chance.choice(list(attacks))
            with contextlib.suppress(OSError, ValueError, struct.error):
                attacks[name](folder, chance)
            counts[name] += 1
            time.sleep(chance.choice((0.0, 0.0001, 0.001, 0.01)))
        try:
            told = client.communicate(timeout=_CLIENT_LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            counts["client hung"] += 1
            client.kill()
            return
    if client.returncode != 0:
        counts["client died"] += 1
    for name, number in json.loads(told.splitlines()[-1] if told else "{}").items():
        counts[name] += number


def _is_usable(base: str, port: int) -> bool:
    """Whether a fresh client is served, in shared memory or without."""
    with contextlib.suppress(URLabRPCError):
        with URLabClient(base, step_port=port, transport="shm", step_mode="direct", local_model=False) as client:
            client.discover()
            before = client.step()["time"]
            return bool(abs(client.step(2)["time"] - before - 2 * TIMESTEP_S) < 1e-9)
    return False


# -- attacks ------------------------------------------------------------------------------------------------------


def _cut(folder: Path, chance: random.Random) -> None:
    os.truncate(folder / chance.choice(REGIONS), chance.choice((0, 1, 63, 64, 4096)))


def _write_anew(folder: Path, chance: random.Random) -> None:
    with _opened(folder / chance.choice(REGIONS), os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        pass


def _grow(folder: Path, chance: random.Random) -> None:
    os.truncate(folder / chance.choice(REGIONS), 1 << 30)


def _punch_hole(folder: Path, chance: random.Random) -> None:
    with _opened(folder / chance.choice(REGIONS)) as descriptor:
        ctypes.CDLL(None).fallocate(descriptor, _PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(1 << 16))


def _scribble(folder: Path, chance: random.Random) -> None:
    with _opened(folder / chance.choice(WRITABLE)) as region:
        size = os.fstat(region).st_size
        for _ in range(chance.randrange(1, 20)):
            start = chance.choice((chance.randrange(64), chance.randrange(2000), chance.randrange(size)))
            os.pwrite(region, chance.randbytes(8), start)


def _set_sequence(folder: Path, chance: random.Random) -> None:
    with _opened(folder / chance.choice(WRITABLE)) as region:
        now = _get(region, "<Q", SEQUENCE)
        _put(region, "<Q", SEQUENCE, chance.choice((0, now + 1, now - 1, now + 2, now + 1000, chance.getrandbits(64))))


def _swap_slots(folder: Path, chance: random.Random) -> None:
    with _opened(folder / chance.choice(WRITABLE)) as region:
        _put(region, "<I", LATEST, chance.choice((0, 1, 2, 0xFFFFFFFF)))
        _put(region, "<Q", SEQUENCE, _get(region, "<Q", SEQUENCE) + 1)


def _lie_about_size(folder: Path, chance: random.Random) -> None:
    with _opened(folder / chance.choice(WRITABLE)) as region:
        for slot in range(2):
            _put(region, "<I", 64 + slot * STRIDE, chance.choice((0, 1, 7, STRIDE - 4, STRIDE, 0xFFFFFFFF)))


def _replay(folder: Path, chance: random.Random) -> None:
    """Put back what stood there a moment ago."""
    with _opened(folder / chance.choice(WRITABLE)) as region:
        before = os.pread(region, chance.choice((64, 4096)), 0)
        time.sleep(chance.choice((0.0005, 0.003)))
        os.pwrite(region, before, 0)


def _fake_reply(folder: Path, chance: random.Random) -> None:
    """Show the payload of the other slot once more, as the newest."""
    with _opened(folder / chance.choice(WRITABLE)) as region:
        _put(region, "<I", LATEST, 1 - _get(region, "<I", LATEST))
        _put(region, "<Q", SEQUENCE, _get(region, "<Q", SEQUENCE) + 1)


def _take_lock(folder: Path, chance: random.Random) -> None:
    with _opened(folder / chance.choice((*REGIONS, "owner.lock")), os.O_RDONLY) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlink(folder: Path, chance: random.Random) -> None:
    (folder / chance.choice((*REGIONS, "owner.lock"))).unlink()


def _replace(folder: Path, chance: random.Random) -> None:
    """A plain file in its place, which is then cut short."""
    path = folder / chance.choice(REGIONS)
    with _opened(path, os.O_RDONLY) as region:
        content = os.pread(region, 3 * STRIDE, 0)
    other = folder / "other"
    other.write_bytes(chance.choice((content, content[:100], chance.randbytes(1000))))
    other.replace(path)
    time.sleep(chance.choice((0.0, 0.01, 0.2)))
    os.truncate(path, chance.choice((0, 10, 64)))


def _put_fifo(folder: Path, chance: random.Random) -> None:
    path = folder / chance.choice(REGIONS)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _close_folder(folder: Path, chance: random.Random) -> None:
    folder.chmod(chance.choice((0, 0o500, 0o700)))


def _remove_folder(folder: Path, chance: random.Random) -> None:
    if chance.random() < 0.1:
        shutil.rmtree(folder)


CONTENT: dict[str, Attack] = {
    "cut": _cut,
    "written anew": _write_anew,
    "grown": _grow,
    "hole punched": _punch_hole,
    "scribbled": _scribble,
    "sequence set": _set_sequence,
    "slots swapped": _swap_slots,
    "size lied about": _lie_about_size,
    "replayed": _replay,
    "reply faked": _fake_reply,
    "lock taken": _take_lock,
}
NAMES: dict[str, Attack] = {
    **CONTENT,
    "unlinked": _unlink,
    "replaced": _replace,
    "fifo": _put_fifo,
    "folder closed": _close_folder,
    "folder removed": _remove_folder,
}


@contextlib.contextmanager
def _opened(path: Path, flags: int = os.O_RDWR) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _get(region: int, kind: str, place: int) -> int:
    return int(struct.unpack(kind, os.pread(region, struct.calcsize(kind), place))[0])


def _put(region: int, kind: str, place: int, value: int) -> None:
    os.pwrite(region, struct.pack(kind, value % (1 << 8 * struct.calcsize(kind))), place)


# -- the client that steps ----------------------------------------------------------------------------------------


def step_for(base: str, port: int, seconds: float, seed: str) -> dict[str, int]:
    """Step, and check of every reply that it is this step's own: time and count advance by just what was asked for."""
    chance, counts = random.Random(seed), Counter({"steps": 0, "errors": 0})
    options = {"transport": "shm", "step_mode": "direct", "rcv_timeout_ms": 1000, "local_model": False}
    client = URLabClient(base, step_port=port, **options)
    client.discover()
    client.reset()
    last, is_certain = 0.0, True
    print("stepping", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        n_steps = chance.randrange(1, 4)
        try:
            now = client.step(n_steps)["time"]
        except URLabRPCError:
            counts["errors"] += 1
            is_certain = False
            with contextlib.suppress(URLabRPCError):
                client.discover()
            continue
        counts["steps"] += 1
        counts["time went back"] += now <= last
        counts["foreign replies"] += is_certain and abs(now - last - n_steps * TIMESTEP_S) > 1e-9
        last, is_certain = now, True
    client.close()
    return dict(counts)


if __name__ == "__main__":
    if sys.argv[1] == "client":
        print(json.dumps(step_for(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])))
    else:
        print(json.dumps(attack(int(sys.argv[1]), float(sys.argv[2]))))
