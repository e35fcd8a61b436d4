"""`urlab ops`."""

import json
from typing import Any

import pytest

from urlab.ops import HANDLERS
from urlab_wire.catalogue import CATALOGUE, PRE_SESSION

NAMES = {name for name in CATALOGUE if name not in PRE_SESSION}


def test_the_live_catalogue_says_which_ops_are_served(cli: Any, demo_server: Any) -> None:
    done = cli("ops", "--step-port", demo_server.port, "--timeout", "30", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["endpoint"] == demo_server.ready["step"]
    assert {one["name"]: one["served"] for one in report["ops"]} == {name: name in HANDLERS for name in NAMES}


@pytest.mark.usefixtures("cold_start")
def test_the_built_in_catalogue_is_the_same_and_needs_no_server(cli: Any, demo_server: Any) -> None:
    offline = json.loads(cli("ops", "--offline", "--json").stdout)
    live = json.loads(cli("ops", "--step-port", demo_server.port, "--timeout", "30", "--json").stdout)
    assert offline == {**live, "endpoint": None}


def test_people_get_a_table_grouped_by_namespace(cli: Any) -> None:
    done = cli("ops", "--offline")
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in NAMES)
    assert all(f"│ {one.namespace} " in done.stdout for one in CATALOGUE.values() if one.namespace)


def test_nobody_there_is_exit_code_1(cli: Any) -> None:
    done = cli("ops", "--address", "ipc:///nowhere/socket", "--timeout", "0.1")
    assert done.returncode == 1
    assert "no server listens" in done.stderr
