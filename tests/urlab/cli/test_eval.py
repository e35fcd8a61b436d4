"""`urlab eval`, as a person uses it: real servers, real episodes of a tiny task."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from urlab.evaluation import EvalClient

LIMIT_S = 60.0
TOKEN = "a secret of many letters"
BLOCKER = """
import json, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("fastapi", "scipy", "uvicorn", "websockets"):
            raise ImportError("no " + name)
sys.meta_path.insert(0, Blocker())
from urlab.cli.main import main
codes = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["urlab", "eval", *words]
    try:
        main()
    except SystemExit as ended:
        codes.append(ended.code)
print(json.dumps(codes))
"""
TASK = (Path(__file__).parents[1] / "evaluation" / "cube_on_plate.toml").read_text()
POLICIES = """
import pathlib, threading

class Still:
    needs_cameras = False
    def __init__(self, numbers=9):
        self.numbers = numbers
    def reset(self, observation):
        print("told to", observation["instruction"])
    def act(self, observation):
        action = {"control_type": "joint_position", "action": [0.0] * self.numbers, "is_rel": True}
        return [action] * 5
    def close(self): pass

class Fails(Still):
    def act(self, observation):
        return self.nothing_here

class Mute(Still):
    def act(self, observation):
        return None

class Leaves(Still):
    def act(self, observation):
        raise SystemExit(3)

class Tensor(Still):
    def act(self, observation):
        return {"control_type": "joint_position", "action": self}

class Clings(Still):
    def close(self):
        raise OSError("it is still in use")

class Thinks(Still):
    def act(self, observation):
        if observation["episode_id"].endswith("001"):
            pathlib.Path("thinking").touch()
            threading.Event().wait()
        return super().act(observation)
"""


def until(holds: Any) -> None:
    give_up_s = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < give_up_s, "it did not happen"
        time.sleep(0.01)


@dataclass
class Workplace:
    """A folder to work in, with a task of few steps and one of many, and some policies."""

    folder: Path
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def eval(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "urlab", "eval", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=self.folder, env=self.environment
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "urlab", "eval", *arguments]
        self.started.append(
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment)
        )
        return self.started[-1]

    @property
    def environment(self) -> dict[str, str]:
        return {key: value for key, value in os.environ.items() if key != "URLAB_EVAL_TOKEN"}

    def run_folder(self, run_id: str) -> Path:
        return self.folder / "eval-results" / "urlab" / run_id


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    folder = tmp_path_factory.mktemp("eval")
    (folder / "hurried.toml").write_text(TASK)
    (folder / "patient.toml").write_text(TASK.replace("num_steps = 12", "num_steps = 100_000"))
    (folder / "own.py").write_text(POLICIES)
    made = Workplace(folder)
    yield made
    for process in made.started:
        process.kill()
        process.communicate()


@pytest.fixture
def here(place: Workplace, cli_here: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in this process, at the workplace: it saves the start of a process."""
    monkeypatch.chdir(place.folder)
    monkeypatch.delenv("URLAB_EVAL_TOKEN", raising=False)
    return lambda *words: cli_here("eval", *words)


@pytest.fixture(scope="module")
def server(place: Workplace) -> Iterator[dict[str, Any]]:
    """A server with a token, with what its ready file says."""
    ready_file = place.folder / "ready.json"
    options = ("--port", "0", "--token", TOKEN, "--no-cameras", "--ready-file", str(ready_file), "--workers", "2")
    process = place.start("serve", *options, "--tasks", "hurried.toml", "--episodes", "2", "--run-id", "served")
    until(lambda: ready_file.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()[1]
    ready = json.loads(ready_file.read_text())
    assert ready["pid"] == process.pid
    yield ready
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 0, said
    assert not ready_file.exists()


@pytest.mark.usefixtures("cold_start")
def test_one_command_runs_a_policy_and_writes_a_report(place: Workplace, here: Any):
    done = place.eval(
        "run", "--policy", "random", "--tasks", "hurried.toml", "--episodes", "3", "--seed", "5", "--workers", "2",
        "--run-id", "first", "--report", "out.html", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["complete"] is True
    (run,) = document["runs"]
    assert [(one["task"], one["seed"], one["steps"]) for one in run["episodes"]] == [
        ("hurried", "005", 12),
        ("hurried", "006", 12),
        ("hurried", "007", 12),
    ]
    assert run["overall"]["termination_reasons"] == {"step_limit": 3}
    assert run["info"]["cameras"] is False
    assert "3/3 failed hurried" in done.stderr
    page = (place.folder / "out.html").read_text()
    assert "0 of 3 episodes solved" in page
    assert "urlab eval run --policy random --tasks hurried.toml --episodes 3 --seed 5 --workers 2" in page
    again = here(
        "run", "--policy", "random", "--tasks", "hurried.toml", "--episodes", "4", "--seed", "5", "--run-id", "first"
    )
    assert again.returncode == 0, again.stderr
    assert "4 episodes, 3 of them done before and 0 of these solved" in again.stderr
    assert "0/4 solved, 0 %" in again.stderr
    assert again.stderr.count("hurried 0") == 1
    assert "0/4" in again.stdout


def test_a_policy_of_ones_own_runs_may_print_and_is_watched(here: Any):
    done = here(
        "run", "--policy", "own:Still", "--tasks", "hurried.toml", "--episodes", "2", "--run-id", "own", "--json",
        "--min-success", "0.5", "--watch",
    )  # fmt: skip
    assert done.returncode == 1
    assert "watch: http://127.0.0.1:" in done.stderr
    assert json.loads(done.stdout)["runs"][0]["policy"] == "own:Still"
    assert done.stderr.count("told to") == 2
    assert "0.0 % of the episodes succeeded; --min-success asks for 50 %" in done.stderr


def test_what_cannot_be_watched_is_said_at_once(here: Any, monkeypatch: pytest.MonkeyPatch):
    far = here("run", "--policy", "own:Still", "--url", "localhost:1", "--watch")
    assert far.returncode == 2
    assert "--watch shows the workers of this machine" in far.stderr
    monkeypatch.setitem(sys.modules, "viser", None)
    without = here("run", "--policy", "own:Still", "--tasks", "hurried.toml", "--watch")
    assert without.returncode == 1
    assert "the browser editor is not installed: pip install 'urlab-headless[editor]'" in without.stderr


@pytest.mark.parametrize(
    ("policy", "arguments", "says"),
    [
        ("own.py:Fails", (), "the policy's act() failed at step 0 of urlab/"),
        ("own.py:Mute", (), "the policy's act() returned nothing at step 0"),
        ("own.py:Leaves", (), "SystemExit: 3"),
        ("own.py:Tensor", (), "an action cannot be sent: Encoding objects of type Tensor is unsupported"),
        ("own.py:Still", ("--policy-arg", "numbers=4"), "the server refused the policy's action: HTTP 400: worker 0"),
    ],
)
def test_a_policy_that_fails_ends_the_run_and_says_where(
    server: dict[str, Any], policy: str, arguments: tuple[str, ...], says: str, here: Any
):
    at = ("--url", server["url"], "--token", TOKEN, "--tasks", "hurried", "--episodes", "1")
    done = here("run", "--policy", policy, *at, *arguments)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_keeps_what_is_done(place: Workplace):
    process = place.start(
        "run", "--policy", "random", "--tasks", "hurried.toml,patient.toml", "--episodes", "1", "--run-id", "stopped",
        "--workers", "1", "--report", "stopped.html",
    )  # fmt: skip
    result = place.run_folder("stopped") / "hurried" / "000" / "result_info.json"
    until(lambda: result.exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 130, said
    assert "interrupted; --run-id stopped goes on from here" in said
    assert not (place.run_folder("stopped") / "patient" / "000" / "result_info.json").exists()
    assert "incomplete: 1 of 2 episodes have no result" in (place.folder / "stopped.html").read_text()


def test_a_second_ctrl_c_does_not_wait_for_the_policy_and_keeps_what_is_done(place: Workplace):
    process = place.start(
        "run", "--policy", "own:Thinks", "--tasks", "hurried.toml", "--episodes", "2", "--run-id", "insisted",
        "--report", "insisted.html",
    )  # fmt: skip
    until(lambda: (place.folder / "thinking").exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("stopping" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 130, said
    assert "interrupted; --run-id insisted goes on from here" in said
    assert "incomplete: 1 of 2 episodes have no result" in (place.folder / "insisted.html").read_text()


def test_a_run_is_not_continued_with_another_policy(here: Any):
    line = ("run", "--tasks", "hurried.toml", "--episodes", "1", "--run-id", "whose")
    assert here(*line, "--policy", "own:Still").returncode == 0
    other = here(*line, "--policy", "random")
    assert (other.returncode, other.stdout) == (2, "")
    assert "run whose has results of own:Still, and this is random: give another --run-id" in other.stderr
    argued = here(*line, "--policy", "own:Still", "--policy-arg", "numbers=9")
    assert argued.returncode == 2
    assert "has results of own:Still, and this is own:Still (numbers=9)" in argued.stderr


def test_a_policy_that_cannot_close_costs_a_warning(here: Any):
    done = here("run", "--policy", "own:Clings", "--tasks", "hurried.toml", "--episodes", "1")
    assert done.returncode == 0, done.stderr
    assert "warning: the policy's close() failed: OSError: it is still in use (" in done.stderr


def _children(pid: int) -> list[int]:
    """Its processes and theirs, but for those that libraries start for a moment, or that forks (tests/preloaded.py)."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        found = [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [one for child in found if _is_ours(child) for one in (child, *_children(child))]


def _is_ours(pid: int) -> bool:
    try:
        is_python = Path(f"/proc/{pid}/cmdline").read_bytes().startswith(sys.executable.encode())
        return is_python and Path(f"/proc/{pid}/comm").read_text().strip() != "preloaded"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGHUP, signal.SIGINT])
def test_a_run_that_ends_in_whatever_way_leaves_no_process(place: Workplace, way: signal.Signals):
    process = place.start("run", "--policy", "random", "--tasks", "patient.toml", "--episodes", "1", "--workers", "1")
    left: list[int] = []

    def server_and_worker_run() -> bool:
        left[:] = _children(process.pid)
        return len(left) >= 2  # for a moment there may be one more, which asks something for a library

    until(server_and_worker_run)
    process.send_signal(way)
    process.communicate(timeout=LIMIT_S)
    until(lambda: not any(map(_is_alive, left)))


def test_what_a_server_could_not_write_is_told_at_the_end(place: Workplace, here: Any):
    folder = place.run_folder("blocked")
    folder.mkdir(parents=True)
    (folder / "hurried").write_text("a file where a folder should be")
    done = here("run", "--policy", "random", "--tasks", "hurried.toml", "--episodes", "1", "--run-id", "blocked")
    assert re.search(r"warning: worker \d: cannot write ", done.stderr)
    assert "1/1 failed hurried 000" in done.stderr


def test_a_server_tells_what_happens(place: Workplace, here: Any):
    ready_file = place.folder / "told.json"
    options = ("--port", "0", "--no-cameras", "--ready-file", str(ready_file), "--log-level", "debug")
    process = place.start("serve", *options, "--tasks", "hurried.toml", "--episodes", "1", "--run-id", "told")
    until(lambda: ready_file.exists() or process.poll() is not None)
    url = json.loads(ready_file.read_text())["url"]
    ran = here("run", "--policy", "own:Still", "--url", url, "--results", "elsewhere")
    refused = here("submit", "nothing", "--url", url)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=LIMIT_S)[1]
    assert (ran.returncode, refused.returncode, process.returncode) == (0, 2, 0)
    for words in (
        "run told: 1 episodes of 1 tasks, 0 of them done",
        "worker 0 begins hurried/000",
        "worker 0: hurried/000 ended by step_limit after 12 steps, score 0.00",
        "/start_new_job refused with 400: there is no task 'nothing'",
        "stopped",
    ):
        assert words in said


def said_at_start(place: Workplace, *options: str) -> str:
    """What a server says until it answers, and the status that it gives to a request without a token."""
    ready_file = place.folder / "start.json"
    words = ("--port", "0", "--no-cameras", "--tasks", "hurried.toml", "--ready-file", str(ready_file))
    process = place.start("serve", *words, *options)
    until(lambda: ready_file.exists() or process.poll() is not None)
    process.send_signal(signal.SIGTERM)
    said: str = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 0, said
    return said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "open to this user only,"),
        (("--share",), "open to all users of this machine (--share),"),
        (("--token", "auto"), "open to users of this machine who have the token,"),
        (("--host", "0.0.0.0", "--insecure"), "everyone who reaches it can run its episodes"),
        (("--host", "0.0.0.0", "--insecure"), "open to EVERYONE on the network (--insecure),"),
        (("--host", "0.0.0.0", "--token", TOKEN), "is not encrypted: its token can be read on the way"),
    ],
)
def test_a_server_says_to_whom_it_is_open(place: Workplace, options: tuple[str, ...], words: str):
    said = said_at_start(place, *options, "--run-id", "open")
    assert words in said
    made = re.search(r"the token of this server: (\S{32})\n", said)
    assert (made is not None) is ("auto" in options)
    assert TOKEN not in said


@contextmanager
def serving(place: Workplace, *options: str) -> Iterator[str]:
    """A server of one episode of few steps; its address."""
    ready_file = place.folder / "serving.json"
    words = ("--port", "0", "--no-cameras", "--tasks", "hurried.toml", "--episodes", "1")
    process = place.start("serve", *words, "--ready-file", str(ready_file), *options)
    until(lambda: ready_file.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()[1]
    yield json.loads(ready_file.read_text())["url"]
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 0, said


def test_a_flag_says_that_an_action_without_is_rel_is_absolute(place: Workplace):
    with serving(place, "--run-id", "absolute", "--absolute") as url, EvalClient(url) as client:
        begin = client.reset()["0"]["obs"]["joint_position_state"].astype(float)
        sent = begin + np.array([0.05] * 7 + [0.0] * 2)
        client.step({"0": {"control_type": "joint_position", "action": sent}})
        hold = {"control_type": "joint_position", "action": [0.0] * 7 + [0.04] * 2, "is_rel": True}
        reached = client.step_chunk([{"0": hold}] * 10)["0"]["obs"]["joint_position_state"]
        assert client.step({"0": hold})["0"]["episode_result"]["termination_reason"] == "step_limit"
    rows = (place.run_folder("absolute") / "hurried" / "000" / "trace.jsonl").read_text().splitlines()
    commanded = np.array(json.loads(rows[1])["commanded_joints"])
    assert np.allclose(commanded[:7], sent[:7], atol=1e-6)
    assert np.allclose(reached[:7], sent[:7], atol=0.01)


def test_a_running_server_tells_how_far_it_is_and_takes_other_jobs(place: Workplace, server: dict[str, Any], here: Any):
    bare = server["url"].removeprefix("http://")
    at = ("--url", bare, "--token", TOKEN)
    first = here("submit", "hurried", "--episodes", "2", "--run-id", "served", "--force", *at, "--json")
    assert json.loads(first.stdout)["total_episodes"] == 2
    ran = here("run", "--policy", "own:Still", *at, "--results", "elsewhere")
    assert ran.returncode == 0, ran.stderr
    assert (place.folder / "elsewhere/urlab/served/hurried/001/result.json").is_file()
    assert "0/2" in ran.stdout
    told = here("status", *at).stdout
    assert "complete" in told
    assert "2 of 2 done" in told
    submitted = here("submit", "hurried", "--episodes", "1", "--seed", "9", "--run-id", "other", *at, "--json")
    assert submitted.returncode == 0, submitted.stderr
    status = json.loads(submitted.stdout)
    assert (status["run_id"], status["total_episodes"], status["completed_episodes"]) == ("other", 1, 0)


def test_a_job_that_somebody_works_on_is_not_ended_unasked(server: dict[str, Any], here: Any):
    at = ("--url", server["url"], "--token", TOKEN)
    here("submit", "hurried", "--episodes", "1", "--run-id", "theirs", "--force", *at)
    with EvalClient(server["url"], token=TOKEN) as client:
        assert client.reset()["0"]["actions_without_is_rel"] == "relative", "without --absolute"
        for words in (("submit", "hurried"), ("run", "--policy", "own:Still", "--tasks", "hurried")):
            refused = here(*words, *at)
            assert refused.returncode != 0
            assert "run theirs is running with 1 workers, 0 of 1 episodes done" in refused.stderr
            assert "--force" in refused.stderr
        assert client.status()["run_id"] == "theirs"


def test_what_a_server_refuses_is_told(server: dict[str, Any], here: Any):
    at = ("--url", server["url"])
    refused = here("status", *at)
    assert refused.returncode == 1
    assert "wants a token: give it with --token" in refused.stderr
    unknown = here("submit", "nothing", *at, "--token", TOKEN)
    assert unknown.returncode == 2
    assert "there is no task 'nothing'; tasks: " in unknown.stderr


def test_somebody_elses_server_is_told_apart(here: Any):
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.handle_request).start()
        done = here("status", "--url", f"127.0.0.1:{other.server_port}")
    assert done.returncode == 1
    assert "is no evaluation server: it answers /status with HTTP 501" in done.stderr


def test_a_server_has_the_run_that_it_has(server: dict[str, Any], here: Any):
    done = here("run", "--policy", "own:Still", "--url", server["url"], "--token", TOKEN, "--run-id", "dreamt")
    assert done.returncode == 2
    assert "not 'dreamt': with --tasks it begins another one" in done.stderr


def test_runs_are_reported_by_name_and_compared(place: Workplace, here: Any):
    done = here("report", "first", "own", "-o", "both.html")
    assert done.returncode == 0, done.stderr
    assert "first and own have no episode in common" in done.stdout
    assert "wrote both.html" in done.stderr
    assert "Comparison" in (place.folder / "both.html").read_text()
    numbers = here("report", "eval-results/urlab/first", "--json")
    assert json.loads(numbers.stdout)["runs"][0]["overall"]["episodes"] == 4
    assert not (place.folder / "first.html").exists()


def test_tasks_are_listed(here: Any):
    rows = json.loads(here("tasks", "--json").stdout)
    assert len(rows) >= 12
    assert {"franka_panda", "franka_robotiq", "aloha"} == {row["embodiment"] for row in rows}
    assert "panda_cube_on_plate" in here("tasks").stdout


@pytest.mark.parametrize("command", [("run", "--policy", "own:Still", "--cameras"), ("serve", "--port", "0")])
def test_a_machine_that_cannot_draw_is_told_before_the_first_episode(place: Workplace, command: tuple[str, ...]):
    done = subprocess.run(
        [sys.executable, "-m", "urlab", "eval", *command],
        capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=place.folder,
        env={**place.environment, "MUJOCO_GL": "off"},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: nothing can be drawn, as MUJOCO_GL=off switches drawing off")
    assert "run with --no-cameras" in done.stderr


def test_a_taken_port_is_named(place: Workplace):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = place.eval("serve", "--port", port, "--tasks", "hurried.toml", "--run-id", "unborn", "--no-cameras")
    assert not place.run_folder("unborn").exists()
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("run", "--policy", "banana"), 2, "there is no policy 'banana'"),
        (("run", "--policy", "own:Nobody"), 2, "own has no class 'Nobody'; it has: Clings, Fails, Leaves, Mute, S"),
        (("run", "--policy", "own:Still", "--policy-arg", "x"), 2, "--policy-arg 'x' is not KEY=VALUE"),
        (("run", "--policy", "own:Still", "--policy-arg", "x=1"), 2, "unexpected keyword argument 'x'"),
        (("run", "--policy", "random", "--tasks", "panda_cube_in_bowll"), 2, "did you mean 'panda_cube_in_bowl'?"),
        (("run", "--policy", "random", "--tasks", "hurried"), 2, "no task 'hurried', but a file hurried.toml"),
        (("run", "--policy", "random", "--tasks", "gone.toml"), 2, "gone.toml: cannot be read: No such file"),
        (("run", "--policy", "random", "--tasks", ","), 2, "names no task; there are: all, aloha"),
        (("run", "--policy", "random", "--report", "."), 2, "--report . is a folder; name a file in it"),
        (("run", "--policy", "random", "--results", "own.py"), 2, "own.py is a file, and a folder is needed"),
        (("run", "--policy", "random", "--url", "127.0.0.1:9", "--videos", "all"), 2, "with --url the server chooses"),
        (("run", "--policy", "random", "--run-id", "../x"), 2, "run_id '../x' cannot name a folder"),
        (("run", "--policy", "random", "--videos", "all", "--no-cameras"), 2, "--no-cameras forbids them"),
        (("run", "--policy", "random", "--url", "127.0.0.1:9"), 1, "`urlab eval serve` starts one"),
        (("run", "--policy", "ws://127.0.0.1:9", "--policy-arg", "connect_timeout_s=0.1"), 1, "no policy server at"),
        (
            ("serve", "--tasks", "nothing"),
            2,
            "no task 'nothing', nor is it a .toml file; allowed: all, aloha, ",
        ),
        (("serve", "--draw", "obs_cam"), 2, "no robot has a camera 'obs_cam'; there are: left_camera, obs_camera, "),
        (("serve", "--draw", "obs_camera=9"), 2, "is not CAMERA or CAMERA=WIDTHxHEIGHT with 16 to 4096 pixels"),
        (("serve", "--host", "0.0.0.0"), 2, "give it a --token, or say --insecure"),
        (("serve", "--token", "fifteen letters"), 2, "needs 16 or more. '--token auto' makes one and prints it"),
        (("serve", "--tls-cert", "own.py"), 2, "--tls-cert and --tls-key go together"),
        (("serve", "--tls-cert", "own.py", "--tls-key", "gone"), 2, "--tls-key gone: there is no such file"),
        (("serve", "--tls-cert", "own.py", "--tls-key", "own.py"), 2, "own.py are no certificate and its key in PEM"),
        (("serve", "--ready-file", "."), 2, "--ready-file . is a folder; name a file in it"),
        (("status", "--url", "127.0.0.1:9"), 1, "Is there a server at http://127.0.0.1:9?"),
        (("status", "--url", "127.0.0.1:port"), 2, "'http://127.0.0.1:port' is not the address of a server"),
        (("report", "nobody"), 2, "there is no run 'nobody'; runs in eval-results/urlab are: "),
        (("report", "nobody", "--results", "else"), 2, "are: none (--results names another folder)"),
        (("report", "eval-results"), 2, "is not one run; runs below it are: "),
    ],
)
def test_typical_mistakes_are_told_in_a_line(arguments: tuple[str, ...], code: int, says: str, here: Any):
    done = here(*arguments)
    assert says in done.stderr
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_missing_extra_is_answered_with_the_line_that_installs_it(place: Workplace):
    commands = (
        ("run", "--policy", "random"),
        ("run", "--url", "x", "--policy", "oracle"),
        ("run", "--url", "x", "--policy", "ws://127.0.0.1:9"),
        ("serve",),
        ("tasks",),
    )
    done = subprocess.run(
        [sys.executable, "-c", BLOCKER, json.dumps(commands)],
        capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=place.folder,
    )  # fmt: skip
    codes = json.loads(done.stdout)
    assert len(codes) == len(commands)
    assert set(codes) <= {1, 2}
    assert done.stderr.count("pip install 'urlab-headless[eval]'") == len(commands)
    assert "Traceback" not in done.stderr
