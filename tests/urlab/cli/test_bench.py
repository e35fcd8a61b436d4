"""``urlab bench``: what it tells. How long things take is not judged."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

PERCENTILES = {"count", "p50_us", "p99_us", "per_second"}


@pytest.mark.usefixtures("cold_start")
def test_the_document_has_every_transport_beside_a_plain_loop_and_live_pacing_and_cameras(
    cli_here: Callable[..., Any],
) -> None:
    done = cli_here("bench", "--seconds", "0.2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found.keys() == {"model", "load_before", "start_to_ready_s", "steps", "live", "cameras"}
    assert found["steps"].keys() == {"plain", "in_process", "shm", "zmq"}
    assert all(one.keys() == PERCENTILES and one["count"] > 0 for one in found["steps"].values())
    assert found["live"].keys() == {"watched_s", "real_time_factor", "late_p50_ms", "late_p99_ms", "late_max_ms"}
    assert found["live"]["real_time_factor"] > 0
    drawn = {size: one.keys() for size, one in found["cameras"]["sizes"].items()}
    assert drawn == {"224x224": PERCENTILES, "640x480": PERCENTILES} or found["cameras"]["problem"]


def test_the_table_names_every_transport(cli_here: Callable[..., Any]) -> None:
    done = cli_here("bench", "--seconds", "0.2")
    assert done.returncode == 0
    words = ("plain mj_step loop", "in process", "shared memory", "ZeroMQ", "real-time factor", "start")
    assert [word for word in words if word not in done.stdout] == []


@pytest.mark.parametrize("package", ["psutil", "matplotlib"])
def test_it_needs_no_extra(package: str) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; import urlab.cli.bench"
    subprocess.run([sys.executable, "-c", script], check=True)
