"""What every request passes before its endpoint: the host and the page that it comes from, its token, its body's size.

What is refused is answered, and logged at a bounded rate.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from urlab import access
from urlab.access.web import WebAccess
from urlab.evaluation.errors import (
    BodyTooLarge,
    MissingToken,
    RefusedPage,
    RefusedRequest,
    TooManyBodies,
    TooManyGuesses,
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BYTES_UNDER_WAY = 256 << 20
"""Of bodies that are not complete, of all clients together."""
MAX_DRAINED_BYTES = 64 << 20
"""Of a body that was refused: a client that sends all of it before it listens gets its answer, and no reset."""
_DRAIN_S = 10.0

WRONG_TOKEN_S = 0.5
"""How long the answer to a wrong token takes."""
MOST_WRONG_TOKENS = 32
"""Of one address that wait for their answer; further ones are not even looked at."""

_OPEN_PATHS = frozenset({"/docs", "/openapi.json"})


class Gate:
    """``app`` behind checks. Base URLs of clients may have a path of their own, so only its last part counts.

    /docs is open to all that reach the port: clients look at it before they send a token.
    """

    def __init__(self, app: App, *, web: WebAccess, max_body_bytes: int) -> None:
        self._app, self._web = app, web
        self._max_body_bytes = max_body_bytes
        self._bytes_under_way = 0
        self._wrong_tokens: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        path = "/" + scope["path"].rstrip("/").rpartition("/")[2]
        headers = dict(scope["headers"])
        try:
            self._check_page(scope)
            await self._check_token(path, headers, _address(scope))
            body = await self._body(headers, receive)
        except RefusedRequest as problem:
            return await _refuse(problem, receive, send)
        if body is None:
            return None
        inner = {**scope, "path": path, "raw_path": path.encode("utf-8", "replace")}
        return await self._app(inner, _replay(body, receive), send)

    def _check_page(self, scope: Scope) -> None:
        reason = self._web.refused_page(scope["method"], scope["headers"])
        if reason is not None:
            origin = next((value for name, value in scope["headers"] if name == b"origin"), b"")
            page = f" for a page of {origin[:100]!r}" if origin else ""
            access.refusals.say("http page", f"refused a request from {_address(scope)}{page}: {reason}", "page")
            raise RefusedPage(reason)

    async def _check_token(self, path: str, headers: dict[bytes, bytes], address: str) -> None:
        if self._web.token is None or path in _OPEN_PATHS:
            return
        sent = headers.get(b"authorization")
        if sent is None:
            access.refusals.say("http no token", f"refused a request without a token from {address}", "token")
            raise MissingToken("this server wants a token: send the header 'Authorization: Bearer <token>'")
        if self._wrong_tokens[address] >= MOST_WRONG_TOKENS:
            raise TooManyGuesses("too many wrong tokens from this address; try again in a second")
        if not self._web.is_token_right(sent):
            access.refusals.say("http wrong token", f"refused a wrong token from {address}", "token")
            await self._wait_for_wrong_token(address)
            raise MissingToken("the token is wrong: send the header 'Authorization: Bearer <token>'")

    async def _wait_for_wrong_token(self, address: str) -> None:
        self._wrong_tokens[address] += 1
        try:
            await asyncio.sleep(WRONG_TOKEN_S)
        finally:
            self._wrong_tokens[address] -= 1
            if not self._wrong_tokens[address]:
                del self._wrong_tokens[address]

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """The whole body; what is too large is refused before it is read, or as soon as it shows.

        None if the client hangs up before its end: half a request is none.
        """
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self._max_body_bytes:
            raise self._too_large()
        body = bytearray()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                if not body and not message.get("more_body", False):
                    return _part(message)
                self._grow(body, _part(message))
                if not message.get("more_body", False):
                    return bytes(body)
        finally:
            self._bytes_under_way -= len(body)

    def _grow(self, body: bytearray, part: bytes) -> None:
        if len(body) + len(part) > self._max_body_bytes:
            raise self._too_large()
        if self._bytes_under_way + len(part) > MAX_BYTES_UNDER_WAY:
            raise TooManyBodies("too many large bodies are being sent to this server; try again later")
        body += part
        self._bytes_under_way += len(part)

    def _too_large(self) -> BodyTooLarge:
        return BodyTooLarge(f"the body is larger than the limit of {self._max_body_bytes} bytes")


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "an unknown address"


def _part(message: MutableMapping[str, Any]) -> bytes:
    part: bytes = message.get("body", b"")
    return part


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body as one message, then what the connection sends."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return replay


async def _refuse(problem: RefusedRequest, receive: Receive, send: Send) -> None:
    """Answer; where the rest of the body is not wanted, the connection ends, but not while the client still sends."""
    body = msgspec.json.encode({"detail": problem.message})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if problem.closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": problem.closes})
    if problem.closes:
        await _drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive: Receive) -> None:
    """Read what the client still sends, a bounded amount, and drop it."""
    drained = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            while drained < MAX_DRAINED_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
                drained += len(_part(message))
