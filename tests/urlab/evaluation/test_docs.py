"""The pages about evaluation: their commands are understood, their programs run, their lists are complete."""

import contextlib
import io
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from typer.main import get_command

from urlab.cli.eval.options import known_tasks
from urlab.cli.main import app, main
from urlab.evaluation.embodiments import EMBODIMENTS, Embodiment
from urlab.evaluation.runs.client import EvalClient
from urlab.evaluation.tasks.task import TaskError, load_task, parse_task

ROOT = Path(__file__).parents[3]
PAGES = {name: (ROOT / "docs" / name).read_text() for name in ("evaluation.md", "evaluation-tasks.md")}
PAGE, TASKS_PAGE = PAGES.values()
HELP = "\n".join(path.read_text() for path in sorted((ROOT / "src/urlab/cli/eval").glob("*.py")))
LIMIT_S = 60.0
TASK = (Path(__file__).parent / "cube_on_plate.toml").read_text()
SHELF = """
embodiment = "franka_panda"
title = "Shelf"
category = "test"
num_steps = 100
instructions = ["Put something into the {cabinet}."]
GOAL
[objects.cabinet]
shape = "drawer_cabinet"
size = [0.2, 0.24, 0.14]
travel = 0.15
fixed = true
x = [0.2, 0.3]
y = [0.0, 0.0]
[objects.cube]
shape = "box"
size = [0.04, 0.04, 0.04]
x = [-0.2, 0.0]
y = [-0.2, 0.0]
[objects.ball]
shape = "sphere"
radius = 0.02
x = [-0.2, 0.0]
y = [0.1, 0.3]
"""


def blocks(page: str, language: str = "") -> list[str]:
    """The code in fences of that language, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [code for fence, code in found if fence == language]


def block_with(page: str, language: str, words: str) -> str:
    (found,) = (block for block in blocks(page, language) if words in block)
    return found


def commands(page: str) -> list[list[str]]:
    """The lines of a page that begin with `urlab eval`, as words without `urlab` and comments."""
    lines = [line for block in blocks(page) for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("urlab eval ")]


def command_with(page: str, *words: str) -> list[str]:
    (found,) = (command for command in commands(page) if set(words) <= set(command))
    return found


def parsed(words: list[str]) -> dict[str, Any]:
    """The options as the command line understands them; its own error if it does not."""
    command: Any = get_command(app)
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    return dict(command.make_context(command.name, words).params)


def table(page: str, heading: str) -> dict[str, str]:
    """First cell -> the rest of the row, of the table whose first heading is that."""
    lines = page[page.index(f"\n| {heading} |") :].splitlines()[3:]
    rows = (row.strip("| ").partition(" | ") for row in lines[: lines.index("")])
    return {first.strip(): rest for first, _, rest in rows}


def ticked(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text.replace(r"\|", "|"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it: the page's own policy and task, and a task that ends soon."""
    made = tmp_path_factory.mktemp("reader")
    (made / "my_policy.py").write_text(block_with(PAGE, "python", "# my_policy.py"))
    (made / "coin_in_cup.toml").write_text(block_with(TASKS_PAGE, "toml", "# coin_in_cup.toml"))
    (made / "hurried.toml").write_text(TASK)
    return made


class Done(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def urlab(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run a command in the reader's folder, in this process, which saves the start of one."""
    monkeypatch.chdir(folder)

    def call(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["urlab", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Done(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The page's own `urlab eval serve`, with a task that ends soon, on a free port."""
    ready, words = folder / "ready.json", command_with(PAGE, "serve")
    ours = ["--tasks", "hurried.toml", "--episodes", "2", "--port", "0", "--ready-file", "ready.json", "--privileged"]
    server = subprocess.Popen([sys.executable, "-m", "urlab", *words, *ours, "--run-id", "first"], cwd=folder)
    try:
        give_up_s = time.monotonic() + LIMIT_S
        while not ready.exists():
            assert server.poll() is None, "no server"
            assert time.monotonic() < give_up_s, "no server in time"
            time.sleep(0.01)
        yield str(json.loads(ready.read_text())["url"])
    finally:
        server.terminate()
        server.wait(LIMIT_S)


def helped() -> list[list[str]]:
    """The examples in the help of the commands."""
    examples = re.findall(r'Example: .*?"', HELP, re.DOTALL)
    lines = [line for one in examples for line in re.findall(r"urlab eval [^\[|\"]+", one)]
    return [shlex.split(line)[1:] for line in lines]


@pytest.mark.parametrize(
    "words", [*(words for page in PAGES.values() for words in commands(page)), *helped()], ids=" ".join
)
def test_every_command_of_the_pages_and_the_help_is_understood(
    words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder)
    options = parsed(words)
    named = options.get("tasks") or "all"
    known_tasks(named if isinstance(named, str) else ",".join(named))


def test_the_table_has_every_option_of_a_run_and_no_other():
    told = {word.split()[0] for cell in table(PAGE, "option") for part in ticked(cell) for word in part.split(" / ")}
    run = get_command(app).commands["eval"].commands["run"]  # type: ignore[attr-defined]
    there = {word for option in run.params for word in (*option.opts, *option.secondary_opts)}
    assert told == there - {"--help", "-h"}


def test_the_policy_of_the_page_runs_by_its_command_and_leaves_the_files_that_it_lists(
    folder: Path, urlab: Callable[..., Done]
):
    ours = ("--tasks", "hurried.toml", "--episodes", "1", "--run-id", "mine")
    done = urlab(*command_with(PAGE, "my_policy:MyPolicy"), *ours)
    assert done.returncode == 0, done.stderr
    assert "1/1 failed hurried 000 score 0.00 12 steps step_limit" in done.stderr
    assert "0 of 1 episodes solved by my_policy:MyPolicy" in (folder / "mine.html").read_text()
    run = folder / "eval-results/urlab/mine"
    for path in _listed_files():
        assert (run / path).is_file(), f"{path} is promised"


def _listed_files() -> list[str]:
    """The files of the page's tree, of the one episode with its three cameras."""
    tree = block_with(PAGE, "", "eval-results/urlab/<run_id>/").splitlines()[1:]
    names = {line.split()[0]: line for line in tree if not line.strip().endswith("/")}
    top = [name for name, line in names.items() if not line.startswith("    ")]
    deep = [name for name in names if name not in top]
    films = [name.replace("<camera>", camera.name) for name in deep for camera in EMBODIMENTS["franka_panda"].cameras]
    return [*top, *(f"hurried/000/{name}" for name in films)]


def test_the_client_of_the_page_runs_until_nothing_is_left(url: str, folder: Path, urlab: Callable[..., Done]):
    program = block_with(PAGE, "python", "EvalClient")
    assert program.count("127.0.0.1:8087") == 1
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(program.replace("127.0.0.1:8087", url), "evaluation.md", "exec"), {})
    assert said.getvalue().count("'termination_reason': 'step_limit'") == 2
    told = urlab(*command_with(PAGE, "status"), "--url", url)
    assert "2 of 2 done" in told.stdout, told.stderr
    words = ["first" if word == "monday" else word for word in command_with(PAGE, "report", "-o")]
    assert urlab(*words).returncode == 0
    assert (folder / "monday.html").is_file()


def test_the_job_that_the_page_submits_is_begun(url: str, urlab: Callable[..., Done]):
    words = command_with(PAGE, "submit")
    done = urlab(*words, "--url", url, "--json")
    assert done.returncode == 0, done.stderr
    tasks = json.loads(urlab("eval", "tasks", "--json").stdout)
    aloha = [task for task in tasks if task["embodiment"] == "aloha"]
    status = json.loads(done.stdout)
    assert (status["run_id"], status["total_episodes"]) == ("monday", 10 * len(aloha))


def test_an_observation_has_the_keys_of_the_page_and_no_other(url: str):
    with EvalClient(url) as client:
        client.submit(["hurried"], run_id="looked at", episodes=1)
        seen = client.reset()["0"]["obs"]
    cameras = seen["camera_data"]
    told = {
        key.replace("<camera>", camera) for cell in table(PAGE, "key") for key in ticked(cell) for camera in cameras
    }
    assert told == set(seen)
    row = table(PAGE, "key")["`camera_data`"]
    for one in cameras.values():
        assert set(ticked(row)) == set(one)
        assert (one["rgb"].dtype, one["depth"].dtype) == ("uint8", "float32")
        shapes = {"intrinsics_matrix": (3, 3), "p": (3,), "q": (4,)}
        assert {key: one[key].shape for key in shapes} == shapes


@pytest.mark.parametrize("robot", EMBODIMENTS.values(), ids=EMBODIMENTS)
def test_the_page_tells_what_a_robot_takes(robot: Embodiment):
    row, arm = table(PAGE, "robot")[f"`{robot.name}`"], robot.arms[0]
    assert f"{len(arm.joints)} + {len(arm.gripper.joints)}" in row
    for numbers in (arm.gripper.open, arm.gripper.closed):
        assert f"{numbers[0]:g}" in row
    assert str(robot.action_length) in table(PAGE, "key")["`joint_position_state`"]
    for camera in robot.cameras:
        assert f"`{camera.name}`" in PAGE.partition("## Clients over HTTP")[0]


def test_the_oracle_solves_the_task_of_the_page_by_its_command(folder: Path, urlab: Callable[..., Done]):
    words = command_with(TASKS_PAGE, "oracle", "./coin_in_cup.toml")
    done = urlab(*words, "--episodes", "1", "--videos", "none")
    assert done.returncode == 0, done.stderr
    assert "1/1 solved coin_in_cup 000" in done.stderr
    assert "1 of 1 episodes solved by oracle" in (folder / "out.html").read_text()


def test_the_program_of_the_page_about_tasks_runs(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(block_with(TASKS_PAGE, "python", "GoalTracker"), "evaluation-tasks.md", "exec"), names)
    assert set(names["layout"].poses) == {"coin", "cup"}
    assert names["tracker"].score == 0.0


def test_the_goal_of_the_page_about_tasks_can_be_read():
    goal = block_with(TASKS_PAGE, "toml", "first open it")
    task = parse_task(SHELF.replace("GOAL", goal), name="shelf", source="the page")
    assert [len(stage.alternatives) for stage in task.goal.stages] == [1, 2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('shape = "cylinder"', 'shape = "cilinder"'),
        ("height = 0.02\n", "height = 0\n"),
        ('do = "pick"\nobject = "coin"\nany_yaw = true\n', 'do = "wait"\nsteps = 5\n'),
    ],
    ids=["shape", "height", "oracle"],
)
def test_mistakes_are_told_as_the_page_says(before: str, after: str, tmp_path: Path):
    told = block_with(TASKS_PAGE, "", "coin_in_cup.toml:22: objects").splitlines()
    text = block_with(TASKS_PAGE, "toml", "# coin_in_cup.toml")
    assert text.count(before) == 1
    (tmp_path / "coin_in_cup.toml").write_text(text.replace(before, after))
    with pytest.raises(TaskError) as refused:
        load_task(tmp_path / "coin_in_cup.toml")
    message = refused.value.message.removeprefix(f"{tmp_path}/")
    assert any(re.fullmatch(re.escape(line).replace(r"\.\.\.", ".*"), message) for line in told), message
