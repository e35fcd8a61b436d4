"""``urlab export``: saved recordings in the formats of other tools."""

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import urlab
from urlab.evaluation.encoding import BodyFormat
from urlab.evaluation.simulation.actions import Action, ControlType
from urlab.evaluation.tasks.task import find_task
from urlab.evaluation.workers.messages import Begin, GiveUp, Step, WorkerFrame, WorkerSettings
from urlab.evaluation.workers.worker import Worker


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a recording of the demo level, ``wave``, of a tenth of a second."""
    folder = tmp_path_factory.mktemp("project")
    with urlab.launch("demo", project=folder) as client:
        client.recording.start("wave")
        client.step(50)
        client.recording.stop()
        client.recording.save()
    return folder


@pytest.fixture
def export(cli_here: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Any:
        return cli_here("export", *arguments, "--project", str(project))

    return call


def test_recordings_of_the_project_become_one_table(export: Any, tmp_path: Path) -> None:
    done = export("wave", "wave", "--to", "parquet", "--out", "wave.parquet", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told == {"file": str(tmp_path / "wave.parquet"), "format": "parquet", "frames": 100, "warnings": []}
    table = pq.read_table(tmp_path / "wave.parquet")
    assert table["episode"].to_pylist() == [0] * 50 + [1] * 50


def test_a_learner_gets_samples_at_the_rate_that_it_asks_for(export: Any, tmp_path: Path) -> None:
    done = export("wave", "--to", "lerobot", "--out", "set", "--fps", "50", "--camera", "none", "--task", "wave")
    assert (done.returncode, done.stdout) == (0, f"wrote {tmp_path / 'set'}: 5 frames as lerobot\n")
    info = json.loads((tmp_path / "set/meta/info.json").read_bytes())
    assert (info["fps"], info["total_frames"], info["video_path"]) == (50, 4, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("wave", "wave", "--to", "mcap", "--out", "x.mcap"), "format mcap holds one recording"),
        (("wave", "--to", "parquet", "--out", "x.parquet", "--camera", "overhead"), "format parquet has no pictures"),
        (("wave", "--to", "hdf5", "--out", "x.h5"), "ends in .hdf5"),
        (("nothing", "--to", "hdf5", "--out", "x.hdf5"), "there is no recording 'nothing'"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_written(export: Any, tmp_path: Path, arguments: Any, words: str) -> None:
    done = export(*arguments)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one episode of a shipped task, given up after two steps."""
    folder = tmp_path_factory.mktemp("runs") / "monday"
    worker = Worker(WorkerSettings(cameras=False, privileged=False, videos=False))
    begin = Begin(3, 50, "episode", str(folder / "panda_stack_cubes/003"), BodyFormat.PICKLE)
    worker.answer(WorkerFrame(begin, pickle.dumps(find_task("panda_stack_cubes"))))
    action = Action(ControlType.JOINT_POSITION, is_rel=True, joints=(0.0,) * 9)
    worker.answer(WorkerFrame(Step((action, action), BodyFormat.PICKLE, 50)))
    worker.answer(WorkerFrame(GiveUp("policy_failed", "", BodyFormat.PICKLE)))
    worker.close()
    return folder


def test_the_folder_of_a_run_becomes_a_dataset(cli_here: Any, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    done = cli_here("export", str(run), "--to", "lerobot", "--out", str(out), "--camera", "none", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told == {"file": str(out), "format": "lerobot", "episodes": 1, "frames": 3, "warnings": []}
    data = pq.read_table(out / "data/chunk-000/file-000.parquet")
    assert (data["next.done"].to_pylist(), data["next.success"].to_pylist()) == ([False, True], [False, False])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("RUN", "--fps", "10"), "--fps is for recordings"),
        (("RUN", "RUN"), "a run is exported alone"),
        (("RUN", "--successful"), "run monday has no successful episode"),
        ((".",), "holds no results: a run has"),
        (("wave", "--only", "panda_stack_cubes"), "--only is for evaluation runs, and wave is no folder"),
    ],
)
def test_what_a_run_cannot_be_is_told(cli_here: Any, run: Path, tmp_path: Path, arguments: Any, words: str) -> None:
    named = [{"RUN": str(run), ".": str(tmp_path)}.get(one, one) for one in arguments]
    done = cli_here("export", *named, "--to", "parquet", "--out", str(tmp_path / "x.parquet"))
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []
