"""The port of the browser editor, and the process behind it.

The port listens from the start, but the process is started only when the first browser connects: an editor that is not
used costs nothing. It is another process because its event loop would disturb the pace of the simulation. It talks to
the server through a socket file that only this user can open, and ends with the server, or when it was not used for
long; then the next browser starts it again.
"""

import contextlib
import importlib.util
import json
import logging
import select
import socket as sockets
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from urlab.access.web import new_token
from urlab.child_process import ChildProcess
from urlab.errors import ChildFailed, ConfigError
from urlab.files import owned_name
from urlab.transport import RequestRegistry, ZmqRpcServer
from urlab.transport.endpoint import ListeningSocket, listen
from urlab.transport.rpc.server import RequestHandler

log = logging.getLogger("urlab.editor")

DEFAULT_PORT = 8080
WORK = "editor-"
"""What the names of its temporary folders have behind their process, so that those of a killed one are swept."""

MISSING = "the browser editor is not installed: pip install 'urlab-headless[editor]'"

_START_LIMIT_S = 60.0
_LOOK_S = 0.5
_RESTART_S = 2.0
"""A process that dies is started again, but not sooner than this."""


def is_installed() -> bool:
    """Whether what the editor needs is there."""
    return importlib.util.find_spec("viser") is not None


class EditorProcess:
    """Listens for browsers, and keeps the editor's process running while they come.

    ``port`` None is 8080, or any free one where that is taken; 0 is any free one. ``token`` None makes one.
    ``prepare`` is called while the process starts, for what it will ask for first.
    """

    def __init__(
        self,
        handler: RequestHandler,
        registry: RequestRegistry | None = None,
        *,
        prepare: Callable[[], None] | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
        token: str | None = None,
        share: bool = False,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        if not is_installed():
            raise ConfigError(MISSING)
        self.token = token or new_token()
        self._host, self._share, self._tls, self._prepare = host, share, tls, prepare
        self._listener = _listen(f"tcp://{host}", port)
        self._port: int = self._listener.socket.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory(prefix=f"{owned_name()}{WORK}", ignore_cleanup_errors=True)
        try:
            self._rpc = ZmqRpcServer(f"ipc://{self._folder.name}/server", 1, handler, registry)
        except BaseException:
            self._listener.close()
            self._folder.cleanup()
            raise
        self._rpc.start()
        self._child: ChildProcess | None = None
        self._is_closed = threading.Event()
        self._woken, self._wake = sockets.socketpair()
        self._thread = threading.Thread(target=self._run, name="urlab-editor-process", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Where the page is; it asks for the token."""
        shown = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'http' if self._tls is None else 'https'}://{shown}:{self._port}/"

    @property
    def url(self) -> str:
        """The page, with its token."""
        return f"{self.address}?token={self.token}"

    def close(self) -> None:
        """End the process, and stop listening."""
        self._is_closed.set()
        self._wake.send(b"x")
        self._thread.join(10.0)
        self._listener.close()
        self._wake.close()
        self._woken.close()
        self._rpc.stop()
        self._folder.cleanup()

    def _run(self) -> None:
        while not self._is_closed.is_set():
            try:
                if self._is_asked_for():
                    self._serve_until_it_ends()
            except ChildFailed as failed:
                log.warning("the browser editor has ended: %s", failed)
                self._apologise(str(failed))
                self._is_closed.wait(_RESTART_S)
            except OSError:
                if not self._is_closed.is_set():
                    log.exception("the browser editor cannot be started")
                    self._is_closed.wait(_RESTART_S)

    def _is_asked_for(self, patience_s: float | None = None) -> bool:
        """Whether a browser waits to be served; waits for one, or until the end."""
        waiting, _, _ = select.select([self._listener.socket, self._woken], [], [], patience_s)
        return self._listener.socket in waiting and not self._is_closed.is_set()

    def _serve_until_it_ends(self) -> None:
        ready_file = Path(self._folder.name) / f"ready-{time.monotonic_ns()}.json"
        begin_s = time.monotonic()
        descriptor = self._listener.socket.fileno()
        child = ChildProcess(
            [sys.executable, "-m", "urlab.editor"], keep_stdin=True, own_session=True, pass_fds=[descriptor],
            on_line=lambda line: log.warning("%s", line),
        )  # fmt: skip
        try:
            self._tell(child, descriptor, ready_file)
            if self._prepare is not None:
                with contextlib.suppress(Exception):  # such as a level that does not compile: the page will say so
                    self._prepare()
            child.wait_for_file(ready_file, _START_LIMIT_S)
            log.info("the browser editor has started (%.1f s)", time.monotonic() - begin_s)
            while not self._is_closed.is_set():
                code = child.process.poll()
                if code == 0:
                    return  # it was not used for long
                child.check()
                self._is_closed.wait(_LOOK_S)
        finally:
            with contextlib.suppress(FileNotFoundError):
                ready_file.unlink()
            child.stop()

    def _apologise(self, reason: str) -> None:
        """Tell the browsers that wait why there is no page: the process that would serve them has ended."""
        body = f"The editor could not be started: {reason}\nReload to try again.\n".encode()
        head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        while self._is_asked_for(0.0):
            with contextlib.suppress(OSError), self._listener.socket.accept()[0] as browser:
                browser.settimeout(1.0)
                browser.recv(4096)
                browser.sendall(f"{head}Content-Type: text/plain; charset=utf-8\r\n\r\n".encode() + body)

    def _tell(self, child: ChildProcess, descriptor: int, ready_file: Path) -> None:
        """Everything that it needs, by its standard input: a command line can be read by every user."""
        given = {
            "listener": descriptor,
            "host": self._host,
            "token": self.token,
            "share": self._share,
            "tls": None if self._tls is None else [str(one) for one in self._tls],
            "ready_file": str(ready_file),
            "server": f"ipc://{self._folder.name}/server:1",
        }
        assert child.process.stdin is not None
        child.process.stdin.write(json.dumps(given).encode() + b"\n")
        child.process.stdin.flush()


def _listen(base: str, port: int | None) -> ListeningSocket:
    if port is not None:
        return listen(base, port, option="--web-port")
    try:
        return listen(base, DEFAULT_PORT, option="--web-port")
    except ConfigError:
        return listen(base, 0, option="--web-port")
