"""The objects of a task in a running scene: where they are, and how to put them somewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from urlab.compile import CompiledScene
from urlab.errors import known
from urlab.evaluation.tasks.layout import Layout
from urlab.geometry import Pose


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an object's numbers are: its seven of ``qpos``, or its row of ``mocap_pos``; and its joints in ``qpos``."""

    free: slice | None
    mocap: int
    joints: Mapping[str, int]


class ObjectPort:
    """Reads and places objects. Whoever calls it owns the data."""

    def __init__(self, scene: CompiledScene, names: Mapping[str, Any]) -> None:
        """``names`` has the objects by name, each with its ``joints`` by name."""
        roots = {one.actor.name: one.body_names[0] for one in scene.placed if one.actor.name in names}
        self._places = {name: _find(scene.model, name, roots[name], one.joints) for name, one in names.items()}

    def poses(self, data: Any) -> dict[str, Pose]:
        """Where the objects are in the world."""
        return {name: _pose(data, place) for name, place in self._places.items()}

    def joints(self, data: Any) -> dict[str, dict[str, float]]:
        """Joint positions (rad or m) of those objects that have joints."""
        return {
            name: {joint: float(data.qpos[index]) for joint, index in place.joints.items()}
            for name, place in self._places.items()
            if place.joints
        }

    def put(self, data: Any, layout: Layout) -> None:
        """Place every object; ValueError when the layout is of other objects."""
        if layout.poses.keys() != self._places.keys():
            raise ValueError(f"the layout has {known(layout.poses)}; the scene has {known(self._places)}")
        for name, place in self._places.items():
            _put(data, place, layout.poses[name])
            for joint, value in layout.joints.get(name, {}).items():
                data.qpos[place.joints[joint]] = value


def _find(model: Any, name: str, root: str, joints: Mapping[str, Any]) -> _Place:
    body = model.body(root)
    mocap = int(body.mocapid[0])
    start = int(model.jnt_qposadr[body.jntadr[0]]) if mocap < 0 else 0
    return _Place(
        free=slice(start, start + 7) if mocap < 0 else None,
        mocap=mocap,
        joints={joint: int(model.joint(f"{name}_{joint}").qposadr[0]) for joint in joints},
    )


def _pose(data: Any, place: _Place) -> Pose:
    if place.free is None:
        return Pose.of(data.mocap_pos[place.mocap].tolist(), data.mocap_quat[place.mocap].tolist())
    numbers = data.qpos[place.free].tolist()
    return Pose.of(numbers[:3], numbers[3:])


def _put(data: Any, place: _Place, pose: Pose) -> None:
    if place.free is None:
        data.mocap_pos[place.mocap], data.mocap_quat[place.mocap] = pose.pos, pose.quat_wxyz
    else:
        data.qpos[place.free] = (*pose.pos, *pose.quat_wxyz)
