"""Pages of the browser editor that receive everything and draw nothing.

Asked over a pipe: ``open``, ``count``, or a number: how many seconds a page takes to get so many nodes of the world.
"""

import json
import sys
import threading
import time

import msgspec
import viser
import zstandard
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

_CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [-3.0, 0.0, 1.0],
    "fov": 1.0,
    "near": 0.01,
    "far": 1000.0,
    "image_height": 720,
    "image_width": 1280,
    "look_at": [0.0, 0.0, 0.5],
    "up_direction": [0.0, 0.0, 1.0],
}


class FakePage:
    """One page: it says where its camera is, as a browser does first, and counts what comes."""

    def __init__(self, url: str) -> None:
        address = url.replace("http", "ws", 1)
        version = Subprotocol(f"viser-v{viser.__version__}")
        self._socket: ClientConnection = connect(address, subprotocols=[version], max_size=None, compression=None)
        self._socket.send(msgspec.msgpack.encode(_CAMERA))
        self.received = 0
        self._first = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self) -> None:
        """Return when the first message has come."""
        self._first.wait(60)

    def _run(self) -> None:
        for _ in self._socket:
            self.received += 1
            self._first.set()


def delivered_s(url: str, nodes: int) -> float:
    """Open a page, and wait until it has all nodes of the world."""
    began_s = time.monotonic()
    found: set[str] = set()
    version = Subprotocol(f"viser-v{viser.__version__}")
    with connect(url.replace("http", "ws", 1), subprotocols=[version], max_size=None, compression=None) as socket:
        socket.send(msgspec.msgpack.encode(_CAMERA))
        while len(found) < nodes:
            frame = socket.recv(120)
            assert isinstance(frame, bytes)
            end = 16 + int.from_bytes(frame[8:16], "little")
            told = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(frame[16:end]))
            names = (one["name"] for one in told["messages"] if "name" in one and "props" in one)
            found |= {name for name in names if name.startswith("/world/")}
        return time.monotonic() - began_s


def main() -> None:
    """Answer lines of JSON with lines of JSON."""
    url, count = sys.argv[1], int(sys.argv[2])
    pages: list[FakePage] = []
    for line in sys.stdin:
        asked = json.loads(line)
        if isinstance(asked, int):
            answer: object = delivered_s(url, asked)
        elif asked == "open":
            pages = [FakePage(url) for _ in range(count)]
            for page in pages:
                page.wait()
            answer = len(pages)
        else:
            answer = [page.received for page in pages]
            for page in pages:
                page.received = 0
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
