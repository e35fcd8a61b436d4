"""The bare floor's far end: answers every frame with one of the size that the frame's first four bytes name."""

import json
import sys
from pathlib import Path

import zmq

from urlab.cli.bench.echo_sizes import READY_FILE, EchoReplies


def main(scheme: str, folder: Path) -> None:
    """Serve tcp or ipc until the process is ended."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REP)
    socket.bind(f"ipc://{folder}/echo" if scheme == "ipc" else "tcp://127.0.0.1:*")
    part = folder / "echo.part"
    part.write_text(json.dumps({"endpoint": socket.getsockopt_string(zmq.LAST_ENDPOINT)}))
    part.replace(folder / READY_FILE)
    answers = EchoReplies()
    while True:
        socket.send(answers.to(socket.recv()))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
