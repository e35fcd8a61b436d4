"""Every topic of a scene: its names, its type, its quality of service, and what makes or reads its messages.

A new topic of a robot is one more line in `SceneTopics`: a `StateTopic` with a converter of `urlab.ros2.convert`, or a
`CommandTopic`. Commands go to the server over its control stream, so that the client that drives keeps its session.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import mujoco
import numpy as np

from urlab.ros2.convert.cameras import compression_name
from urlab.ros2.convert.commands import ControlCommand, JointCommand, Setpoints, twist_command
from urlab.ros2.convert.robots import JointStates, Odometry
from urlab.ros2.convert.sensors import RobotSensors
from urlab.ros2.convert.transforms import EntityPoses, SceneTransforms, static_transforms
from urlab.ros2.convert.urdf import robot_description
from urlab.ros2.frames import SceneFrames
from urlab.ros2.names import legal_tokens
from urlab.ros2.qos import LATCHED, PICTURES, RELIABLE, TF, TF_STATIC, Qos
from urlab_client import URLabArticulation, URLabCameraView, URLabClient
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.rows import pack_twist
from urlab_wire.stream_messages import StateFull
from urlab_wire.streams import control_topic, pack_control, twist_command_topic

IMAGE, CAMERA_INFO = "sensor_msgs/msg/Image", "sensor_msgs/msg/CameraInfo"
COMPRESSED = "sensor_msgs/msg/CompressedImage"
STRING, ARRAY = "std_msgs/msg/String", "std_msgs/msg/Float64MultiArray"
JOINT_STATE, TWIST = "sensor_msgs/msg/JointState", "geometry_msgs/msg/Twist"
TF_MESSAGE, CLOCK_MESSAGE = "tf2_msgs/msg/TFMessage", "rosgraph_msgs/msg/Clock"

TopicNames = tuple[str, ...]
"""All topics that carry the same messages: a robot's own, and with one robot the plain one."""


@dataclass(frozen=True)
class StateTopic:
    """A message of every state, made by ``convert``."""

    names: TopicNames
    type_name: str
    qos: Qos
    convert: Callable[[StateFull], Any]


@dataclass(frozen=True)
class ConstantTopic:
    """A message that is published once, and latched for later subscribers."""

    names: TopicNames
    type_name: str
    qos: Qos
    message: Any


@dataclass(frozen=True)
class CameraTopics:
    """A camera: the topics of its pictures, of its intrinsics, and of compressed pictures.

    ``frame_id`` is its optical frame; ``follows``: that frame is published in tf with every picture.
    """

    view: URLabCameraView
    frame_id: str
    follows: bool
    images: TopicNames
    infos: TopicNames
    compressed: TopicNames

    @property
    def published(self) -> Iterator[tuple[TopicNames, str, Qos]]:
        """Names, type and quality of service of its three kinds of messages."""
        yield self.images, IMAGE, PICTURES
        yield self.infos, CAMERA_INFO, PICTURES
        yield self.compressed, COMPRESSED, PICTURES


@dataclass(frozen=True)
class CommandTopic:
    """Commands to one robot. ``read`` turns a message into (topic, payload) of the server's control stream.

    It raises `urlab.ros2.convert.commands.BadCommand` for a message that cannot be followed.
    """

    names: TopicNames
    type_name: str
    read: Callable[[Any], tuple[str, bytes]]


@dataclass(frozen=True)
class TopicChoice:
    """Which robots (by prefix) and cameras (by name or full name) are bridged; None is all of them."""

    robots: tuple[str, ...] | None = None
    cameras: tuple[str, ...] | None = None


def clock_topic() -> tuple[str, str, Qos]:
    """Name, type and quality of service of the simulation time."""
    return "/clock", CLOCK_MESSAGE, RELIABLE


class SceneTopics:
    """Every topic of the scene that a client shows, but the clock. Made once per scene.

    ``warnings`` are sentences about what was chosen and is not there.
    """

    def __init__(self, client: URLabClient, choice: TopicChoice) -> None:
        self._client = client
        self._choice = choice
        self._frames = SceneFrames(client)
        self._robots = {
            prefix: one
            for prefix, one in client.articulations.items()
            if choice.robots is None or prefix in choice.robots
        }
        self._only = next(iter(self._robots)) if len(self._robots) == 1 else None
        self.states = [*self._of_scene(), *(one for prefix in self._robots for one in self._of_robot(prefix))]
        self.constants = [*self._constants()]
        self.cameras = [*self._cameras()]
        self.commands = [one for prefix in self._robots for one in self._commands(prefix)]
        self.warnings = [*self._unknown()]

    def _own(self, prefix: str, name: str) -> TopicNames:
        return (f"/{self._frames.robots[prefix].namespace}/{name}",)

    def _names(self, prefix: str, name: str) -> TopicNames:
        """A robot's topic; with one robot also the plain one."""
        own = self._own(prefix, name)
        return (*own, f"/{name}") if prefix == self._only else own

    # -- states ----------------------------------------------------------------------------------------------------

    def _of_scene(self) -> Iterator[StateTopic]:
        transforms = SceneTransforms(self._frames, self._client)
        yield StateTopic(("/tf",), TF_MESSAGE, TF, transforms.convert)
        poses = EntityPoses(self._frames)
        for name, entity in self._frames.entities.items():
            if not entity.is_robots:
                topic = f"/entities/{entity.topic_name}/pose"
                yield StateTopic((topic,), poses.type_name, RELIABLE, partial(poses.convert, name=name))

    def _of_robot(self, prefix: str) -> Iterator[StateTopic]:
        robot, frames, model = self._robots[prefix], self._frames.robots[prefix], self._client.model
        joints = JointStates(robot)
        if joints.names:
            yield StateTopic(self._names(prefix, "joint_states"), JOINT_STATE, RELIABLE, joints.convert)
        if frames.odom is not None:
            odometry = Odometry(frames, robot)
            yield StateTopic(self._names(prefix, "odom"), odometry.type_name, RELIABLE, odometry.convert)
        yield from self._of_sensors(prefix, RobotSensors(model, robot, frames))

    def _of_sensors(self, prefix: str, sensors: RobotSensors) -> Iterator[StateTopic]:
        for word, sources in (("imu", sensors.imus), ("wrench", sensors.wrenches), ("range", sensors.ranges)):
            tokens = legal_tokens(one.name for one in sources)
            for one in sources:
                name = word if len(sources) == 1 else f"{word}/{tokens[one.name]}"
                yield StateTopic(self._names(prefix, name), one.type_name, RELIABLE, one.convert)
        tokens = legal_tokens(one.name for one in sensors.arrays)
        for array in sensors.arrays:
            yield StateTopic(self._own(prefix, f"sensor/{tokens[array.name]}"), ARRAY, RELIABLE, array.convert)
        if sensors.sources:
            yield StateTopic(self._names(prefix, "sensor_data"), ARRAY, RELIABLE, sensors.data.convert)

    # -- what never changes ----------------------------------------------------------------------------------------

    def _constants(self) -> Iterator[ConstantTopic]:
        now = ClockBlock(sec=self._client.sim_time_sec, nsec=self._client.sim_time_nsec)
        yield ConstantTopic(("/tf_static",), TF_MESSAGE, TF_STATIC, static_transforms(self._frames, now))
        for prefix, robot in self._robots.items():
            text = robot_description(self._client.model, robot, self._frames.robots[prefix])
            yield ConstantTopic(self._names(prefix, "robot_description"), STRING, LATCHED, text)

    # -- cameras ---------------------------------------------------------------------------------------------------

    def _cameras(self) -> Iterator[CameraTopics]:
        owned = [(prefix, view) for prefix, robot in self._robots.items() for view in robot.cameras.values()]
        views = [*owned, *((None, view) for view in self._client.global_cameras.values())]
        chosen = [(prefix, view) for prefix, view in views if self._is_chosen(view)]
        tokens = {prefix: legal_tokens(view.name for owner, view in views if owner == prefix) for prefix, _ in views}
        for place, (prefix, view) in enumerate(chosen):
            frame = self._frames.cameras[view.full_name]
            bases = [f"/{base}" for base in self._camera_bases(prefix, tokens[prefix][view.name], is_first=place == 0)]
            yield CameraTopics(
                view,
                frame,
                frame in self._frames.following,
                tuple(f"{base}/image_raw" for base in bases),
                tuple(f"{base}/camera_info" for base in bases),
                tuple(f"{base}/image_raw/{compression_name(view.mode)}" for base in bases),
            )

    def _camera_bases(self, prefix: str | None, token: str, *, is_first: bool) -> list[str]:
        own = f"camera/{token}" if prefix is None else f"{self._frames.robots[prefix].namespace}/camera/{token}"
        return [own, "camera"] if is_first and self._only is not None else [own]

    def _is_chosen(self, view: URLabCameraView) -> bool:
        wanted = self._choice.cameras
        return view.zmq_endpoint is not None and (wanted is None or not _names_of(view).isdisjoint(wanted))

    def _unknown(self) -> Iterator[str]:
        robots = list(self._client.articulations)
        cameras = [*(view for robot in self._client.articulations.values() for view in robot.cameras.values())]
        cameras += self._client.global_cameras.values()
        known = {name for view in cameras for name in _names_of(view)}
        for name in self._choice.robots or ():
            if name not in robots:
                yield f"there is no robot {name!r} to bridge; there are: {', '.join(robots) or 'none'}"
        for name in self._choice.cameras or ():
            if name not in known:
                there = ", ".join(view.full_name for view in cameras)
                yield f"there is no camera {name!r} to bridge; there are: {there or 'none'}"

    # -- commands --------------------------------------------------------------------------------------------------

    def _commands(self, prefix: str) -> Iterator[CommandTopic]:
        robot, model = self._robots[prefix], self._client.model
        if robot.actuators:
            joints, control = JointCommand(model, robot), ControlCommand(robot)
            yield CommandTopic(self._names(prefix, "joint_command"), JOINT_STATE, _setpoints(robot, joints.convert))
            yield CommandTopic(self._names(prefix, "control"), ARRAY, _setpoints(robot, control.convert))
        topic = twist_command_topic(prefix)
        yield CommandTopic(
            self._names(prefix, "cmd_vel"), TWIST, lambda message: (topic, pack_twist(*twist_command(message)))
        )


def _setpoints(robot: URLabArticulation, read: Callable[[Any], Setpoints]) -> Callable[[Any], tuple[str, bytes]]:
    topic, ids = control_topic(robot.prefix), {name: actuator.ctrl_id for name, actuator in robot.actuators.items()}
    return lambda message: (topic, pack_control({ids[name]: value for name, value in read(message).items()}))


# -- one scene or another ----------------------------------------------------------------------------------------------


class NoScene(LookupError):
    """There is nothing to bridge at the moment; the message says why."""


def scene_signature(client: URLabClient) -> str:
    """A digest of everything that topics depend on: the model, the names, the cameras, where the streams are.

    Topics stay where it is the same. Physics options are left out: a changed time step or gravity is no other scene.
    `NoScene` without a model.
    """
    digest = hashlib.sha256(_model_bytes(client))
    digest.update("\0".join(_words(client)).encode())
    return digest.hexdigest()


def _model_bytes(client: URLabClient) -> bytes:
    if client.model is None:
        raise NoScene("the server tells no model")
    model = copy.copy(client.model)
    mujoco.mj_defaultOption(model.opt)
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


def _words(client: URLabClient) -> Iterator[str]:
    yield from client.entities
    for prefix, robot in client.articulations.items():
        yield from (prefix, type(robot.controller).__name__, str(robot.control_mode))
        for view in robot.cameras.values():
            yield from _camera_words(view)
    for view in client.global_cameras.values():
        yield from _camera_words(view)
    yield from (str(client.streams.get(name)) for name in ("state", "control"))


def _names_of(view: URLabCameraView) -> set[str]:
    return {view.full_name, view.name, view.short_name}


def _camera_words(view: URLabCameraView) -> Iterator[str]:
    yield from (view.full_name, str(view.mode), str(view.resolution), str(view.zmq_endpoint), str(view.zmq_topic))
