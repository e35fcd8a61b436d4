"""Who gets at the page: viser itself lets every browser in, so each request passes here before it reaches viser.

A request is served when it comes from this user (or root, or another machine where the server listens there), asks for
a host of ours, comes from no page of another origin, and carries the token: in the address at first, in a cookie from
then on. That goes for the page and for its websocket.
"""

import hmac
import http
import logging
import socket as sockets
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import websockets.asyncio.server
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from urlab import access
from urlab.access.web import WebAccess

log = logging.getLogger("urlab.editor")

Handler = Callable[[ServerConnection], Awaitable[None]]
ProcessRequest = Callable[[ServerConnection, Request], Response | None]

_PROTECTING = {
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
_LOCKED = """<!doctype html><meta charset=utf-8><meta name=viewport content="width=device-width"><title>URLab</title>
<style>body{{font:16px/1.5 system-ui;max-width:34em;margin:15vh auto;padding:0 1em}}
input{{font:inherit;width:20em;max-width:100%}}</style>
<h1>URLab editor</h1><p>{reason}</p>
<p>Open the address that <code>urlab serve</code> printed, with its <code>token=</code>, or enter the token here.</p>
<form><label>Token <input name=token type=password autofocus></label> <button>Open</button></form>"""
_COOKIE_S = 30 * 24 * 3600


class PageGate:
    """Judges requests of one port. ``share`` lets other users of this machine in, who need the token all the same."""

    def __init__(self, host: str, port: int, token: str, *, share: bool = False, secure: bool = False) -> None:
        self._web = WebAccess(host)
        self._endpoint = f"the browser editor at {host}:{port}"
        self._token = token
        self._share = share
        self._cookie_name = f"urlab_{port}"
        self._cookie = hmac.new(token.encode(), b"cookie", "sha256").hexdigest()
        """The same after a restart of the editor's process, and of no use as a token."""
        self._cookie_rules = f"Path=/; HttpOnly; SameSite=Lax; Max-Age={_COOKIE_S}" + ("; Secure" if secure else "")

    def judge(self, connection: ServerConnection, request: Request) -> Response | None:
        """The answer to a request that is not let in, or to one that brings the token; None lets it through."""
        peer = connection.transport.get_extra_info("socket")
        if not self._share and access.is_stranger(peer):
            access.refusals.refused(self._endpoint, peer)
            connection.transport.abort()  # not a word, as at every other port
            return _page(http.HTTPStatus.FORBIDDEN, "Another user's server: it was not started with --share.")
        query = parse_qs(urlsplit(request.path).query)
        has_token = any(hmac.compare_digest(one.encode(), self._token.encode()) for one in query.get("token", ()))
        is_embedded = has_token and "embed" in query
        headers = [(name.lower().encode(), value.encode("latin1")) for name, value in request.headers.raw_items()]
        reason = None if is_embedded else self._web.refused_page("GET", headers)
        if reason is not None:
            access.refusals.say("editor", f"a request for the editor was refused: {reason}")
            return _page(http.HTTPStatus.FORBIDDEN, reason[:1].upper() + reason[1:] + ".")
        is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
        if is_embedded or (is_socket and has_token) or self._has_cookie(request):
            return None
        if has_token:
            return self._welcome(query)
        access.refusals.say("editor", "a request for the editor had no token, or a wrong one")
        reason = "This token is not the right one." if "token" in query else "This page needs a token."
        return _page(http.HTTPStatus.UNAUTHORIZED, reason)

    def _has_cookie(self, request: Request) -> bool:
        for header in request.headers.get_all("Cookie"):
            for one in header.split(";"):
                name, _, value = one.strip().partition("=")
                if name == self._cookie_name and hmac.compare_digest(value.encode(), self._cookie.encode()):
                    return True
        return False

    def _welcome(self, query: dict[str, list[str]]) -> Response:
        """Keep the token out of the address from here on."""
        rest = urlencode({name: values for name, values in query.items() if name != "token"}, doseq=True)
        headers = Headers(_PROTECTING)
        headers["Location"] = f"/?{rest}" if rest else "/"
        headers["Set-Cookie"] = f"{self._cookie_name}={self._cookie}; {self._cookie_rules}"
        headers["Content-Length"] = "0"
        return Response(http.HTTPStatus.SEE_OTHER, "See Other", headers, b"")


def _page(status: http.HTTPStatus, reason: str) -> Response:
    body = _LOCKED.format(reason=reason.replace("&", "&amp;").replace("<", "&lt;")).encode()
    headers = Headers(_PROTECTING)
    headers["Content-Type"] = "text/html; charset=utf-8"
    headers["Content-Length"] = str(len(body))
    headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"
    return Response(status, status.phrase, headers, body)


def _with_script(response: Response | None, script: str) -> Response | None:
    if response is None or not response.headers.get("Content-Type", "").startswith("text/html"):
        return response
    body = response.body.replace(b"</head>", script.encode() + b"</head>", 1)
    body = body.replace(b"<title>Viser</title>", b"<title>URLab</title>", 1)
    headers = Headers(_PROTECTING)
    headers["Content-Type"] = response.headers["Content-Type"]
    headers["Content-Length"] = str(len(body))
    return Response(response.status_code, response.reason_phrase, headers, body)


_CLOSE_S = 1.0
"""How long a page that does not answer pings any more, for 40 s, may take to close its connection."""
_starting = threading.Lock()


@contextmanager
def behind(
    gate: PageGate,
    listener: sockets.socket,
    tls: ssl.SSLContext | None = None,
    *,
    routes: Mapping[str, Handler] | None = None,
    script: str = "",
) -> Iterator[None]:
    """While this lasts, a websocket server that is started listens on ``listener`` and lets in what the gate lets in.

    ``routes`` are further websockets, by their path; ``script`` is added to the page.

    viser starts its own and takes no such options, so the function that it calls is replaced for that moment.
    RuntimeError in the end if it was not called exactly once: nothing may be served past the gate.
    """
    serve = websockets.asyncio.server.serve
    calls = []

    def gated(handler: Any, host: Any, port: Any, *, process_request: ProcessRequest, **options: Any) -> Any:
        calls.append((host, port))

        def judge(connection: ServerConnection, request: Request) -> Response | None:
            refused = gate.judge(connection, request)
            if refused is not None:
                return refused
            if "Accept-Encoding" in request.headers:
                del request.headers["Accept-Encoding"]  # the page is sent to this machine, and gets a script
            return _with_script(process_request(connection, request), script)

        async def route(connection: ServerConnection) -> None:
            path = "" if connection.request is None else urlsplit(connection.request.path).path
            await (routes or {}).get(path, handler)(connection)

        return serve(route, sock=listener, ssl=tls, process_request=judge, close_timeout=_CLOSE_S, **options)

    with _starting:
        websockets.asyncio.server.serve = gated  # type: ignore[misc, assignment]
        try:
            yield
        finally:
            websockets.asyncio.server.serve = serve  # type: ignore[misc]
    if len(calls) != 1:
        raise RuntimeError(f"this version of viser starts its server in another way ({len(calls)} calls)")
