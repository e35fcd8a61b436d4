import asyncio
import contextlib
import http.client
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import websockets.asyncio.server
from websockets.datastructures import Headers
from websockets.exceptions import InvalidStatus
from websockets.http11 import Response
from websockets.sync.client import connect

from urlab.editor.gate import PageGate, behind

TOKEN = "a-token-that-cannot-be-guessed"
PAGE = b"<html><head></head><body>the page</body></html>"


def page(_connection: Any, request: Any) -> Response | None:
    if request.headers.get("Upgrade") == "websocket":
        return None
    headers = Headers({"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(PAGE))})
    return Response(200, "OK", headers, PAGE)


async def echo(connection: Any) -> None:
    async for message in connection:
        await connection.send(message)


async def keys(connection: Any) -> None:
    await connection.send("keys")


@pytest.fixture
def gated() -> Iterator[int]:
    """A websocket server that is started as viser starts its own, behind the gate; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    loop, stop, started = asyncio.new_event_loop(), asyncio.Event(), threading.Event()

    async def serve() -> None:
        async with websockets.asyncio.server.serve(echo, "127.0.0.1", 0, process_request=page):
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    with behind(PageGate("127.0.0.1", port, TOKEN), listener, routes={"/keys": keys}, script="<script>1</script>"):
        thread.start()
        assert started.wait(20)
    yield port
    loop.call_soon_threadsafe(stop.set)
    thread.join(20)
    loop.close()


@pytest.fixture
def ask(gated: int) -> Callable[..., http.client.HTTPResponse]:
    def send(path: str = "/", **headers: str) -> http.client.HTTPResponse:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gated, timeout=20)) as connection:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            reply = connection.getresponse()
            reply.text = reply.read().decode()  # type: ignore[attr-defined]
            return reply

    return send


@pytest.fixture
def cookie(ask: Any) -> str:
    return str(ask(f"/?token={TOKEN}").headers["Set-Cookie"].partition(";")[0])


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/index.html", "/?embed=1"])
def test_nothing_is_served_without_the_token(ask: Any, path: str):
    reply = ask(path)
    assert reply.status == 401
    assert "the page" not in reply.text
    assert "urlab serve" in reply.text


def test_the_token_becomes_a_cookie_and_leaves_the_address(ask: Any, cookie: str):
    welcome = ask(f"/?token={TOKEN}&darkMode=1")
    assert (welcome.status, welcome.headers["Location"]) == (303, "/?darkMode=1")
    assert {"HttpOnly", "SameSite=Lax"} <= set(welcome.headers["Set-Cookie"].replace(" ", "").split(";"))
    assert TOKEN not in welcome.headers["Set-Cookie"]
    reply = ask("/", Cookie=f"other=1; {cookie}")
    assert reply.status == 200
    assert reply.text == PAGE.decode().replace("</head>", "<script>1</script></head>")


def test_a_cookie_of_another_server_opens_nothing(ask: Any, cookie: str):
    assert ask("/", Cookie=f"{cookie[:-4]}0000").status == 401


def test_a_page_of_another_origin_is_refused_even_with_the_cookie(ask: Any, cookie: str):
    assert ask("/", Cookie=cookie, Origin="http://evil.example").status == 403
    assert ask("/", Cookie=cookie, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors").status == 403


def test_a_foreign_name_that_leads_here_is_refused(ask: Any, cookie: str):
    assert ask("/", Cookie=cookie, Host="evil.example").status == 403


def test_a_page_in_a_frame_of_another_site_needs_the_token_in_its_address(ask: Any):
    framed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}
    assert ask(f"/?token={TOKEN}&embed=1", **framed).status == 200
    assert ask("/?embed=1", **framed).status == 403


def test_the_websocket_asks_for_the_same(gated: int, cookie: str):
    address = f"ws://127.0.0.1:{gated}/"
    for headers in ({}, {"Cookie": "urlab=1"}, {"Cookie": cookie, "Origin": "http://evil.example"}):
        with pytest.raises(InvalidStatus):
            connect(address, additional_headers=headers)
    for opened in (connect(address, additional_headers={"Cookie": cookie}), connect(f"{address}?token={TOKEN}")):
        with opened as client:
            client.send("hello")
            assert client.recv(20) == "hello"


def test_another_path_is_another_websocket(gated: int, cookie: str):
    with connect(f"ws://127.0.0.1:{gated}/keys", additional_headers={"Cookie": cookie}) as client:
        assert client.recv(20) == "keys"


def test_a_server_that_is_not_started_through_the_gate_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(RuntimeError, match="another way"):
        with behind(PageGate("127.0.0.1", 1, TOKEN), listener):
            pass


AS_ANOTHER_USER = """
import encodings.idna, os, socket, sys
os.setuid(65534)
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as peer:
    try:
        peer.sendall(f"GET /?token={sys.argv[2]} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n".encode())
        print(len(peer.recv(100)))
    except ConnectionError:
        print(0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_user_of_the_machine_gets_no_answer_even_with_the_token(gated: int, caplog: pytest.LogCaptureFixture):
    command = [sys.executable, "-c", AS_ANOTHER_USER, str(gated), TOKEN]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"
    assert "user 65534 is refused" in caplog.text
