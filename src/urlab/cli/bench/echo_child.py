"""The bare floor's far end: answers every frame with one of the size that the frame's first four bytes name."""

import json
import sys
from pathlib import Path

import zmq

READY_FILE = "echo.json"
SIZE_BYTES = 4


def main(folder: Path) -> None:
    """Serve until the process is ended."""
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    part = folder / "echo.part"
    part.write_text(json.dumps({"endpoint": f"tcp://127.0.0.1:{port}"}))
    part.replace(folder / READY_FILE)
    replies: dict[bytes, bytes] = {}
    while True:
        size = socket.recv()[:SIZE_BYTES]
        reply = replies.get(size)
        if reply is None:
            reply = replies[size] = bytes(int.from_bytes(size, "little"))
        socket.send(reply)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
