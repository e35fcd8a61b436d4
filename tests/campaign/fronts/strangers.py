"""Strangers: another user of this machine, another machine, and a web page of another origin, against every port.

Each must be refused, and the log must say so. Another user and another machine need root; the page needs Chromium.
"""

import contextlib
import functools
import http.server
import json
import os
import shutil
import socket as sockets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.browser import Browser, find_browser
from tests.campaign.fronts.http import EvalServer
from tests.campaign.fronts.zmtp import GREETING, ready, request
from tests.campaign.outcome import Outcome, Plan
from tests.campaign.processes import UrlabServer, scratch

ABOUT = "another user, another machine and a web page of another origin, against every port"
STRANGER_UID = 65534
NEAR, FAR = (f"10.197.{os.getpid() % 250 + 1}.{end}" for end in (1, 2))
"""Addresses of this process: what one that was killed has left behind must not stand in the way."""
CONTROL = b"\x01\x0barm/control\x00\x04\x00\x00\x00\x00"
_TRIES = 5

PROBE = r"""
import encodings.idna, json, os, socket, sys, time
uid, targets, tries = int(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
if uid:
    os.setgroups([]); os.setuid(uid)
found = {}
for name, host, port, data in targets:
    answers = []
    for _ in range(tries):
        received, until = b"", time.monotonic() + 2
        try:
            with socket.create_connection((host, port), 3) as peer:
                peer.settimeout(1.5)
                for number, part in enumerate(data):
                    peer.sendall(bytes.fromhex(part))
                    while len(received) < 64 + number and (one := peer.recv(65536)):
                        received += one
                while time.monotonic() < until and (one := peer.recv(65536)):
                    received += one
        except OSError as failed:
            answers.append([len(received), type(failed).__name__])
        else:
            answers.append([len(received), "closed"])
    found[name] = answers
print(json.dumps(found))
"""


def run(plan: Plan, outcome: Outcome) -> None:
    with scratch() as folder:
        folder.chmod(0o755)
        with UrlabServer(folder / "server", "--metrics-port", "0") as server, EvalServer(folder / "eval") as evaluation:
            ports = _ports(server, evaluation)
            outcome.figures["ports"] = len(ports)
            _own_user(outcome, ports)
            _other_user(outcome, ports, server, evaluation)
            _other_machine(outcome, ports, folder)
            if plan.short:
                outcome.skipped.append("a web page (not in the short form)")
            else:
                _web_page(outcome, ports, folder, server, evaluation)
            server.judge(outcome)
            evaluation.judge(outcome, "evaluation server")


Ports = dict[str, tuple[int, tuple[bytes, ...]]]
"""By name: the port, and what a peer would send to be answered, part by part."""


def _ports(server: UrlabServer, evaluation: EvalServer) -> Ports:
    subscriber = (GREETING, ready(b"SUB"), b"\x00\x01\x01")
    where = server.ready
    ports = {"step": (server.address[1], (GREETING, ready(), request("hello")))}
    for name in ("state", "info"):
        ports[name] = (_port(where[name]), subscriber)
    ports["control"] = (_port(where["control"]), (GREETING, ready(b"PUB"), CONTROL))
    ports.update({f"camera {name}": (_port(one), subscriber) for name, one in where["cameras"].items()})
    ports["evaluation"] = (_port(evaluation.url), (_get("/status"),))
    metrics = next((value for key, value in where.items() if "metrics" in key), None)
    if metrics is not None:
        ports["metrics"] = (_port(str(metrics).removesuffix("/metrics")), (_get("/metrics"),))
    if where["web"] is not None:
        address, _, query = where["web"].partition("?")
        ports["web"] = (_port(address), (_get(f"/?{query}"),))
        with sockets.create_connection(("127.0.0.1", ports["web"][0]), 60) as browser:
            browser.sendall(ports["web"][1][0])  # the first one starts the editor's process
            browser.recv(1)
    return ports


def _port(endpoint: str) -> int:
    return int(endpoint.rstrip("/").rpartition(":")[2])


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()


def _probe(uid: int, host: str, ports: Ports, prefix: list[str], tries: int = _TRIES) -> dict[str, list[list[Any]]]:
    targets = [(name, host, port, [part.hex() for part in data]) for name, (port, data) in ports.items()]
    command = [*prefix, sys.executable, "-c", PROBE, str(uid), json.dumps(targets), str(tries)]
    told = subprocess.run(command, stdout=subprocess.PIPE, timeout=300, check=True).stdout
    found: dict[str, list[list[Any]]] = json.loads(told)
    return found


def _own_user(outcome: Outcome, ports: Ports) -> None:
    """The probe itself: the server's own user is answered on every port that answers."""
    for name, answers in _probe(0, "127.0.0.1", ports, [], 1).items():
        outcome.tried["connections of the own user"] += 1
        outcome.check(answers[0][0] > 64 or name == "control", "the own user got no answer", f"{name}: {answers}")


def _other_user(outcome: Outcome, ports: Ports, server: UrlabServer, evaluation: EvalServer) -> None:
    if os.geteuid() != 0:
        outcome.skipped.append("another user of this machine: only root can start a process of one")
        return
    for name, answers in _probe(STRANGER_UID, "127.0.0.1", ports, []).items():
        outcome.tried["connections of another user"] += len(answers)
        # libzmq greets before it asks who is there: its 64 bytes say nothing
        answered = [one for one in answers if one[0] > 64 or one[1] == "TimeoutError"]
        outcome.check(not answered, "another user was let in", f"{name}: {answered}")
    for name, (port, _) in ports.items():
        log = (evaluation if name == "evaluation" else server).log.read_text()
        told = [
            line for line in log.splitlines() if str(port) in line and ("refused" in line or str(STRANGER_UID) in line)
        ]
        outcome.check(bool(told), "a refused user is not in the log", f"{name}: port {port}")


# -- another machine ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _second_machine() -> Iterator[str | None]:
    """The name of a network namespace with an address of its own; None where that is not allowed."""
    name = f"urlab-campaign-{os.getpid()}"
    near, far = f"uc{os.getpid() % 10000}a", f"uc{os.getpid() % 10000}b"
    words = (
        f"netns add {name}", f"link add {near} type veth peer name {far}", f"link set {far} netns {name}",
        f"addr add {NEAR}/24 dev {near}", f"link set {near} up", f"-n {name} addr add {FAR}/24 dev {far}",
        f"-n {name} link set {far} up", f"-n {name} link set lo up",
    )  # fmt: skip
    try:
        for one in words:
            subprocess.run(["ip", *one.split()], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        yield None
    else:
        yield name
    finally:
        subprocess.run(["ip", "link", "del", near], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _other_machine(outcome: Outcome, ports: Ports, folder: Path) -> None:
    """It does not reach what listens on loopback; what listens for it asks for a key or a token."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        outcome.skipped.append("another machine: only root can make a network namespace")
        return
    with _second_machine() as name:
        if name is None:
            outcome.skipped.append("another machine: network namespaces are not allowed here")
            return
        with sockets.create_server((NEAR, 0)) as own:  # the wire is there: a port that is open can be reached
            open_port = own.getsockname()[1]
            found = _probe(0, NEAR, {"open": (open_port, (b"x",))}, ["ip", "netns", "exec", name], 1)
        if not outcome.check(found["open"][0][1] == "TimeoutError", "the second machine cannot reach this one", found):
            return
        for port, answers in _probe(0, NEAR, ports, ["ip", "netns", "exec", name], 2).items():
            outcome.tried["connections of another machine"] += len(answers)
            refused = all(size == 0 and how == "ConnectionRefusedError" for size, how in answers)
            outcome.check(refused, "another machine reached a port", f"{port}: {answers}")
        _without_key(outcome, folder, ["ip", "netns", "exec", name])


def _without_key(outcome: Outcome, folder: Path, prefix: list[str]) -> None:
    """Servers that listen for other machines, and one that has neither key nor token."""
    options = ("--host", NEAR, "--keys", str(folder / "keys"), "--no-web")
    token = ("--host", NEAR, "--token", "auto")
    with UrlabServer(folder / "keyed", *options) as server, EvalServer(folder / "token", *token) as evaluation:
        ports = _ports(server, evaluation)
        for name, answers in _probe(0, NEAR, ports, prefix, 2).items():
            outcome.tried["connections of another machine without a key"] += len(answers)
            told = (evaluation if name == "evaluation" else server).log.read_text()
            outcome.check(_is_refused(name, answers), "another machine was let in", f"{name}: {answers}")
            lines = [
                line
                for line in told.splitlines()
                if "refused" in line and (str(ports[name][0]) in line or "token" in line)
            ]
            outcome.check(bool(lines), "a refused machine is not in the log", f"{name}: port {ports[name][0]}")
        server.judge(outcome, "server with keys")
        evaluation.judge(outcome, "evaluation server with a token")


def _is_refused(name: str, answers: list[list[Any]]) -> bool:
    """A web server says so in words; ZeroMQ ends the connection, with no more than its greeting."""
    if name == "evaluation":
        return all(size < 1000 and how == "closed" for size, how in answers)
    return all(size <= 64 and how != "TimeoutError" for size, how in answers)


# -- a web page ---------------------------------------------------------------------------------------------------

FETCH = """(async () => {
  const found = {};
  for (const [name, url, options] of TARGETS) {
    try {
      const reply = await fetch(url, {...options, signal: AbortSignal.timeout(3000)});
      found[name] = [reply.type, reply.status, (await reply.text()).length];
    } catch (failed) { found[name] = ["failed", 0, 0]; }
  }
  return found;
})()"""


CONNECT = """(async () => {
  const found = {};
  for (const [name, url] of TARGETS) {
    found[name] = await new Promise((tell) => {
      const socket = new WebSocket(url);
      socket.onopen = () => { socket.close(); tell("open"); };
      socket.onerror = () => tell("refused");
      setTimeout(() => tell("silent"), 3000);
    });
  }
  return found;
})()"""


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        """Keep what was asked for to itself."""


def _web_page(outcome: Outcome, ports: Ports, folder: Path, server: UrlabServer, evaluation: EvalServer) -> None:
    program = find_browser()
    if program is None:
        outcome.skipped.append("a web page: there is no Chromium")
        return
    site = folder / "site"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>another origin</title>")
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        before = _status(evaluation)
        # evil.example and rebound.example stand for a page elsewhere whose name now points to this machine
        rules = "MAP evil.example 127.0.0.1, MAP rebound.example 127.0.0.1"
        (folder / "browser").mkdir()
        with Browser(program, folder / "browser", f"--host-resolver-rules={rules}") as browser:
            page = browser.open(f"http://evil.example:{web.server_port}/")
            _fetch_everything(outcome, page, ports, "127.0.0.1", "a page of another origin")
            for name, (port, _) in ports.items():
                rebound = browser.open(f"http://rebound.example:{port}/status")
                body = str(rebound.evaluate("document.body ? document.body.innerText : ''"))
                outcome.tried["pages after DNS rebinding"] += 1
                outcome.check(
                    '"data"' not in body and "urlab_" not in body, "DNS rebinding read a reply", f"{name}: {body}"
                )
                _fetch_everything(
                    outcome, rebound, {name: ports[name]}, "rebound.example", "a page after DNS rebinding"
                )
        outcome.check(
            _status(evaluation) == before, "a web page changed the evaluation", f"{before} {_status(evaluation)}"
        )
        web.shutdown()
    for name, (port, _) in ports.items():
        log = (evaluation if name == "evaluation" else server).log.read_text()
        told = [line for line in log.splitlines() if _tells_of_page(name, port, line)]
        outcome.check(bool(told), "a refused page is not in the log", f"{name}: port {port}")


def _tells_of_page(name: str, port: int, line: str) -> bool:
    """Whether a line of the log tells that a page was refused at that port."""
    if name == "evaluation":
        return "refused a request" in line
    if name == "web":
        return "a request for the editor was refused" in line
    return str(port) in line and (" refused" in line or "disconnected" in line) and str(STRANGER_UID) not in line


def _fetch_everything(outcome: Outcome, page: Any, ports: Ports, host: str, who: str) -> None:
    body = json.dumps({"data": {"config_path": ["panda_cube_on_plate"], "worker_ids": ["0"]}})
    ways: dict[str, dict[str, Any]] = {
        "read": {},
        "blind": {"method": "POST", "mode": "no-cors", "body": body},
        "plain": {"method": "POST", "mode": "no-cors", "body": body, "headers": {"Content-Type": "text/plain"}},
        "json": {"method": "POST", "body": body, "headers": {"Content-Type": "application/json"}},
    }
    paths = ("/", "/status", "/start_new_job", "/kill", "/metrics", "/healthz", "/openapi.json")
    targets = [
        (f"{name} {path} {way}", f"http://{host}:{port}{path}", options)
        for name, (port, _) in ports.items()
        for path in paths
        for way, options in ways.items()
    ]
    found = page.evaluate(FETCH.replace("TARGETS", json.dumps(targets)))
    for name, (kind, status, size) in found.items():
        outcome.tried[f"requests of {who}"] += 1
        outcome.check(
            not (kind in ("basic", "cors") and status == 200 and size), f"{who} read a reply", f"{name}: {status}"
        )
    sockets_to = [(name, f"ws://{host}:{port}/") for name, (port, _) in ports.items()]
    for name, answer in page.evaluate(CONNECT.replace("TARGETS", json.dumps(sockets_to))).items():
        outcome.tried[f"websockets of {who}"] += 1
        outcome.check(answer != "open", f"{who} opened a websocket", name)


def _status(evaluation: EvalServer) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", _port(evaluation.url), timeout=30)
    connection.request("GET", "/status")
    return json.loads(connection.getresponse().read())["data"]
