"""The evaluation server as an ASGI application, and its life as one uvicorn process."""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from urlab import access
from urlab.access.web import WebAccess
from urlab.errors import ConfigError, UrlabError
from urlab.evaluation.errors import RefusedRequest
from urlab.evaluation.http.connections import HttpConnection
from urlab.evaluation.http.gate import Gate
from urlab.evaluation.http.routes import add_routes
from urlab.evaluation.http.service import EvaluationService
from urlab.evaluation.settings import ServerSettings
from urlab.files import remove_ready_file, write_ready_file

log = logging.getLogger("urlab.evaluation.http")

_BACKLOG = 128
_CLOSE_GRACE_S = 5
_KEEP_ALIVE_S = 600
"""A policy may think for long between two steps on one connection."""
_SWITCH_INTERVAL_S = 0.0005
"""How long a Python thread may hold the interpreter: while a large body is read, other requests wait for this long."""
_UNREAD_S = 60
"""A reply that its client does not take for so long ends the connection; so does a client that is gone."""


def serve(settings: ServerSettings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM. UrlabError if the settings cannot work, or the ready file cannot be written.

    Once requests are answered, the ready file has ``pid`` and ``url``, and ``on_ready`` gets the url.
    """
    with _listening_on(settings) as listening:
        _UvicornServer(EvaluationService(settings), settings, _url(settings, listening), on_ready).run([listening])


def _app(service: EvaluationService, settings: ServerSettings) -> FastAPI:
    app = FastAPI(title="URLab policy evaluation", redirect_slashes=False, docs_url=None, redoc_url=None)
    add_routes(app, service)
    web = WebAccess(settings.host, settings.token, tuple(settings.allowed_hosts))
    app.add_middleware(Gate, web=web, max_body_bytes=settings.max_body_bytes)
    app.add_exception_handler(UrlabError, _explain)
    return app


async def _explain(request: Request, problem: Exception) -> JSONResponse:
    status = problem.status if isinstance(problem, RefusedRequest) else 400
    message = problem.message if isinstance(problem, UrlabError) else str(problem)
    log.debug("%s refused with %d: %s", request.url.path, status, message)
    return JSONResponse({"detail": message}, status)


class _UvicornServer(uvicorn.Server):
    """Has a ready file for as long as it answers; the workers end with it."""

    def __init__(
        self,
        service: EvaluationService,
        settings: ServerSettings,
        url: str,
        on_ready: Callable[[str], None] | None,
    ) -> None:
        admits_all = settings.share or settings.token is not None
        connection: Any = partial(HttpConnection, admits_all=admits_all, limits=settings.limits)
        config = uvicorn.Config(
            _app(service, settings),
            http=connection,
            ssl_certfile=settings.tls and settings.tls[0],
            ssl_keyfile=settings.tls and settings.tls[1],
            log_level="warning",
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_CLOSE_GRACE_S,
            ws="none",
            proxy_headers=False,
            date_header=False,
        )
        super().__init__(config)
        _bound_warnings(logging.getLogger("uvicorn.error"))
        self._service, self._ready_file, self._url, self._on_ready = service, settings.ready_file, url, on_ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the server and is done with: uvicorn would raise it again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        gc.freeze()  # modules stay: the collector need not look at them in the middle of a request
        write_ready_file(self._ready_file, {"pid": os.getpid(), "url": self._url})
        if self._on_ready is not None:
            self._on_ready(self._url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Workers end at the same time: requests may wait for them, and are answered before the server is gone."""
        remove_ready_file(self._ready_file)
        await asyncio.gather(super().shutdown(sockets), self._service.close())


def _listening_on(settings: ServerSettings) -> socket.socket:
    """The socket that clients connect to; ConfigError if the port is taken or the host is not of this machine.

    Connections inherit its options, among them "no delay": head and body of a reply go out apart, and must not wait
    for each other.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _notice_dead_peers(listening)
        listening.bind((settings.host, settings.port))
        listening.listen(_BACKLOG)
    except OSError as problem:
        listening.close()
        where = f"{settings.host}:{settings.port}"
        option = "--port" if problem.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise ConfigError(f"cannot listen on {where}: {problem.strerror}; choose another with {option}") from problem
    return listening


def _notice_dead_peers(listening: socket.socket) -> None:
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", _UNREAD_S), ("TCP_USER_TIMEOUT", 1000 * _UNREAD_S)):
        if hasattr(socket, name):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _bound_warnings(logger: logging.Logger) -> None:
    """uvicorn warns of every request that is no HTTP; clients can make it do that without end."""

    def passes(record: logging.LogRecord) -> bool:
        if record.levelno == logging.WARNING:
            access.refusals.say("uvicorn", record.getMessage())
        return record.levelno != logging.WARNING

    logger.filters[:] = [passes]


def _url(settings: ServerSettings, listening: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "http" if settings.tls is None else "https"
    return f"{scheme}://{host}:{listening.getsockname()[1]}"
