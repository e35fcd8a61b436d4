"""The editor's process. Its standard input has a line of JSON with all that it needs, and ends with its parent.

The token comes this way because every user of the machine can read a command line.
"""

import json
import logging
import os
import select
import socket as sockets
import ssl
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from urlab.editor.feed import read_world
from urlab.editor.server_link import ServerLink
from urlab.files import write_ready_file

if TYPE_CHECKING:
    from urlab.editor.editor import Editor

_LOOK_S = 1.0
_UNUSED_S = 600.0
"""After so long without a page the process ends; the next page starts it again."""


def main() -> None:
    """Serve until the standard input ends."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)  # a browser that leaves early is no news
    warnings.filterwarnings("ignore", message="Queued a .* on a closed connection")  # nor is one that leaves meanwhile
    given = json.loads(sys.stdin.readline())
    link = ServerLink.at(given["server"])
    first = ThreadPoolExecutor(1).submit(read_world, link)
    # Only now, as they take a second to import and a large model takes as long to load.
    from urlab.editor.editor import Editor
    from urlab.editor.gate import PageGate

    listener = sockets.socket(fileno=given["listener"])
    tls = None
    if given["tls"] is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*given["tls"])
    port = listener.getsockname()[1]
    gate = PageGate(given["host"], port, given["token"], share=given["share"], secure=tls is not None)
    editor = Editor(link, gate, listener, tls=tls, first=first)
    del first  # it holds the model, which is to go when another one is shown
    write_ready_file(Path(given["ready_file"]), {"pid": os.getpid(), "port": port})
    try:
        _wait(editor)
    finally:
        editor.close()


def _wait(editor: "Editor") -> None:
    """Return when the parent has gone, or no page was open for long."""
    idle_since_s = time.monotonic()
    while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
        if editor.pages:
            idle_since_s = time.monotonic()
        elif time.monotonic() - idle_since_s > _UNUSED_S:
            return


if __name__ == "__main__":
    main()
