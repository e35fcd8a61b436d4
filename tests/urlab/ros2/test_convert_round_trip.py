"""Every message that converters make goes through CDR and comes back the same."""

from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np
import pytest

import urlab
from urlab.ros2 import convert
from urlab.ros2.frames import SceneFrames
from urlab.ros2.messages import deserialise, serialise
from urlab_wire.stream_messages import StateFull


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
    converters: list[Any] = [convert.SceneTransforms(frames, client)]
    converters += [convert.JointStates(model, robot) for robot, _ in robots]
    converters += [convert.Odometry(one, robot) for robot, one in robots if one.odom]
    sensors = [convert.RobotSensors(model, robot, one) for robot, one in robots]
    converters += [source for one in sensors for source in (*one.sources, one.data)]
    made = {
        f"{type(one).__name__} {index}": (one.type_name, one.convert(state)) for index, one in enumerate(converters)
    }
    made["clock"] = ("rosgraph_msgs/msg/Clock", convert.clock(state.sim_time))
    poses = convert.EntityPoses(frames)
    made |= {f"pose of {name}": (poses.type_name, poses.convert(state, name)) for name in frames.entities}
    texts = [convert.robot_description(model, robot, one) for robot, one in robots]
    made |= {f"description {index}": ("std_msgs/msg/String", text) for index, text in enumerate(texts)}
    return made | {"static": ("tf2_msgs/msg/TFMessage", convert.static_transforms(frames, state.sim_time))}


def picture_messages() -> dict[str, Any]:
    meta = {"width": 3, "height": 2, "K": [1.0] * 9, "sim_time": 1.5, "pos": [0.0] * 3, "quat": [1.0, 0, 0, 0]}
    real, depth = (convert.Picture.of_wire(bytes(range(24)), meta | {"mode": mode}) for mode in ("real", "depth"))
    packed = "sensor_msgs/msg/CompressedImage"
    return {
        "image": ("sensor_msgs/msg/Image", convert.image(real, "f")),
        "depth": ("sensor_msgs/msg/Image", convert.image(depth, "f")),
        "info": ("sensor_msgs/msg/CameraInfo", convert.camera_info(real, "f")),
        "jpeg": (packed, convert.compressed(real, "f")),
        "png": (packed, convert.compressed_depth(depth, "f")),
        "transform": ("geometry_msgs/msg/TransformStamped", convert.camera_transform(real, "f")),
    }


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory):
    with urlab.launch(project=tmp_path_factory.mktemp("project")) as client:
        yield client


def test_every_message_comes_back_the_same(demo):
    made = state_messages(demo, state_of(demo.step(9))) | picture_messages()
    changed = [name for name, (kind, one) in made.items() if not same(one, deserialise(serialise(one, kind), kind))]
    assert changed == []
    assert len({kind for kind, _ in made.values()}) >= 13


def test_a_range_comes_back_the_same(tmp_path):
    (tmp_path / "m.xml").write_text("""<mujoco><worldbody><geom type="plane" size="9 9 1"/><body name="b" pos="0 0 1">
      <joint name="j"/><geom size=".1"/><site name="s" euler="180 0 0" pos="0 0 -.2"/></body></worldbody>
      <sensor><rangefinder name="r" site="s" cutoff="1"/></sensor></mujoco>""")
    with urlab.launch(tmp_path / "m.xml", project=tmp_path / "project") as client:
        sensors = convert.RobotSensors(client.model, client.articulations["m"], SceneFrames(client).robots["m"])
        (source,) = sensors.ranges
        message = source.convert(state_of(client.step(2)))
    again = deserialise(serialise(message, source.type_name), source.type_name)
    assert again.range == pytest.approx(message.range, rel=1e-6) == pytest.approx(0.8)
    assert (again.max_range, again.header) == (1.0, message.header)
