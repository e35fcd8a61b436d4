"""The far end of the bare echo in shared memory: it answers as `urlab.cli.bench.echo_child` does."""

import mmap
import sys
from pathlib import Path

from urlab.cli.bench.echo_sizes import READY_FILE, EchoReplies
from urlab_wire.shm import REPLY_FILE, REQUEST_FILE, Region
from urlab_wire.shm_wait import SequenceWaiter, wake


def main(regions: Path, folder: Path) -> None:
    """Serve until the process is ended."""
    requests, replies = _map(regions / REQUEST_FILE), _map(regions / REPLY_FILE)
    waiter, answers, seen = SequenceWaiter(requests), EchoReplies(), requests.sequence
    (folder / "echo.part").write_text("{}")
    (folder / "echo.part").replace(folder / READY_FILE)
    while True:
        if waiter.wait(seen) and (found := requests.read(seen)):
            seen, request = found
            replies.write(answers.to(request))
            wake(replies)


def _map(path: Path) -> Region:
    with path.open("r+b") as file:
        return Region(mmap.mmap(file.fileno(), 0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
