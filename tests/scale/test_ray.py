"""On a local Ray cluster: the same results however many actors there are, and whichever of them die.

Run by `make test-ray`: a cluster takes long to start.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from urlab import ray_actors
from urlab.envs.rollout import POLICIES, RolloutJob, roll_out
from urlab.errors import ActorsLost

pytestmark = pytest.mark.ray
JOB = RolloutJob("PandaReach-v0", POLICIES["baseline"], episodes=8, seed=1, options=(("randomize", False),))
TASK = "panda_cube_on_plate"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    """With more CPUs than this machine may have, so that there can be four actors; its address."""
    ray = pytest.importorskip("ray")  # not before: it changes the environment of every process that collects tests
    started = ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield started.address_info["gcs_address"]
    ray.shutdown()


def rows(job: RolloutJob, actors: int | None = None) -> list[Any]:
    return sorted(roll_out(job, actors=actors), key=lambda row: row.episode)


@pytest.mark.parametrize("policy", ["baseline", "random"])
def test_one_two_and_four_actors_give_what_one_process_gives(policy: str) -> None:
    job = replace(JOB, make_policy=POLICIES[policy])
    alone = rows(job)
    assert len({row.digest for row in alone}) == JOB.episodes
    for actors in (1, 2, 4):
        assert rows(job, actors) == alone


class Deadly:
    """Acts like the baseline; a process that finds a file dies, and the file with it."""

    def __init__(self, env: Any, file: Path) -> None:
        self._policy, self._file, self._steps = POLICIES["baseline"](env), file, 0

    def reset(self, seed: int) -> None:
        self._policy.reset(seed)
        self._steps = 0

    def act(self, observation: Any) -> Any:
        self._steps += 1
        if self._steps == 5 and self._file.exists():
            if self._file.read_text() == "once":
                self._file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return self._policy.act(observation)


def test_a_killed_actor_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "die").write_text("once")
    ray_actors.ship_code(__name__)
    job = replace(JOB, make_policy=lambda env: Deadly(env, tmp_path / "die"))
    assert rows(job, 2) == rows(JOB)
    assert not (tmp_path / "die").exists()


def test_work_that_kills_every_actor_ends_with_words(tmp_path: Path) -> None:
    (tmp_path / "die").write_text("always")
    ray_actors.ship_code(__name__)
    job = replace(JOB, make_policy=lambda env: Deadly(env, tmp_path / "die"), episodes=1)
    with pytest.raises(ActorsLost, match="3 actors"):
        rows(job, 1)


def test_what_a_policy_raises_on_an_actor_is_raised_here() -> None:
    def broken(env: Any) -> Any:
        raise KeyError("no such checkpoint")

    with pytest.raises(Exception, match="no such checkpoint"):
        rows(replace(JOB, make_policy=broken), 2)


def run(*words: str, cwd: Path) -> Any:
    command = [sys.executable, "-m", "urlab", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False)


def test_the_command_ships_a_policy_of_a_file_to_the_cluster(tmp_path: Path, cluster: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "hold.py").write_text(
        "import numpy as np\n"
        "class Hold:\n"
        "    def __init__(self, env): self.zero = np.zeros(env.action_space.shape, np.float32)\n"
        "    def reset(self, seed): pass\n"
        "    def act(self, observation): return self.zero\n"
    )
    words = ["rollout", "urlab/PandaReach-v0", "--policy", "mine/hold.py:Hold", "--episodes", "3", "--json"]
    here = run(*words, "--out", "here.jsonl", cwd=tmp_path)
    there = run(*words, "--out", "there.jsonl", "--ray", cluster, "--actors", "2", cwd=tmp_path)
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    assert (tmp_path / "here.jsonl").read_text() == (tmp_path / "there.jsonl").read_text()
    assert json.loads(there.stdout)["episodes"] == 3
    many = run(*words, "--ray", cluster, "--actors", "99", cwd=tmp_path)
    assert (many.returncode, "the cluster has 4 CPUs" in many.stderr) == (2, True)


def test_without_a_cluster_it_says_how_to_start_one(tmp_path: Path) -> None:
    done = run("rollout", "PandaReach-v0", "--ray", "127.0.0.1:9", cwd=tmp_path)
    assert done.returncode == 2
    assert "ray start --head" in done.stderr


def scores(folder: Path) -> dict[str, Any]:
    """What decides a score, of every episode of a run."""
    found = {}
    for file in sorted(folder.rglob("result_info.json")):
        known = json.loads(file.read_text())
        found[str(file.parent.relative_to(folder))] = {name: known[name] for name in ("score", "success_rate", "steps")}
    return found


def test_evaluation_on_actors_gives_the_scores_of_processes(tmp_path: Path, cluster: str) -> None:
    words = ["eval", "run", "--policy", "oracle", "--tasks", TASK, "--episodes", "2", "--workers", "2", "--json"]
    here = run(*words, "--results", "here", "--run-id", "a", cwd=tmp_path)
    there = run(*words, "--results", "there", "--run-id", "a", "--ray", cluster, cwd=tmp_path)
    assert (here.returncode, there.returncode) == (0, 0), here.stderr + there.stderr
    expected = scores(tmp_path / "here" / "urlab" / "a")
    assert len(expected) == 2
    assert scores(tmp_path / "there" / "urlab" / "a") == expected
