"""A camera that no robot owns answers to the name in its own model file, wherever cameras are named."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.app import Server
from urlab.cli.watch.camera import find_camera
from urlab.cli.watch.server import WatchedAddress, watched
from urlab.config import Ports, ServerConfig
from urlab.ros2.topics import SceneTopics, TopicChoice
from urlab_client import URLabClient

SWING = """<mujoco model="swing"><worldbody><body name="arm"><joint name="nod"/><geom size=".1"/>
<camera name="eye" resolution="16 12"/></body></worldbody><actuator><motor joint="nod"/></actuator></mujoco>"""
STUDIO = """<mujoco model="studio"><worldbody><camera name="side" resolution="20 10"/>
<camera name="eye" resolution="24 18"/></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def step_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server with a robot ``swing`` and two cameras in the air, ``studio_side`` and ``studio_eye``."""
    folder: Path = tmp_path_factory.mktemp("models")
    files = [folder / "swing.xml", folder / "studio.xml"]
    for file, text in zip(files, (SWING, STUDIO), strict=True):
        file.write_text(text)
    server = Server(ServerConfig(project=folder / "project", ports=Ports.any()), [str(file) for file in files])
    server.begin()
    server.open_sockets()
    yield int(server.endpoints()["step"].rpartition(":")[2])
    server.close()


@pytest.fixture
def client(step_port: int) -> Iterator[URLabClient]:
    with URLabClient("tcp://127.0.0.1", step_port=step_port, step_mode="direct", camera_streams=False) as client:
        client.discover()
        yield client


@pytest.mark.parametrize("name", ["side", "studio_side"])
def test_its_frame_is_in_its_view_whichever_name_was_asked_for(client: URLabClient, name: str) -> None:
    reply = client.step(include_cameras={name: "sync"})
    assert list(reply["cameras"]) == [name]
    frame = client.global_cameras["studio_side"].latest_frame
    assert frame is not None
    assert frame.shape == (10, 20, 4)


def test_all_frames_come_with_bare_names_where_these_are_unique(client: URLabClient) -> None:
    assert set(client.step(include_cameras=True)["cameras"]) == {"side", "swing/eye", "studio_eye"}
    assert all(view.latest_frame is not None for view in client.global_cameras.values())
    assert client.articulations["swing"].cameras["eye"].latest_frame is not None


def test_a_bare_name_of_both_is_that_of_the_robot(client: URLabClient) -> None:
    client.step(include_cameras={"eye": "sync"})
    eye = client.articulations["swing"].cameras["eye"].latest_frame
    assert eye is not None
    assert eye.shape == (12, 16, 4)
    assert client.global_cameras["studio_eye"].latest_frame is None


def test_the_table_of_views_finds_it_by_both(client: URLabClient) -> None:
    cameras = client.global_cameras
    assert list(cameras) == ["studio_side", "studio_eye"]
    assert cameras["side"] is cameras["studio_side"] is cameras.get("side")
    assert ("side" in cameras, "nose" in cameras, cameras.get("nose")) == (True, False, None)
    with pytest.raises(KeyError, match="no camera 'nose'; there are studio_side, studio_eye"):
        cameras["nose"]


def test_watch_finds_it_by_both(step_port: int) -> None:
    with watched(WatchedAddress("tcp://127.0.0.1", step_port, None, 10.0), pytest.fail) as server:
        assert find_camera(server, "side") is find_camera(server, "studio_side")
        assert find_camera(server, "eye").full_name == "swing/eye"


def test_the_bridge_takes_it_by_both(client: URLabClient) -> None:
    for name in ("side", "studio_side"):
        topics = SceneTopics(client, TopicChoice(cameras=(name,)))
        assert (topics.warnings, [one.view.full_name for one in topics.cameras]) == ([], ["studio_side"])
