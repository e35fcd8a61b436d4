"""Who is let in: this user, and neither other users of the machine nor pages of other origins, nor what never ends."""

import contextlib
import http.client
import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from urlab.evaluation.http.connections import MAX_HEAD_BYTES, MOST_CONNECTIONS

STRANGER_UID = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")

ASK = """
import encodings.idna, http.client, os, ssl, sys  # another user may not be able to import
os.setuid(int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
    try:
        connection.request("GET", "/status", headers=dict(pair.split("=", 1) for pair in sys.argv[4:]))
        print(connection.getresponse().status)
    except OSError as problem:
        print(type(problem).__name__)
    connection.close()
"""
TOKEN = "a token of many letters"
REFUSED_PEER = "user 65534 is refused"


def port_of(server: Any) -> int:
    return int(server.url.rpartition(":")[2])


def ask_as(uid: int, server: Any, *headers: str, times: int = 1) -> list[str]:
    """What a process of that user gets for GET /status: a status, or the name of an error."""
    command = [sys.executable, "-c", ASK, str(port_of(server)), str(uid), str(times), *headers]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.split()


# -- other users of this machine ---------------------------------------------------------------------------------------


@as_root
def test_another_user_of_the_machine_is_disconnected_and_logged(make_server: Any) -> None:
    server = make_server()
    answers = ask_as(STRANGER_UID, server, times=40)
    assert set(answers) <= {"RemoteDisconnected", "ConnectionResetError", "BrokenPipeError"}
    assert ask_as(0, server) == ["200"]
    log = server.log.read_text()
    assert f"http port {port_of(server)}: {REFUSED_PEER}; --share lets other users of this machine in" in log
    assert log.count(REFUSED_PEER) <= 10


@as_root
def test_other_users_are_let_in_by_share_or_by_the_right_token(make_server: Any) -> None:
    assert ask_as(STRANGER_UID, make_server(share=True)) == ["200"]
    with_token = make_server(token=TOKEN)
    assert ask_as(STRANGER_UID, with_token, f"Authorization=Bearer {TOKEN}") == ["200"]
    assert ask_as(STRANGER_UID, with_token) == ["401"]
    assert ask_as(STRANGER_UID, with_token, "Authorization=Bearer of something else") == ["401"]


# -- pages of other origins --------------------------------------------------------------------------------------------

KILL = json.dumps({"data": {"worker_ids": ["0"]}}).encode()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8087"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_request_for_another_host_or_of_another_origin_is_refused(raw: Any, headers: dict[str, str]) -> None:
    raw.start("easy", episodes=2)
    raw.pickled("/reset", {"worker_ids": ["0"]})
    raw.headers = headers
    for method, path in (("POST", "/kill"), ("POST", "/start_new_job"), ("GET", "/status"), ("GET", "/docs")):
        status, body = raw.send(method, path, KILL if method == "POST" else None, "application/json")
        assert status == 403
        assert "detail" in json.loads(body)
    raw.headers = {}
    assert raw.status()["active_workers"] == ["0"]


@pytest.mark.parametrize("path", ["/create_workers", "/reset", "/reset_result", "/step", "/step_chunk", "/kill",
                                  "/give_up", "/start_new_job", "/load_config"])  # fmt: skip
def test_every_post_needs_a_content_type_that_a_page_cannot_send_unasked(raw: Any, path: str) -> None:
    for content_type in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        for body in (KILL, b""):
            status, detail = raw.refused(path, body, content_type)
            assert status == 400
            assert "Content-Type" in detail


def test_a_name_that_the_user_allows_is_answered(make_server: Any, make_raw: Any) -> None:
    server = make_server(allowed_hosts=["lab.example"])
    assert make_raw(server.url, Host="lab.example:8087").status()["status"] == "idle"
    assert make_raw(server.url, Host="other.example").send("GET", "/status", None, None)[0] == 403


@pytest.fixture
def other_origin(tmp_path: Path) -> Iterator[str]:
    """A page that is served by another port of this machine, with every way there is to send without asking first."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<!doctype html><title>another origin</title>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_address[1]}/"
    serving.shutdown()
    thread.join()
    serving.server_close()


JOB = json.dumps({"data": {"config_path": ["easy"], "run_id": "of_the_page"}})

ATTACK = """
(async () => {
  const base = BASE, kill = KILL, job = JOB, outcomes = [];
  const attempt = async (what, promise) => {
    try { const reply = await promise; outcomes.push(`${what}: ${reply.type || reply} ${reply.status || ""}`); }
    catch (problem) { outcomes.push(`${what}: ${problem.name}`); }
  };
  for (const mode of ["no-cors", "cors"]) {
    for (const [path, body] of [["/kill", kill], ["/start_new_job", job]]) {
      await attempt(`${mode} blob ${path}`, fetch(base + path, {method: "POST", mode, body: new Blob([body])}));
      await attempt(`${mode} text ${path}`, fetch(base + path, {method: "POST", mode, body}));
      const headers = {"Content-Type": "application/json"};
      await attempt(`${mode} json ${path}`, fetch(base + path, {method: "POST", mode, body, headers}));
    }
    await attempt(`${mode} reset`, fetch(base + "/reset", {method: "POST", mode}));
    await attempt(`${mode} status`, fetch(base + "/status", {mode}).then(reply => reply.text()));
  }
  navigator.sendBeacon(base + "/kill", new Blob([kill]));
  await new Promise(resolve => {
    const frame = document.createElement("iframe"), form = document.createElement("form");
    frame.name = "target"; frame.onload = resolve; document.body.append(frame, form);
    form.method = "POST"; form.action = base + "/kill"; form.enctype = "text/plain"; form.target = "target";
    form.submit();
  });
  return outcomes;
})()
"""


def attack_on(server: Any) -> str:
    return (
        ATTACK.replace("= BASE", f"= {server.url!r}")
        .replace("= KILL", f"= {KILL.decode()!r}")
        .replace("= JOB", f"= {JOB!r}")
    )


@pytest.fixture
def running(make_server: Any, make_raw: Any) -> tuple[Any, Any]:
    """A server with a worker in an episode, and its client."""
    server = make_server()
    client = make_raw(server.url)
    client.start("easy", run_id="ours")
    client.pickled("/reset", {"worker_ids": ["0"]})
    return server, client


def untouched(client: Any) -> bool:
    status = client.status()
    return status["run_id"] == "ours" and status["active_workers"] == ["0"]


def test_a_page_of_another_origin_in_a_real_browser_changes_and_reads_nothing(
    open_browser: Callable[..., Any], other_origin: str, running: Any
) -> None:
    server, client = running
    page = open_browser().open(other_origin)
    outcomes = page.evaluate(attack_on(server))
    assert len(outcomes) == 16
    assert not [one for one in outcomes if "200" in one or "run_id" in one]
    assert untouched(client)
    log = server.log.read_text()
    assert "requests of web pages of another origin are refused" in log
    assert f"for a page of b'{other_origin.rstrip('/')}'" in log


def test_a_page_that_was_led_here_by_a_foreign_name_changes_and_reads_nothing(
    open_browser: Callable[..., Any], running: Any
) -> None:
    """DNS rebinding: to the browser the page and the server are one origin, and it lets the page read all."""
    server, client = running
    browser = open_browser("--host-resolver-rules=MAP evil.example 127.0.0.1")
    page = browser.open(f"http://evil.example:{port_of(server)}/docs")
    assert page.evaluate("location.host") == f"evil.example:{port_of(server)}"
    send = 'fetch("PATH", {method: "POST", body: BODY, headers: {"Content-Type": "application/json"}})'
    for path, body in (("/kill", KILL.decode()), ("/start_new_job", JOB)):
        sent = send.replace("PATH", path).replace("BODY", repr(body))
        assert page.evaluate(f"{sent}.then(reply => reply.status)") == 403
    assert page.evaluate('fetch("/status").then(reply => reply.status)') == 403
    assert untouched(client)
    assert "this server is not 'evil.example:" in server.log.read_text()


def test_the_page_of_endpoints_loads_nothing_and_shows_all_in_a_browser(
    open_browser: Callable[..., Any], server: Any
) -> None:
    page = open_browser().open(f"{server.url}/docs")
    assert page.evaluate("document.title") == "URLab policy evaluation"
    assert "POST /step_chunk" in page.evaluate("document.body.innerText")
    assert page.evaluate("document.querySelectorAll('script,link,img,iframe').length") == 0
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


# -- what never ends ---------------------------------------------------------------------------------------------------


def connected(server: Any, sent: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port_of(server)), timeout=60)
    client.sendall(sent)
    return client


def ends(client: socket.socket) -> bytes:
    """What the server still says before it ends the connection."""
    said = b""
    try:
        while part := client.recv(1 << 16):
            said += part
    except ConnectionResetError:
        pass
    return said


def test_a_body_that_is_too_large_is_answered_and_not_reset(make_raw: Any, server: Any) -> None:
    """The client sends all of it before it reads, as most do."""
    client = make_raw(server.url)
    for size in ((8 << 20) + 1, 40 << 20):
        status, body = client.send("POST", "/step", bytes(size), "application/octet-stream")
        assert status == 413
        assert "8388608" in json.loads(body)["detail"]
    assert client.status()


def test_connections_that_say_nothing_keep_no_client_out(make_server: Any, make_raw: Any) -> None:
    server = make_server()
    client = make_raw(server.url)
    client.pickled("/reset", {"worker_ids": ["0"]})
    half = b"POST /step HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nContent-Type: application/json\r\n\r\n{"
    with contextlib.ExitStack() as silent:
        for number in range(MOST_CONNECTIONS + 100):
            silent.enter_context(connected(server, half if number % 2 else b""))
        assert make_raw(server.url).status()["active_workers"] == ["0"]


def test_a_request_that_stops_in_its_head_or_its_body_is_ended(make_server: Any) -> None:
    server = make_server(limits={"head_s": 5.0, "body_s": 5.0})
    head = b"POST /step HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
    status = b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as opened:
        parts = (b"", head, head + b"\r\n{", status + b"GET /sta")
        clients = [opened.enter_context(connected(server, sent)) for sent in parts]
        assert [ends(client).count(b"HTTP/1.1 200 OK") for client in clients] == [0, 0, 0, 1]


@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100])
def test_a_head_without_end_is_refused(server: Any, begin: bytes) -> None:
    part = b"X: y\r\n" * 100 if begin.endswith(b"\n") else b"a" * 600
    with connected(server, begin) as client:
        try:
            for _ in range(MAX_HEAD_BYTES // 100):
                client.sendall(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert b"HTTP/1.1 200" not in ends(client)


def test_what_is_no_http_is_a_few_lines_in_the_log(make_server: Any) -> None:
    server = make_server()
    for _ in range(60):
        with connected(server, b"\x16\x03\x01\x02\x00\x01\x00 no http at all\r\n\r\n") as client:
            ends(client)
    assert server.log.read_text().count("Invalid HTTP request") <= 10


# -- tokens and TLS ----------------------------------------------------------------------------------------------------


def test_wrong_tokens_are_slow_and_logged_a_few_times(make_server: Any, make_raw: Any, halt: Any) -> None:
    """The server stands still until all have been sent: so many at once are too many, however slowly they come."""
    server = make_server(token=TOKEN)
    clients = [make_raw(server.url, Authorization=f"Bearer wrong number {number}") for number in range(60)]
    halt(server.process.pid)
    for client in clients:
        client.connection.request("GET", "/status", headers=client.headers)
    server.process.send_signal(signal.SIGCONT)
    statuses = [client.connection.getresponse().status for client in clients]
    assert set(statuses) == {401, 429}
    assert 0 < server.log.read_text().count("refused a wrong token from 127.0.0.1") <= 10
    assert make_raw(server.url, Authorization=f"Bearer {TOKEN}").status()["status"] == "idle"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert), *names]
    try:
        subprocess.run([*made, "-days", "2"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return cert, key


def test_with_a_certificate_the_server_speaks_https_and_nothing_else(
    make_server: Any, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    server = make_server(tls=[str(cert), str(key)])
    assert server.url.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context(cafile=cert)
    client = http.client.HTTPSConnection("127.0.0.1", port_of(server), context=trusting, timeout=60)
    client.request("GET", "/status")
    assert client.getresponse().status == 200
    client.close()
    doubting = http.client.HTTPSConnection("127.0.0.1", port_of(server), timeout=60)
    with pytest.raises(ssl.SSLCertVerificationError):
        doubting.request("GET", "/status")
    doubting.close()
    with connected(server, b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n") as plain:
        assert b"HTTP/1.1 200" not in ends(plain)


@as_root
def test_another_user_is_refused_over_https_too(make_server: Any, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    server = make_server(tls=[str(cert), str(key)])
    ask = ASK.replace("HTTPConnection(", "HTTPSConnection(").replace(
        "timeout=30)", "timeout=30, context=ssl._create_unverified_context())"
    )
    command = [sys.executable, "-c", ask, str(port_of(server)), str(STRANGER_UID), "1"]
    answers = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.split()
    assert answers != ["200"]
    assert REFUSED_PEER in server.log.read_text()
