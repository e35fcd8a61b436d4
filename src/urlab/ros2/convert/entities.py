"""The bodies outside the robots: a geometry_msgs/PoseStamped each, and the moving ones in tf.

A state's ``qpos`` is of its own time, while its ``xpos`` is what the last step began with. So a free body's pose comes
from ``qpos``, and what is fixed to it follows; ``xpos`` serves for mocap bodies, which no step moves.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from urlab.ros2.convert.geometry import Numbers, Transform, pose_message, quaternion, transform_stamped, vector3
from urlab.ros2.convert.links import WORLD
from urlab.ros2.convert.pose import Pose, at
from urlab.ros2.convert.robot_state import SceneChanged
from urlab.ros2.convert.stamps import header, time_message
from urlab.ros2.messages import make
from urlab_wire.stream_messages import StateFull

if TYPE_CHECKING:
    from urlab.ros2.frames import SceneFrames

POSE_TYPE = "geometry_msgs/msg/PoseStamped"


@dataclass(frozen=True, eq=False)
class EntityFrame:
    """What tf knows of an entity: its frame, and the entity ``carrier`` in which it has the fixed pose ``place``.

    ``carrier`` is the entity itself where that moves, and None for what is fixed to the world: ``place`` is then that
    in the world. ``topic_name`` is its name made legal for ROS. ``is_robots``: a robot's own free body, whose frame is
    among those of the robot.
    """

    name: str
    topic_name: str
    frame_id: str
    carrier: str | None
    place: Pose
    is_robots: bool = False

    @property
    def moves(self) -> bool:
        """Whether it moves by itself, and not with another body."""
        return self.carrier == self.name


class EntityPoses:
    """Poses of entities in the world. Made once per scene; any thread."""

    type_name = POSE_TYPE

    def __init__(self, frames: "SceneFrames") -> None:
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
