"""Every message that converters make goes through CDR and comes back the same."""

from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

import urlab
from urlab.ros2.convert.cameras import Picture, camera_info, camera_transform, compressed, image
from urlab.ros2.convert.commands import twist_command
from urlab.ros2.convert.robots import JointStates, Odometry
from urlab.ros2.convert.sensors import RobotSensors
from urlab.ros2.convert.transforms import EntityPoses, SceneTransforms, static_transforms
from urlab.ros2.convert.urdf import robot_description
from urlab.ros2.frames import SceneFrames
from urlab.ros2.geometry import clock_message
from urlab.ros2.messages import deserialise, make, serialise
from urlab.ros2.topics import CAMERA_INFO, COMPRESSED, IMAGE, SceneTopics, TopicChoice, clock_topic
from urlab_wire.stream_messages import StateFull

MADE = {
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/TransformStamped",
    "geometry_msgs/msg/WrenchStamped",
    "nav_msgs/msg/Odometry",
    "rosgraph_msgs/msg/Clock",
    "sensor_msgs/msg/CameraInfo",
    "sensor_msgs/msg/CompressedImage",
    "sensor_msgs/msg/Image",
    "sensor_msgs/msg/Imu",
    "sensor_msgs/msg/JointState",
    "std_msgs/msg/Float64MultiArray",
    "std_msgs/msg/String",
    "tf2_msgs/msg/TFMessage",
}
"""All types that the bridge says, but sensor_msgs/Range."""


def state_of(reply: dict[str, Any]) -> StateFull:
    return msgspec.convert({key: reply[key] for key in StateFull.__struct_fields__} | {"op": "state_full"}, StateFull)


def same(one: Any, other: Any) -> bool:
    if is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def state_messages(client: Any, state: StateFull) -> dict[str, Any]:
    frames, model = SceneFrames(client), client.model
    robots = [(client.articulations[prefix], one) for prefix, one in frames.robots.items()]
    converters: list[Any] = [SceneTransforms(frames, client)]
    converters += [JointStates(robot) for robot, _ in robots]
    converters += [Odometry(one, robot) for robot, one in robots if one.odom]
    sensors = [RobotSensors(model, robot, one) for robot, one in robots]
    converters += [source for one in sensors for source in (*one.sources, one.data)]
    made = {
        f"{type(one).__name__} {index}": (one.type_name, one.convert(state)) for index, one in enumerate(converters)
    }
    made["clock"] = ("rosgraph_msgs/msg/Clock", clock_message(state.sim_time))
    poses = EntityPoses(frames)
    made |= {f"pose of {name}": (poses.type_name, poses.convert(state, name)) for name in frames.entities}
    texts = [robot_description(model, robot, one) for robot, one in robots]
    made |= {f"description {index}": ("std_msgs/msg/String", text) for index, text in enumerate(texts)}
    return made | {"static": ("tf2_msgs/msg/TFMessage", static_transforms(frames, state.sim_time))}


def picture_messages() -> dict[str, Any]:
    meta = {"width": 3, "height": 2, "K": [1.0] * 9, "sim_time": 1.5, "pos": [0.0] * 3, "quat": [1.0, 0, 0, 0]}
    real, depth, semantic = (
        Picture.of_wire(bytes(range(24)), meta | {"mode": mode}) for mode in ("real", "depth", "semantic")
    )
    packed = "sensor_msgs/msg/CompressedImage"
    return {
        "image": ("sensor_msgs/msg/Image", image(real, "f")),
        "depth": ("sensor_msgs/msg/Image", image(depth, "f")),
        "semantic": ("sensor_msgs/msg/Image", image(semantic, "f")),
        "info": ("sensor_msgs/msg/CameraInfo", camera_info(real, "f")),
        "jpeg": (packed, compressed(real, "f")),
        "png": (packed, compressed(semantic, "f")),
        "millimetres": (packed, compressed(depth, "f")),
        "transform": ("geometry_msgs/msg/TransformStamped", camera_transform(real, "f")),
    }


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


def test_every_message_comes_back_the_same(demo):
    made = state_messages(demo, state_of(demo.step(9))) | picture_messages()
    changed = [name for name, (kind, one) in made.items() if not same(one, deserialise(serialise(one, kind), kind))]
    assert changed == []
    assert {kind for kind, _ in made.values()} == MADE
    assert {made[name][1].encoding for name in ("image", "depth", "semantic")} == {"bgr8", "32FC1", "rgb8"}


def test_every_topic_of_the_bridge_has_a_type_that_was_seen_to_come_back(demo):
    """Commands are heard, and ranges have a test of their own, as no shipped robot has any."""
    topics = SceneTopics(demo, TopicChoice())
    said = {one.type_name for one in (*topics.states, *topics.constants)} | {
        clock_topic()[1],
        IMAGE,
        CAMERA_INFO,
        COMPRESSED,
    }
    assert said <= MADE
    assert {one.type_name for one in topics.commands} - MADE == {"geometry_msgs/msg/Twist"}


def test_a_range_comes_back_the_same(tmp_path):
    (tmp_path / "m.xml").write_text("""<mujoco><worldbody><geom type="plane" size="9 9 1"/><body name="b" pos="0 0 1">
      <joint name="j"/><geom size=".1"/><site name="s" euler="180 0 0" pos="0 0 -.2"/></body></worldbody>
      <sensor><rangefinder name="r" site="s" cutoff="1"/></sensor></mujoco>""")
    with urlab.launch(tmp_path / "m.xml", project=tmp_path / "project") as client:
        sensors = RobotSensors(client.model, client.articulations["m"], SceneFrames(client).robots["m"])
        (source,) = sensors.ranges
        message = source.convert(state_of(client.step(2)))
    again = deserialise(serialise(message, source.type_name), source.type_name)
    assert again.range == pytest.approx(message.range, rel=1e-6) == pytest.approx(0.8)
    assert (again.max_range, again.header) == (1.0, message.header)


def test_a_twist_comes_back_the_same():
    numbers = {"linear": (0.3, -0.1, 0.5), "angular": (1.0, 2.0, -0.7)}
    parts = {
        name: make("geometry_msgs/msg/Vector3", **dict(zip("xyz", some, strict=True))) for name, some in numbers.items()
    }
    twist = make("geometry_msgs/msg/Twist", **parts)
    again = deserialise(serialise(twist, "geometry_msgs/msg/Twist"), "geometry_msgs/msg/Twist")
    assert again == twist
    assert twist_command(again) == (0.3, -0.1, -0.7)
