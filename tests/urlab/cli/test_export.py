"""``urlab export``: saved recordings in the formats of other tools."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import urlab


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
