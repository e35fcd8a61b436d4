import contextlib
import http.client
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import urlab
from urlab import editor_process
from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.editor_process import EditorProcess
from urlab.errors import ConfigError
from urlab_client import URLabClient

LEVEL = '<mujoco model="box"><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'


class NoRequests:
    """What the server's end needs of a dispatcher, for an editor that asks nothing."""

    def read(self, *_: Any) -> Any:
        raise AssertionError("nothing was asked")

    let_go = read


@pytest.fixture
def editor() -> Iterator[Callable[..., EditorProcess]]:
    with contextlib.ExitStack() as opened:

        def start(**options: Any) -> EditorProcess:
            process = EditorProcess(NoRequests(), **options)  # type: ignore[arg-type]
            opened.callback(process.close)
            return process

        yield start


@pytest.fixture
def client(tmp_path: Path) -> Iterator[URLabClient]:
    (tmp_path / "box.xml").write_text(LEVEL)
    with urlab.launch(tmp_path / "box.xml", web=True, web_port=0, project=tmp_path / "project") as opened:
        yield opened


def ask(url: str, limit_s: float = 60.0) -> http.client.HTTPResponse:
    host, _, path = url.removeprefix("http://").partition("/")
    with contextlib.closing(http.client.HTTPConnection(host, timeout=limit_s)) as connection:
        connection.request("GET", f"/{path}")
        return connection.getresponse()


def test_a_port_that_is_taken_is_named_with_its_option(editor: Callable[..., EditorProcess]):
    with socket.create_server(("127.0.0.1", 0)) as other:
        with pytest.raises(ConfigError, match=r"--web-port"):
            editor(port=other.getsockname()[1])


def test_without_a_port_there_is_always_one(editor: Callable[..., EditorProcess]):
    first, second = editor(), editor()
    assert first.address != second.address


def test_no_process_is_started_before_a_browser_comes(editor: Callable[..., EditorProcess]):
    process = editor(port=0)
    assert not list(Path(process._folder.name).glob("ready*"))
    assert process.url == f"{process.address}?token={process.token}"


def test_the_first_browser_starts_it_and_it_ends_with_the_server(client: URLabClient):
    url = client.viewport.editor_url()
    reply = ask(url)
    assert (reply.status, reply.headers["Location"]) == (303, "/")
    client.close()
    with pytest.raises(ConnectionRefusedError):
        ask(url, 5.0)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself, and its key."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-keyout", str(key), "-out", str(cert), "-subj", "/CN=localhost", "-days", "2"]
    try:
        subprocess.run([*made, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return cert, key


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers with an editor, in an empty project; nothing plays."""
    with contextlib.ExitStack() as opened:

        def start(**options: Any) -> Server:
            project = tmp_path / "project"
            server = Server(
                ServerConfig(project=project, ports=Ports.any(), play=False, web=True, web_port=0, **options)
            )
            opened.callback(server.close)
            server.begin()
            server.open_sockets()
            return server

        yield start


def test_with_a_certificate_the_page_speaks_https_and_nothing_else(
    serve: Callable[..., Server], certificate: tuple[Path, Path]
):
    url = str(serve(tls=certificate).web_url)
    assert url.startswith("https://127.0.0.1:")
    host, _, path = url.removeprefix("https://").partition("/")
    trusting = ssl.create_default_context(cafile=certificate[0])
    with contextlib.closing(http.client.HTTPSConnection(host, context=trusting, timeout=60)) as connection:
        connection.request("GET", f"/{path}")
        reply = connection.getresponse()
        assert reply.status == 303
        assert "Secure" in reply.headers["Set-Cookie"]
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(url.replace("https://", "http://"))


@pytest.mark.parametrize(("tls", "address"), [(False, "http://127.0.0.1:"), (True, "https://0.0.0.0:")])
def test_a_server_for_other_machines_keeps_its_page_on_this_one_unless_it_is_encrypted(
    serve: Callable[..., Server], tmp_path: Path, certificate: tuple[Path, Path], tls: bool, address: str
):
    server = serve(host="0.0.0.0", keys=tmp_path / "keys", tls=certificate if tls else None)
    assert str(server.web_url).startswith(address)


def test_observers_are_not_told_the_token(client: URLabClient):
    with URLabClient("inproc://urlab", transport=client._channel.transport, observer=True) as observer:
        observer.discover()
        with pytest.raises(RuntimeError, match="observer"):
            observer.show()


def test_a_server_without_an_editor_says_how_to_get_one(tmp_path: Path):
    (tmp_path / "box.xml").write_text(LEVEL)
    with urlab.launch(tmp_path / "box.xml", project=tmp_path / "project") as client:
        with pytest.raises(RuntimeError, match=r"--web.*web=True"):
            client.show()


def test_a_missing_extra_is_answered_with_the_line_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(editor_process, "is_installed", lambda: False)
    (tmp_path / "box.xml").write_text(LEVEL)
    with pytest.raises(ConfigError, match=r"pip install 'urlab-headless\[editor\]'"):
        urlab.launch(tmp_path / "box.xml", web=True, project=tmp_path / "project")


def test_a_notebook_gets_a_frame_that_brings_the_token_along(client: URLabClient):
    view = client.show(height=400)
    assert view.url in repr(view)
    assert "embed=1" in view._repr_html_()
    assert "height:400px" in view._repr_html_()
    assert ask(f"{view.url}&embed=1").status == 200
