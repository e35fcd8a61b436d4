"""``urlab replay``: films of saved recordings."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import urlab
from urlab.video import ffmpeg

SMALL = ("--size", "64x48", "--fps", "10")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a recording of the demo level, ``wave``, of half a second."""
    folder = tmp_path_factory.mktemp("project")
    with urlab.launch("demo", project=folder) as client:
        client.recording.start("wave")
        client.articulations["panda"].ctrl_array[0] = 1.0
        client.step(250)
        client.recording.stop()
        client.recording.save()
    return folder


@pytest.fixture
def replay(cli_here: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Any:
        return cli_here("replay", *arguments, "--project", str(project))

    return call


def frames(path: Path, width: int = 64, height: int = 48) -> Any:
    command = [ffmpeg(), "-v", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3).astype(int)


def test_a_film_is_made_of_a_recording_of_the_project(replay: Any, tmp_path: Path) -> None:
    done = replay("wave", "--out", "film.mp4", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"wrote {tmp_path / 'film.mp4'}: 5 frames, 0.5 s at 10 fps\n"
    seen = frames(tmp_path / "film.mp4")
    assert len(seen) == 5
    assert np.abs(seen[0] - seen[-1]).max() > 50, "the arm has moved"
    assert np.ptp(seen[0]) > 100, "there is something to see"


def test_a_film_is_made_of_a_file_through_a_camera_in_the_level_that_is_named(
    replay: Any, project: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "moved.json"
    recording.write_bytes((project / "Saved/URLab/Replays/wave.json").read_bytes())
    options = ("--camera", "panda/overhead", "--level", "demo", "--from", "0.1", "--to", "0.3", "--json", *SMALL)
    done = replay("moved.json", "--out", str(tmp_path / "new" / "film.mp4"), *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "file": str(tmp_path / "new" / "film.mp4"), "frames": 3, "fps": 10.0, "seconds": 0.3, "warnings": [],
    }  # fmt: skip
    assert len(frames(tmp_path / "new" / "film.mp4")) == 3


def test_joints_that_the_level_lacks_are_told(replay: Any) -> None:
    done = replay("wave", "--out", "film.mp4", "--level", "panda", *SMALL)
    assert done.returncode == 0
    assert "joints are not in this scene" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing", "--out", "film.mp4"), "there is no recording 'nothing', neither here nor in"),
        (("wave", "--out", "film.mp4", "--size", "large"), "--size large is no size: use WIDTHxHEIGHT, as in 640x480"),
        (("wave", "--out", "film.mp4", "--size", "8x8"), "width must be between 16 and 4096 pixels, but is 8"),
        (("wave", "--out", "film.mp4", "--camera", "ear"), "there is no camera 'ear'; there are: panda/overhead"),
        (("wave", "--out", "film.mp4", "--level", "nowhere"), "there is no level or model 'nowhere'"),
        (("wave", "--out", "film.mp4", "--level", "table"), "have no joint in common"),
        (("wave", "--out", "film.mp4", "--from", "9", "--to", "0.1"), "before it"),
        (("wave", "--out", "film.avi"), "a film of ours ends in .mp4"),
        (("wave", "--out", "taken.mp4"), "it exists and is not a film of ours, so it is kept"),
        (("unnamed.json", "--out", "film.mp4"), "does not say in which level it was recorded; say what to show it in"),
        (("elsewhere.json", "--out", "film.mp4"), "was recorded in /Game/Levels/gone, which is not in the project"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    replay: Any, project: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    text = (project / "Saved/URLab/Replays/wave.json").read_text()
    (tmp_path / "unnamed.json").write_text(text.replace('"level":"/Game/Levels/demo",', ""))
    (tmp_path / "elsewhere.json").write_text(text.replace("/Game/Levels/demo", "/Game/Levels/gone"))
    (tmp_path / "taken.mp4").write_bytes(b"precious")
    done = replay(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in " ".join(done.stderr.split())
    assert (tmp_path / "taken.mp4").read_bytes() == b"precious"
    assert not (tmp_path / "film.mp4").exists()


def test_without_the_extra_the_line_that_installs_it_is_told(replay: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    done = replay("wave", "--out", "film.mp4")
    assert done.returncode == 1
    assert "pip install 'urlab-headless[video]'" in done.stderr


def test_the_help_has_an_example(replay: Any) -> None:
    done = replay("--help")
    assert done.returncode == 0
    assert "urlab replay episode.json --out film.mp4" in " ".join(done.stdout.split())
