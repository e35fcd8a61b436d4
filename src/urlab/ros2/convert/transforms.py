"""Where frames and entities are: tf2_msgs/TFMessage, and a geometry_msgs/PoseStamped for each body outside the robots.

The pose of a link in its parent follows from its own joint alone, so no forward kinematics is run. A state's ``qpos``
is of its own time, while its ``xpos`` is what the last step began with. So a free body's pose comes from ``qpos``, and
what is fixed to it follows; ``xpos`` serves for mocap bodies, which no step moves.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from urlab.ros2.convert.robots import RobotState, SceneChanged
from urlab.ros2.frames import BALL, FREE, HINGE, SLIDE, WORLD, EntityFrame, RobotFrames, RobotLink, SceneFrames
from urlab.ros2.geometry import (
    Array,
    Numbers,
    Quaternion,
    RigidTransform,
    Transform,
    at,
    header,
    pose_message,
    quaternion,
    time_message,
    transform_of,
    transform_stamped,
    vector3,
)
from urlab.ros2.messages import make
from urlab_client import URLabArticulation, URLabClient
from urlab_wire.ops.stepping import ClockBlock
from urlab_wire.stream_messages import StateFull

TF_TYPE = "tf2_msgs/msg/TFMessage"
POSE_TYPE = "geometry_msgs/msg/PoseStamped"

PoseOfQpos = Callable[[Sequence[float], Any], Any]
"""From a robot's qpos and a stamp to the geometry_msgs/TransformStamped of one link."""


class RobotTransforms:
    """The moving frames of one robot. Made once per scene; any thread.

    Messages share the parts that never change: do not write into them.
    """

    def __init__(self, frames: RobotFrames, robot: URLabArticulation) -> None:
        moving = [link for link in frames.links if link.joint is not None]
        self._state = RobotState(robot)
        self._hinges = _Hinges(frames, [link for link in moving if _kind(link) == HINGE])
        self._slides = _Slides(frames, [link for link in moving if _kind(link) == SLIDE])
        self._singles = [_free(frames, link) for link in moving if _kind(link) == FREE]
        self._singles += [_ball(frames, link) for link in moving if _kind(link) == BALL]

    def convert(self, state: StateFull, stamp: Any) -> list[Any]:
        """The geometry_msgs/TransformStamped of every link that has a joint."""
        qpos = self._state.of(state).qpos
        made = [convert(qpos, stamp) for convert in self._singles]
        values = np.array(qpos)
        return made + self._hinges.convert(values, stamp) + self._slides.convert(values, stamp)


class SceneTransforms:
    """All moving frames of a scene in one message: robots' links, and entities."""

    type_name = TF_TYPE

    def __init__(self, frames: SceneFrames, client: URLabClient) -> None:
        self._robots = [RobotTransforms(one, client.articulations[prefix]) for prefix, one in frames.robots.items()]
        self._entities = EntityPoses(frames)

    def convert(self, state: StateFull) -> Any:
        """One transform per frame that can move, all of that state; `SceneChanged` when it is another scene's."""
        stamp = time_message(state.sim_time)
        made = self._entities.transforms(state, stamp)
        for robot in self._robots:
            made += robot.convert(state, stamp)
        return make(TF_TYPE, transforms=made)


def static_transforms(frames: SceneFrames, now: ClockBlock) -> Any:
    """Every frame of a scene that never moves in its parent, in one message: /tf_static keeps only the last one."""
    stamp = time_message(now)
    made = [transform_stamped(stamp, one.parent, one.child, transform_of(one.pose)) for one in frames.static]
    return make(TF_TYPE, transforms=made)


class EntityPoses:
    """Poses of entities in the world. Made once per scene; any thread."""

    type_name = POSE_TYPE

    def __init__(self, frames: SceneFrames) -> None:
        self._entities = frames.entities
        self._moving = [one for one in frames.entities.values() if one.moves and not one.is_robots]

    def convert(self, state: StateFull, name: str) -> Any:
        """The geometry_msgs/PoseStamped of one entity."""
        pos, quat_wxyz = self._pose(state, self._entities[name])
        stamped = header(time_message(state.sim_time), WORLD)
        return make(POSE_TYPE, header=stamped, pose=pose_message(pos, quat_wxyz))

    def transforms(self, state: StateFull, stamp: Any) -> list[Any]:
        """The geometry_msgs/TransformStamped of every entity that moves by itself."""
        poses = (self._pose(state, one) for one in self._moving)
        return [
            transform_stamped(stamp, WORLD, one.frame_id, Transform(vector3(pos), quaternion(quat_wxyz)))
            for one, (pos, quat_wxyz) in zip(self._moving, poses, strict=True)
        ]

    def _pose(self, state: StateFull, entity: EntityFrame) -> tuple[Numbers, Numbers]:
        if entity.carrier is None:
            return entity.place
        block = state.entities.get(entity.carrier)
        if block is None:
            raise SceneChanged(f"no entity {entity.carrier!r}; the state has {', '.join(state.entities) or 'none'}")
        pos, quat_wxyz = (block.qpos[:3], block.qpos[3:7]) if block.qpos else (block.xpos, block.xquat)
        return (pos, quat_wxyz) if entity.moves else at(pos, quat_wxyz).then(entity.place)


# -- how a link moves by its joint -------------------------------------------------------------------------------------


class _Hinges:
    """The pose after a hinge: a fixed place, and a quaternion that is linear in cos and sin of half the angle."""

    def __init__(self, frames: RobotFrames, links: Sequence[RobotLink]) -> None:
        self._ends = [frames.ends(link) for link in links]
        self._places = [vector3(link.origin.pos) for link in links]
        self._adr = _addresses(links)
        self._cos_xyzw = _xyzw(link.origin for link in links)
        self._sin_xyzw = _xyzw(link.origin.then(_half_turn(link)) for link in links)

    def convert(self, qpos: Array, stamp: Any) -> list[Any]:
        half = 0.5 * qpos[self._adr, None]
        quats = (np.cos(half) * self._cos_xyzw + np.sin(half) * self._sin_xyzw).tolist()
        return [
            transform_stamped(stamp, parent, child, _transform(place, x, y, z, w))
            for (parent, child), place, (x, y, z, w) in zip(self._ends, self._places, quats, strict=True)
        ]


class _Slides:
    """The pose after a slide: a fixed turn, and a place that is linear in the joint's value."""

    def __init__(self, frames: RobotFrames, links: Sequence[RobotLink]) -> None:
        self._ends = [frames.ends(link) for link in links]
        self._turns = [quaternion(link.origin.quat_wxyz) for link in links]
        self._adr = _addresses(links)
        self._start = np.array([link.origin.pos for link in links]).reshape(-1, 3)
        ways = [link.origin.then(at(link.axis)).pos for link in links if link.axis is not None]
        self._way = np.array(ways).reshape(-1, 3) - self._start

    def convert(self, qpos: Array, stamp: Any) -> list[Any]:
        places = (self._start + qpos[self._adr, None] * self._way).tolist()
        return [
            transform_stamped(stamp, parent, child, Transform(translation=vector3(place), rotation=turn))
            for (parent, child), place, turn in zip(self._ends, places, self._turns, strict=True)
        ]


def _ball(frames: RobotFrames, link: RobotLink) -> PoseOfQpos:
    """The pose after a ball joint."""
    (parent, child), adr = frames.ends(link), _address(link)
    return lambda qpos, stamp: transform_stamped(
        stamp, parent, child, transform_of(link.origin.then(at(quat_wxyz=qpos[adr : adr + 4])))
    )


def _free(frames: RobotFrames, link: RobotLink) -> PoseOfQpos:
    """The pose of a body that moves freely: its seven numbers as they are."""
    (parent, child), adr = frames.ends(link), _address(link)

    def convert(qpos: Sequence[float], stamp: Any) -> Any:
        translation, rotation = vector3(qpos[adr : adr + 3]), quaternion(qpos[adr + 3 : adr + 7])
        return transform_stamped(stamp, parent, child, Transform(translation=translation, rotation=rotation))

    return convert


def _transform(translation: Any, x: float, y: float, z: float, w: float) -> Any:
    rotation = Quaternion(x=x, y=y, z=z, w=w)
    return Transform(translation=translation, rotation=rotation)


def _half_turn(link: RobotLink) -> RigidTransform:
    """Half a turn about a hinge's axis: its quaternion is (0, axis)."""
    return at(quat_wxyz=(0.0, *([] if link.axis is None else link.axis)))


def _xyzw(poses: Iterable[RigidTransform]) -> Array:
    return np.array([np.roll(pose.quat_wxyz, -1) for pose in poses]).reshape(-1, 4)


def _kind(link: RobotLink) -> int:
    return -1 if link.joint is None else link.joint.jnt_type


def _address(link: RobotLink) -> int:
    return -1 if link.joint is None else link.joint.qpos_local_offset


def _addresses(links: Sequence[RobotLink]) -> np.ndarray[Any, np.dtype[np.intp]]:
    return np.array([_address(link) for link in links], dtype=np.intp)
