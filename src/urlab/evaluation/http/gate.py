"""What every request passes before the endpoints: path prefixes, the token, the size of bodies. Plain ASGI: cheap."""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from urlab.evaluation.errors import BodyTooLarge, MissingToken, RefusedRequest

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_OPEN_PATHS = frozenset({"/docs", "/openapi.json"})


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
