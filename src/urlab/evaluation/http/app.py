"""The evaluation server as an ASGI application, the gate before its endpoints, and its life as one uvicorn process."""

import asyncio
import contextlib
import errno
import gc
import hmac
import logging
import os
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from urlab.errors import ConfigError, UrlabError
from urlab.evaluation.errors import BodyTooLarge, MissingToken, RefusedRequest
from urlab.evaluation.http.routes import add_routes
from urlab.evaluation.http.service import EvaluationService
from urlab.evaluation.settings import ServerSettings
from urlab.files import remove_ready_file, write_ready_file

log = logging.getLogger("urlab.evaluation.http")

_BACKLOG = 128
_CLOSE_GRACE_S = 5
_KEEP_ALIVE_S = 600
"""A policy may think for long between two steps on one connection."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_OPEN_PATHS = frozenset({"/docs", "/openapi.json"})


def serve(settings: ServerSettings, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGINT or SIGTERM. UrlabError if the settings cannot work, or the ready file cannot be written.

    Once requests are answered, the ready file has ``pid`` and ``url``, and ``on_ready`` gets the url.
    """
    with _listening_on(settings) as listening:
        _UvicornServer(EvaluationService(settings), settings, _url(settings, listening), on_ready).run([listening])


def _app(service: EvaluationService, settings: ServerSettings) -> FastAPI:
    app = FastAPI(title="URLab policy evaluation", redirect_slashes=False, docs_url=None, redoc_url=None)
    add_routes(app, service)
    app.add_middleware(Gate, token=settings.token, max_body_bytes=settings.max_body_bytes)
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
        config = uvicorn.Config(
            _app(service, settings),
            log_level="warning",
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_CLOSE_GRACE_S,
            ws="none",
            proxy_headers=False,
            date_header=False,
        )
        super().__init__(config)
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

    Connections inherit "no delay": head and body of a reply go out apart, and must not wait for each other.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(_BACKLOG)
    except OSError as problem:
        listening.close()
        where = f"{settings.host}:{settings.port}"
        option = "--port" if problem.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        raise ConfigError(f"cannot listen on {where}: {problem.strerror}; choose another with {option}") from problem
    return listening


def _url(settings: ServerSettings, listening: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listening.getsockname()[1]}"


class Gate:
    """``app`` behind checks. Base URLs of clients may have a path of their own, so only its last part counts.

    /docs is open to all: clients look at it before they send a token.
    """

    def __init__(self, app: App, *, token: str | None, max_body_bytes: int) -> None:
        self._app = app
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path = "/" + scope["path"].rstrip("/").rpartition("/")[2]
        headers = dict(scope["headers"])
        try:
            self._check_token(path, headers)
            body = await self._body(headers, receive)
        except RefusedRequest as problem:
            return await _refuse(problem, send)
        if body is None:
            return None
        inner = {**scope, "path": path, "raw_path": path.encode("utf-8", "replace")}
        return await self._app(inner, _replay(body, receive), send)

    def _check_token(self, path: str, headers: dict[bytes, bytes]) -> None:
        if self._expected is None or path in _OPEN_PATHS:
            return
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._expected):
            raise MissingToken("this server wants a token: send the header 'Authorization: Bearer <token>'")

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """The whole body; what is too large is refused before it is read, or as soon as it shows.

        None if the client hangs up before its end: half a request is none.
        """
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self._max_body_bytes:
            raise self._too_large()
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > self._max_body_bytes:
                raise self._too_large()
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"the body is larger than the limit of {self._max_body_bytes} bytes")


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then what the connection sends."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return replay


async def _refuse(problem: RefusedRequest, send: Send) -> None:
    body = msgspec.json.encode({"detail": problem.message})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if problem.status == 413:
        headers.append((b"connection", b"close"))
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
