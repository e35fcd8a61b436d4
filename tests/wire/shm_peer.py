"""The other process of the shared-memory tests: ``shm_peer.py ROLE FOLDER NUMBER``.

The roles ``hammer`` and ``echo`` use our own code. ``stranger`` does not: it is what the protocol describes, written
down once more, and it neither wakes its peer nor waits to be woken.
"""

import mmap
import os
import struct
import sys
import time
import zlib
from pathlib import Path

PATIENCE_S = 60.0


def open_file(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def hammer(folder: Path, seconds: int) -> None:
    """Write checked payloads of many sizes as fast as it goes."""
    from urlab_wire.shm import Region

    region = Region(open_file(folder / "hammer.shm"))
    bodies = [os.urandom(997 * (number + 1)) for number in range(64)]
    payloads = [struct.pack("<I", zlib.crc32(body)) + body for body in bodies]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for payload in payloads:
            region.write(payload)


def echo(folder: Path, rounds: int) -> None:
    """Answer every request with itself, reversed."""
    from urlab_wire.shm import Region
    from urlab_wire.shm_wait import SequenceWaiter, wake

    requests, replies = Region(open_file(folder / "req.shm")), Region(open_file(folder / "rep.shm"))
    waiter, seen = SequenceWaiter(requests), 0
    for _ in range(rounds):
        while (got := requests.read(seen)) is None:
            if not waiter.wait(seen, PATIENCE_S):
                sys.exit("no request came")
        seen, payload = got
        replies.write(payload[::-1])
        wake(replies)


def stranger(folder: Path, rounds: int) -> None:
    """Ask, look for the answer every millisecond, ask again. The answer is the question, reversed."""
    requests, replies = open_file(folder / "req.shm"), open_file(folder / "rep.shm")
    seen = struct.unpack_from("<Q", replies, 16)[0]
    for number in range(rounds):
        question = f"question {number} ".encode() * (number % 7 + 1)
        plain_write(requests, question)
        deadline = time.monotonic() + PATIENCE_S
        while (got := plain_read(replies, seen)) is None:
            if time.monotonic() > deadline:
                sys.exit("no answer came")
            time.sleep(0.001)
        seen, answer = got
        if answer != question[::-1]:
            sys.exit(f"a wrong answer: {answer!r}")


def plain_write(region: mmap.mmap, payload: bytes) -> None:
    """As the protocol has it: size, bytes, index, sequence."""
    stride, count, sequence, latest = struct.unpack_from("<8xIIQI", region)
    target = (latest + 1) % count
    start = 64 + target * stride
    region[start : start + 4] = len(payload).to_bytes(4, "little")
    region[start + 4 : start + 4 + len(payload)] = payload
    region[24:28] = target.to_bytes(4, "little")
    region[16:24] = (sequence + 1).to_bytes(8, "little")


def plain_read(region: mmap.mmap, last_seen: int) -> tuple[int, bytes] | None:
    """As the protocol has it: a copy is good if no more than ``n_buffers`` writes came meanwhile."""
    stride, count, sequence, latest = struct.unpack_from("<8xIIQI", region)
    if sequence == last_seen:
        return None
    start = 64 + latest * stride
    size = int.from_bytes(region[start : start + 4], "little")
    if size == 0 or size + 4 > stride:
        return None
    payload = region[start + 4 : start + 4 + size]
    now = int.from_bytes(region[16:24], "little")
    return (sequence, payload) if now - sequence <= count else None


if __name__ == "__main__":
    {"hammer": hammer, "echo": echo, "stranger": stranger}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
