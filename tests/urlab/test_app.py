"""`urlab.launch`: a server and its client in one process."""

import dataclasses
import gc
import inspect
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pytest

import urlab
from urlab.app import LaunchOptions, Server
from urlab.config import ServerConfig
from urlab.errors import ConfigError
from urlab.manager import Play, play
from urlab.physics import Engine
from urlab_client import URLabRPCError

BALL = '<mujoco model="ball"><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.fixture
def ball(tmp_path: Path) -> Path:
    path = tmp_path / "ball.xml"
    path.write_text(BALL, encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


def test_it_waits_for_a_scene_that_takes_long_to_compile(
    ball: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Play.begin.__kwdefaults__, "timeout_s", 0.0)  # every scene takes too long
    with urlab.launch(ball, project=project) as client:
        assert client.manager_present
        assert client.step()["step"] == 1


def test_a_scene_that_does_not_compile_in_time_is_an_error(
    ball: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, compile_scene = threading.Event(), play.compile_scene
    monkeypatch.setattr(play, "compile_scene", lambda *given: gate.wait() and compile_scene(*given))
    with pytest.raises(ConfigError, match="still compiling after start_timeout_s = 0 s"):
        urlab.launch(ball, project=project, start_timeout_s=0)
    gate.set()


def test_a_scene_that_cannot_be_compiled_is_an_error(tmp_path: Path, project: Path) -> None:
    wrong = tmp_path / "wrong.xml"
    wrong.write_text("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", encoding="utf-8")
    with pytest.raises(ConfigError, match="mass and inertia"):
        urlab.launch(wrong, project=project)


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("proyect", "did you mean 'project'?"),
        ("observation", "did you mean 'observations'?"),
        ("timestep", r"sim_options=\{'timestep': ...\}"),
        ("zzz", "There are: .*sim_options, start_timeout_s, step_mode"),
        ("host", "one of `urlab serve`, and launch\\(\\) opens no sockets"),
        ("ready_file", "one of `urlab serve`"),
    ],
)
def test_an_unknown_option_is_an_error_that_says_what_to_write(option: str, advice: str) -> None:
    options: dict[str, Any] = {option: 1}
    with pytest.raises(TypeError, match=advice):
        urlab.launch("box", **options)


def test_one_plugin_or_one_root_needs_no_list(ball: Path, project: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no module 'not_there'"):
        urlab.launch(ball, project=project, plugins="not_there")
    (tmp_path / "out").mkdir()
    with urlab.launch(ball, project=project, write_roots=str(tmp_path / "out")) as client:
        client.recording.start()
        client.step()
        client.recording.save(tmp_path / "out" / "run.json")
        with pytest.raises(URLabRPCError, match="path_not_writable"):
            client.recording.save(tmp_path / "run.json")


def test_physics_options_are_in_force_from_the_first_step(ball: Path, project: Path) -> None:
    with urlab.launch(ball, project=project, sim_options={"timestep": 0.005, "gravity": [0, 0, -1]}) as client:
        assert client.step(2)["time"] == pytest.approx(0.01)
        assert client.model.opt.gravity.tolist() == [0, 0, -1]


def test_physics_options_that_do_not_exist_are_refused(ball: Path, project: Path) -> None:
    with pytest.raises(Exception, match="timestop"):
        urlab.launch(ball, project=project, sim_options={"timestop": 0.005})


def test_its_help_tells_every_option_and_its_default() -> None:
    told = inspect.getdoc(urlab.launch) or ""
    parameters = [name for name in inspect.signature(urlab.launch).parameters if name != "options"]
    assert [name for name in (*parameters, *LaunchOptions.__annotations__) if f"``{name}``" not in told] == []
    assert (
        inspect.signature(urlab.launch).parameters["options"].annotation == Unpack[LaunchOptions]
    )  # for type checkers
    assert set(LaunchOptions.__annotations__) <= {field.name for field in dataclasses.fields(ServerConfig)}


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only what the server collects by itself is collected."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_restarts_of_play_leave_no_large_model_behind(tmp_path: Path, project: Path, no_collector: None) -> None:
    size = 1200
    heights = np.zeros((size, size), np.float32)
    (tmp_path / "heights.bin").write_bytes(np.array([size, size], np.int32).tobytes() + heights.tobytes())
    (tmp_path / "ground.xml").write_text(
        '<mujoco model="ground"><asset><hfield name="h" file="heights.bin" size="9 9 1 1"/></asset>'
        '<worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>'
    )
    before = {id(one) for one in gc.get_objects() if isinstance(one, Engine)}
    with urlab.launch(tmp_path / "ground.xml", project=project) as client:
        assert client.model.nbuffer > 4 << 20
        for _ in range(5):
            client.sim.stop()
            client.sim.start()
            client.step()
        engines = [one for one in gc.get_objects() if isinstance(one, Engine) and id(one) not in before]
        assert len(engines) == 1


def test_in_process_file_ops_have_the_rights_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "me"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir("/")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with urlab.launch("box", project=tmp_path / "project") as client:
        client.recording.start()
        client.step()
        client.recording.save(str(home / "ep.json"))
    assert (home / "ep.json").is_file()


def test_what_a_killed_server_left_is_swept_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    project, gone = tmp_path / "project", "urlab-4194305-123-"
    folders = [project / one for one in ("Levels", "Saved/URLab/Replays", "Saved/URLab/Replays/day")]
    left = [folder / f".{gone}x.part" for folder in [*folders, project / "Saved/URLab/ConvertedMeshes"]]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    left += [project / "Imports" / f".{gone}x.part", tmp_path / "tmp" / f"{gone}work-x"]
    for folder in left[-2:]:
        (folder / "assets").mkdir(parents=True)
    Server(ServerConfig(project=project, play=False)).close()
    assert [one for one in left if one.exists()] == []
