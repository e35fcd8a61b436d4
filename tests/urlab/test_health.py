"""The HTTP port for supervisors: health, readiness and figures of a real server process."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from urlab.child_process import ANY_PORTS
from urlab.monitoring import metrics
from urlab_client import URLabClient

from .cli.conftest import ARM, run, serving  # noqa: F401 - a fixture

STRANGER_UID = 65534
BROKEN = ARM.replace('joint="hinge"', 'joint="elbow"')


def get(url: str | urllib.request.Request) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Read by Prometheus's own parser."""
    families = text_string_to_metric_families(text)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def test_a_server_that_plays_is_well_and_ready_and_counts_what_it_does(serving: Any) -> None:  # noqa: F811
    url = (server := serving("--metrics-port", "0")).ready["metrics"]
    assert get(f"{url}/healthz") == (200, json.dumps({"ok": True, "pid": server.process.pid}) + "\n")
    assert json.loads(get(f"{url}/readyz")[1]) == {"ok": True, "state": "ready", "level": "demo"}
    lateness = "urlab_live_lateness_seconds", frozenset({("quantile", "0.99")})
    while lateness not in (live := samples(get(f"{url}/metrics")[1])):
        assert live["urlab_mode", frozenset({("mode", "live")})] == 1
    with URLabClient("tcp://127.0.0.1", step_port=int(server.port), step_mode="direct", transport="zmq") as client:
        client.discover()
        for _ in range(7):
            client.step(n_steps=3)
        found = samples(get(f"{url}/metrics")[1])
    step = frozenset({("op", "step")})
    assert found["urlab_requests_total", step | {("outcome", "ok")}] == 7
    assert found["urlab_request_seconds_count", step] == 7
    assert found["urlab_request_seconds_bucket", step | {("le", "+Inf")}] == 7
    assert found["urlab_steps_total", frozenset()] >= 21
    assert found["urlab_sessions", frozenset({("kind", "driver")})] == 1
    assert found["urlab_rpc", frozenset({("what", "connections")})] == 1
    assert {("what", one) for one in ("waiting_requests", "running_requests", "received_bytes", "unsent_bytes")} <= {
        label for name, labels in found for label in labels if name == "urlab_rpc"
    }
    assert found["urlab_mode", frozenset({("mode", "direct")})] == 1
    assert found["process_resident_memory_bytes", frozenset()] > 1 << 20


def test_a_server_whose_level_does_not_compile_is_well_but_not_ready(serving: Any, tmp_path: Path) -> None:  # noqa: F811
    model = tmp_path / "broken.xml"
    model.write_text(BROKEN)
    server = serving("--metrics-port", "0", str(model))
    status, text = get(f"{server.ready['metrics']}/readyz")
    assert status == 503
    assert json.loads(text)["state"] == "compile_failed"
    assert "elbow" in json.loads(text)["compile_error"]
    assert get(f"{server.ready['metrics']}/healthz")[0] == 200
    pinged = run("ping", "--step-port", server.port, "--timeout", "30")
    assert pinged.returncode == 1
    assert "is not ready" in pinged.stderr
    assert "elbow" in pinged.stderr


def test_strict_ends_a_server_whose_level_does_not_compile(tmp_path: Path) -> None:
    model = tmp_path / "broken.xml"
    model.write_text(BROKEN)
    ready = tmp_path / "ready.json"
    done = run("serve", "--strict", *ANY_PORTS, "--ready-file", str(ready), "--project", str(tmp_path), str(model))
    assert done.returncode == 1
    assert "cannot be played (--strict)" in done.stderr
    assert "elbow" in done.stderr
    assert not ready.exists()


def test_a_server_that_is_to_be_edited_is_ready_without_playing(serving: Any) -> None:  # noqa: F811
    server = serving("--metrics-port", "0", "--no-play")
    assert get(f"{server.ready['metrics']}/readyz")[0] == 200
    assert run("ping", "--step-port", server.port, "--timeout", "30").returncode == 0


def test_other_paths_say_what_there_is(serving: Any) -> None:  # noqa: F811
    server = serving("--metrics-port", "0", "--no-play")
    assert get(f"{server.ready['metrics']}/") == (404, "there are: /healthz, /readyz, /metrics\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_another_user_of_the_machine_gets_no_answer(serving: Any) -> None:  # noqa: F811
    server = serving("--metrics-port", "0", "--no-play")
    host, port = server.ready["metrics"].removeprefix("http://").split(":")
    ask = (
        f"import os, socket; os.setuid({STRANGER_UID}); peer = socket.socket(); peer.connect(({host!r}, {port}))\n"
        "try:\n"
        "    peer.sendall(b'GET /metrics HTTP/1.0\\r\\n\\r\\n')\n"
        "    print(len(peer.recv(100)))\n"
        "except ConnectionError:\n"
        "    print(0)"
    )
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert asked.stdout == "0\n"
    found = samples(get(f"{server.ready['metrics']}/metrics")[1])
    assert found["urlab_refused_total", frozenset({("reason", "stranger")})] == 1
    assert f"http://{host}:{port}: user {STRANGER_UID} is refused" in server.end(signal.SIGTERM)[1]


def test_a_web_page_of_another_origin_or_under_a_foreign_name_gets_no_figure(serving: Any) -> None:  # noqa: F811
    url = serving("--metrics-port", "0", "--no-play").ready["metrics"]
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for path in ("/metrics", "/healthz", "/readyz"):
            status, text = get(urllib.request.Request(f"{url}{path}", headers=headers))
            assert (status, "urlab_" in text) == (403, False)
    assert get(f"{url}/metrics")[0] == 200


def test_a_taken_metrics_port_names_its_option(serving: Any) -> None:  # noqa: F811
    taken = serving("--metrics-port", "0", "--no-play").ready["metrics"].rpartition(":")[2]
    done = run("serve", *ANY_PORTS, "--metrics-port", taken)
    assert done.returncode == 2
    assert f"port {taken} (--metrics-port) is in use" in done.stderr


def test_text_with_quotes_and_line_ends_comes_through_the_format() -> None:
    odd = 'a "quoted" \\ name\nin two lines'
    text = metrics.exposition([metrics.gauges("things", odd, "name", {odd: 1.5, "plain": 3})])
    assert samples(text) == {("things", frozenset({("name", odd)})): 1.5, ("things", frozenset({("name", "plain")})): 3}


def test_a_counter_counts_by_its_labels() -> None:
    counter = metrics.Counter("seen_total", "Things seen.", "kind")
    counter.add("a")
    counter.add("b", amount=2)
    counter.add("a")
    assert samples(metrics.exposition([counter.figure()])) == {
        ("seen_total", frozenset({("kind", "a")})): 2,
        ("seen_total", frozenset({("kind", "b")})): 2,
    }
