"""`urlab ping`."""

import json
import socket
from importlib import metadata
from typing import Any

import pytest

from urlab_client import URLabClient


@pytest.mark.usefixtures("cold_start")
def test_it_tells_what_the_server_is_doing(cli: Any, demo_server: Any) -> None:
    done = cli("ping", "--step-port", demo_server.port, "--timeout", "30", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["endpoint"] == demo_server.ready["step"]
    assert report["urlab_version"] == f"urlab/{metadata.version('urlab-headless')}"
    assert (report["state"], report["mode"]) == ("ready", "live")
    assert report["robots"]["panda"] == {"joints": 9, "actuators": 8, "sensors": 19, "cameras": 2}
    assert {"box", "table"} <= set(report["entities"])
    assert report["sim_time_s"] > 0
    assert 0 < report["round_trip_ms"]["p50"] <= report["round_trip_ms"]["max"]


def test_people_get_a_table(cli: Any, demo_server: Any) -> None:
    done = cli("ping", "--step-port", demo_server.port, "--timeout", "30")
    assert (done.returncode, done.stderr) == (0, "")
    assert "quadruped  13 joints, 12 actuators, 31 sensors, 1 camera" in done.stdout
    assert "answers in" in done.stdout


def test_it_does_not_take_the_session_of_whoever_drives(cli: Any, demo_server: Any) -> None:
    with URLabClient("tcp://127.0.0.1", step_port=int(demo_server.port), step_mode="direct") as driver:
        driver.discover()
        report = json.loads(cli("ping", "--step-port", demo_server.port, "--timeout", "30", "--json").stdout)
        driver.step()
    assert report["mode"] == "direct"


def test_nobody_there_is_exit_code_1_with_advice(cli: Any) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        done = cli("ping", "--step-port", str(held.getsockname()[1]), "--timeout", "0.1", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is `urlab serve` running" in done.stderr


def test_an_address_with_a_port_is_wrong_use_and_says_how_to_write_it(cli: Any) -> None:
    done = cli("ping", "--address", "tcp://127.0.0.1:5560")
    assert done.returncode == 2
    assert "use --address tcp://127.0.0.1 --step-port 5560" in done.stderr
