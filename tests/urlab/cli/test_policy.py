"""``urlab policy run``: a trained policy on a robot."""

import json
import subprocess
import sys
from typing import Any

import pytest

from urlab.child_process import ServerProcess


def test_a_shipped_policy_walks_as_it_is_commanded(cli_here: Any) -> None:
    told = json.loads(
        cli_here("policy", "run", "quadruped_walk", "--seconds", "3", "--command", "0.5,0,0", "--json").stdout
    )
    assert told["robot"] == "quadruped"
    assert told["actions"] == 150
    assert told["moved_m"][0] > 0.8


def test_it_drives_on_a_server_that_runs() -> None:
    with ServerProcess("floor", "quadruped", "--no-web") as server:
        address, _, port = server.endpoints["step"].rpartition(":")
        command = [sys.executable, "-m", "urlab", "policy", "run", "quadruped_walk", "--address", address]
        options = ["--step-port", port, "--live", "--seconds", "1", "--json"]
        done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sim_time_s"] >= 1.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("quadruped_wlak",), "we ship panda_reach, quadruped_walk"),
        (("quadruped_walk", "--scene", "panda"), "the scene has the robots panda: none is called 'quadruped'"),
        (("quadruped_walk", "--command", "fast"), "--command is VX,VY,YAW"),
        (("quadruped_walk", "--address", "tcp://127.0.0.1", "--web"), "--scene and --web are for a scene of its own"),
    ],
)
def test_a_mistake_is_told(cli_here: Any, words: tuple[str, ...], said: str) -> None:
    done = cli_here("policy", "run", *words)
    assert done.returncode == 2
    assert said in done.stderr
