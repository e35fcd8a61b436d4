"""Which topics a scene has, and what they are called."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from urlab.app import Server
from urlab.config import Ports, ServerConfig
from urlab.ros2.names import checked
from urlab.ros2.topics import SceneTopics, TopicChoice, clock_topic
from urlab_client import URLabClient

SCOUT = """<mujoco model="scout-1">
  <worldbody><light pos="0 0 3"/><body name="hull" pos="0 0 1"><freejoint name="root"/><geom size=".1"/>
    <site name="front"/><site name="rear" pos="-.1 0 0"/>
    <camera name="eye-left" resolution="8 8"/><camera name="eye_left" resolution="8 8"/>
    <body name="head"><joint name="nod"/><geom size=".05"/></body></body></worldbody>
  <actuator><motor name="nodder" joint="nod"/></actuator>
  <sensor><gyro name="front_gyro" site="front"/><gyro name="rear_gyro" site="rear"/><jointpos name="angle" joint="nod"/>
  </sensor></mujoco>"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[URLabClient]:
    """Of a server with sockets: there are no topics for cameras that nobody streams."""
    folder: Path = tmp_path_factory.mktemp("models")
    (folder / "scout.xml").write_text(SCOUT)
    server = Server(ServerConfig(project=folder / "project", ports=Ports.any()), [str(folder / "scout.xml")])
    server.begin()
    server.open_sockets()
    step_port = int(server.endpoints()["step"].rpartition(":")[2])
    with URLabClient("tcp://127.0.0.1", step_port=step_port, observer=True, camera_streams=False) as client:
        client.discover()
        yield client
    server.close()


def names(topics: SceneTopics) -> list[str]:
    said = [name for one in (*topics.states, *topics.constants, *topics.commands) for name in one.names]
    pictured = [(*one.images, *one.infos, *one.compressed) for one in topics.cameras]
    return said + [name for each in pictured for name in each]


def test_every_name_is_legal_and_there_once(client: URLabClient):
    all_names = names(SceneTopics(client, TopicChoice()))
    assert len(all_names) == len(set(all_names))
    for name in all_names:
        checked(name)
    assert {"/scout_1/joint_states", "/scout_1/odom", "/joint_states", "/tf", "/tf_static"} <= set(all_names)


def test_cameras_whose_names_ros_takes_for_one_get_two(client: URLabClient):
    topics = SceneTopics(client, TopicChoice())
    images = {one.view.name: one.images[0] for one in topics.cameras}
    assert images["eye_left"] == "/scout_1/camera/eye_left/image_raw"
    assert images["eye-left"] == "/scout_1/camera/eye_left_2/image_raw"


def test_sensors_of_one_kind_are_told_apart_by_name(client: URLabClient):
    imus = [name for name in names(SceneTopics(client, TopicChoice())) if name.startswith("/scout_1/imu")]
    assert len(imus) == 2
    assert all(name.count("/") == 3 for name in imus)


def test_a_choice_of_cameras_keeps_their_names(client: URLabClient):
    topics = SceneTopics(client, TopicChoice(cameras=("eye-left",)))
    assert [one.images for one in topics.cameras] == [
        ("/scout_1/camera/eye_left_2/image_raw", "/camera/image_raw"),
    ]


def test_what_is_chosen_and_is_not_there_is_told(client: URLabClient):
    topics = SceneTopics(client, TopicChoice(robots=("dog",), cameras=("tail",)))
    assert topics.warnings == [
        "there is no robot 'dog' to bridge; there are: scout-1",
        "there is no camera 'tail' to bridge; there are: scout-1/eye-left, scout-1/eye_left",
    ]
    assert not topics.commands
    assert not SceneTopics(client, TopicChoice(robots=("scout-1",), cameras=("scout-1/eye_left",))).warnings


def test_every_topic_is_offered_reliable_and_of_pictures_the_newest_is_kept(client: URLabClient):
    """A subscriber with the default settings of ROS is reliable and volatile: it matches all of them."""
    topics = SceneTopics(client, TopicChoice())
    offered = {name: one.qos for one in (*topics.states, *topics.constants) for name in one.names}
    pictures = {name: qos for one in topics.cameras for names, _, qos in one.published for name in names}
    clock, _, offered["/clock"] = clock_topic()
    assert (clock, len(pictures) >= 6) == ("/clock", True)
    assert [name for name, qos in (offered | pictures).items() if not qos.reliable] == []
    assert {qos.depth for qos in pictures.values()} == {1}
