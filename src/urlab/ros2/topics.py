"""What the bridge says and hears: every topic of a scene, with its type, its quality of service and its converter."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from urlab.ros2 import convert
from urlab.ros2.commands import ARRAY, JOINT_STATE, robot_commands
from urlab.ros2.frames import SceneFrames
from urlab.ros2.names import legal_tokens
from urlab.ros2.qos import CLOCK, LATCHED, RELIABLE, SENSOR_DATA, TF, TF_STATIC, Qos
from urlab_client import CameraMode, URLabCameraView, URLabClient
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.stream_messages import StateFull

IMAGE, CAMERA_INFO = "sensor_msgs/msg/Image", "sensor_msgs/msg/CameraInfo"
COMPRESSED = "sensor_msgs/msg/CompressedImage"
STRING = "std_msgs/msg/String"
TF_MESSAGE, CLOCK_MESSAGE = "tf2_msgs/msg/TFMessage", "rosgraph_msgs/msg/Clock"

Names = tuple[str, ...]


@dataclass(frozen=True)
class Told:
    """Something that is said of every state. ``names`` are all topics that say the same."""

    names: Names
    type_name: str
    qos: Qos
    convert: Callable[[StateFull], Any]


@dataclass(frozen=True)
class Constant:
    """Something that is said once, and kept for whoever comes later."""

    names: Names
    type_name: str
    qos: Qos
    message: Any


@dataclass(frozen=True)
class Pictured:
    """A camera: the topics of its pictures, of what is known of the lens, and of compressed pictures."""

    view: URLabCameraView
    frame_id: str
    follows: bool
    images: Names
    infos: Names
    compressed: Names


@dataclass(frozen=True)
class Heard:
    """Commands to one robot. ``read`` turns a message into one of the control stream, or refuses it (BadCommand)."""

    names: Names
    type_name: str
    read: Callable[[Any], tuple[str, bytes]]


@dataclass(frozen=True)
class Choice:
    """What of a scene is bridged; None is everything."""

    robots: tuple[str, ...] | None = None
    cameras: tuple[str, ...] | None = None


class SceneTopics:
    """Every topic of the scene that a client shows. Made once per scene."""

    def __init__(self, client: URLabClient, choice: Choice) -> None:
        self._client = client
        self._choice = choice
        self._frames = SceneFrames(client)
        self._robots = {
            prefix: one
            for prefix, one in client.articulations.items()
            if choice.robots is None or prefix in choice.robots
        }
        self._only = next(iter(self._robots)) if len(self._robots) == 1 else None
        self.told = [*self._tell_scene(), *(one for prefix in self._robots for one in self._tell_robot(prefix))]
        self.constants = [*self._constants()]
        self.pictured = [*self._picture()]
        self.heard = [one for prefix in self._robots for one in self._hear(prefix)]
        self.warnings = [*self._unknown()]
        """What was chosen and is not there, in sentences."""

    def _names(self, prefix: str, name: str) -> Names:
        """A robot's topic; with one robot also the plain one."""
        own = f"/{self._frames.robots[prefix].namespace}/{name}"
        return (own, f"/{name}") if prefix == self._only else (own,)

    def _tell_scene(self) -> Iterator[Told]:
        transforms = convert.SceneTransforms(self._frames, self._client)
        yield Told(("/tf",), TF_MESSAGE, TF, transforms.convert)
        poses = convert.EntityPoses(self._frames)
        for name, entity in self._frames.entities.items():
            if not entity.is_robots:
                topic = f"/entities/{entity.topic_name}/pose"
                yield Told((topic,), "geometry_msgs/msg/PoseStamped", RELIABLE, _with_name(poses.convert, name))

    def _tell_robot(self, prefix: str) -> Iterator[Told]:
        robot, frames, model = self._robots[prefix], self._frames.robots[prefix], self._client.model
        joints = convert.JointStates(model, robot)
        if joints.names:
            yield Told(self._names(prefix, "joint_states"), JOINT_STATE, RELIABLE, joints.convert)
        if frames.odom is not None:
            odometry = convert.Odometry(frames, robot)
            yield Told(self._names(prefix, "odom"), odometry.type_name, RELIABLE, odometry.convert)
        yield from self._tell_sensors(prefix, convert.RobotSensors(model, robot, frames))

    def _tell_sensors(self, prefix: str, sensors: convert.RobotSensors) -> Iterator[Told]:
        for word, sources in (("imu", sensors.imus), ("wrench", sensors.wrenches), ("range", sensors.ranges)):
            tokens = legal_tokens(one.name for one in sources)
            for one in sources:
                name = word if len(sources) == 1 else f"{word}/{tokens[one.name]}"
                yield Told(self._names(prefix, name), one.type_name, SENSOR_DATA, one.convert)
        tokens = legal_tokens(one.name for one in sensors.arrays)
        for array in sensors.arrays:
            yield Told(self._own(prefix, f"sensor/{tokens[array.name]}"), ARRAY, SENSOR_DATA, array.convert)
        if sensors.sources:
            yield Told(self._names(prefix, "sensor_data"), ARRAY, SENSOR_DATA, sensors.data.convert)

    def _own(self, prefix: str, name: str) -> Names:
        return (f"/{self._frames.robots[prefix].namespace}/{name}",)

    def _constants(self) -> Iterator[Constant]:
        now = ClockBlock(sec=self._client.sim_time_sec, nsec=self._client.sim_time_nsec)
        yield Constant(("/tf_static",), TF_MESSAGE, TF_STATIC, convert.static_transforms(self._frames, now))
        for prefix, robot in self._robots.items():
            text = convert.robot_description(self._client.model, robot, self._frames.robots[prefix])
            yield Constant(self._names(prefix, "robot_description"), STRING, LATCHED, text)

    def _picture(self) -> Iterator[Pictured]:
        owned = [(prefix, view) for prefix, robot in self._robots.items() for view in robot.cameras.values()]
        views = [*owned, *((None, view) for view in self._client.global_cameras.values())]
        chosen = [(prefix, view) for prefix, view in views if self._is_chosen(view)]
        tokens = {prefix: legal_tokens(view.name for owner, view in views if owner == prefix) for prefix, _ in views}
        for place, (prefix, view) in enumerate(chosen):
            frame = self._frames.cameras[view.full_name]
            bases = [f"/{base}" for base in self._camera_bases(prefix, tokens[prefix][view.name], is_first=place == 0)]
            yield Pictured(
                view,
                frame,
                frame in self._frames.following,
                tuple(f"{base}/image_raw" for base in bases),
                tuple(f"{base}/camera_info" for base in bases),
                tuple(f"{base}/image_raw/{_compression(view)}" for base in bases),
            )

    def _camera_bases(self, prefix: str | None, token: str, *, is_first: bool) -> list[str]:
        own = f"camera/{token}" if prefix is None else f"{self._frames.robots[prefix].namespace}/camera/{token}"
        return [own, "camera"] if is_first and self._only is not None else [own]

    def _is_chosen(self, view: URLabCameraView) -> bool:
        wanted = self._choice.cameras
        return view.zmq_endpoint is not None and (wanted is None or view.full_name in wanted or view.name in wanted)

    def _unknown(self) -> Iterator[str]:
        robots = list(self._client.articulations)
        cameras = [*(view for robot in self._client.articulations.values() for view in robot.cameras.values())]
        cameras += self._client.global_cameras.values()
        known = {name for view in cameras for name in (view.full_name, view.name)}
        for name in self._choice.robots or ():
            if name not in robots:
                yield f"there is no robot {name!r} to bridge; there are: {', '.join(robots) or 'none'}"
        for name in self._choice.cameras or ():
            if name not in known:
                there = ", ".join(view.full_name for view in cameras)
                yield f"there is no camera {name!r} to bridge; there are: {there or 'none'}"

    def _hear(self, prefix: str) -> Iterator[Heard]:
        for command in robot_commands(self._client.model, self._robots[prefix]):
            yield Heard(self._names(prefix, command.name), command.type_name, command.read)


def clock_topic() -> tuple[str, str, Qos]:
    """The topic that says what time it is."""
    return "/clock", CLOCK_MESSAGE, CLOCK


def _compression(view: URLabCameraView) -> str:
    """What ROS calls the transport of such pictures."""
    return "compressedDepth" if view.mode is CameraMode.DEPTH else "compressed"


def _with_name(convert_named: Callable[[StateFull, str], Any], name: str) -> Callable[[StateFull], Any]:
    return lambda state: convert_named(state, name)
