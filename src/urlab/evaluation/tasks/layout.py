"""Layouts: where everything is when an episode begins. A seed gives the same ones on every machine."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from urlab.evaluation.embodiments import TABLE_TOP_Z_M
from urlab.evaluation.tasks.objects import TABLE, TABLE_NAME, TABLE_POSE_W, ObjectSpec, bounds_of
from urlab.evaluation.tasks.task import Task
from urlab.geometry import Pose, wxyz_from_axis_angle

T = TypeVar("T")
Joints = Mapping[str, Mapping[str, float]]
"""Of the articulated objects, by name: joint positions in metres or radians."""
PointXY = tuple[float, float]

GAP_M = 0.05
"""Objects begin at least this far from each other, seen from above: room for fingers."""
DECIMALS = 6
"""Layouts are rounded to this, so that the last bits of a machine's arithmetic do not show."""
_TRIES_PER_OBJECT = 100


@dataclass(frozen=True)
class Layout:
    """``poses`` of all objects in the world; ``joints`` of the articulated ones, in metres or radians."""

    seed: int
    instruction: str
    poses: Mapping[str, Pose]
    joints: Joints


class ObjectPoses:
    """The objects of a task at one moment. Names are those of objects, of links (``cabinet/drawer``), or ``table``."""

    def __init__(self, objects: Mapping[str, ObjectSpec], poses: Mapping[str, Pose], joints: Joints) -> None:
        self._objects = {**objects, TABLE_NAME: TABLE}
        self._poses = {**poses, TABLE_NAME: TABLE_POSE_W}
        self._joints = joints

    def spec(self, name: str) -> ObjectSpec:
        """What the object is; a link's name gives the whole object."""
        return self._objects[name.partition("/")[0]]

    def pose(self, name: str) -> Pose:
        """In the world."""
        root, _, link = name.partition("/")
        pose_w = self._poses[root]
        return pose_w.apply(self._objects[root].link(link).pose(self._joints[root])) if link else pose_w

    def support_z(self, name: str) -> float:
        """The height of its surface that carries other things, in its frame."""
        spec, link = self.spec(name), name.partition("/")[2]
        return (spec.link(link) if link else spec.links[0]).support_z

    def joint(self, name: str, joint: str) -> float:
        """A joint's position, in metres or radians."""
        return self._joints[name][joint]

    def joint_in_file_units(self, name: str, joint: str) -> float:
        """A joint's position, in metres (slide) or degrees (hinge)."""
        return self._objects[name].joints[joint].to_file(self._joints[name][joint])


def random_layouts(task: Task, seed: int) -> Iterator[Layout | None]:
    """Endless tries of a seed: objects in their ranges and apart from each other; None where there was no room."""
    stream = RandomStream(f"{task.name}/{seed}")
    instruction = _instruction(task, stream)
    while True:
        joints = {name: _joints(spec, stream) for name, spec in task.objects.items() if spec.joints}
        poses = _poses(task.objects, joints, stream)
        yield None if poses is None else Layout(seed, instruction, poses, joints)


class RandomStream:
    """Random numbers that are the same on every machine and in every version of numpy, seeded by a text.

    They come from the raw output of PCG64: numpy promises that a bit generator's raw output never changes; it promises
    less for what is derived from it, so that is done here.
    """

    def __init__(self, seed_text: str) -> None:
        digest = hashlib.sha256(seed_text.encode()).digest()
        self._source = np.random.PCG64(int.from_bytes(digest, "big"))

    def unit(self) -> float:
        """Evenly from [0, 1), a multiple of 2**-53."""
        return (int(self._source.random_raw()) >> 11) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        """Evenly between two numbers."""
        return low + (high - low) * self.unit()

    def choice(self, options: Sequence[T]) -> T:
        """One of the options, each as likely."""
        return options[int(self.unit() * len(options))]


@dataclass(frozen=True)
class Outline:
    """An object seen from above, as a rectangle that turns with it: four corners in world x and y, in order around.

    Plain arithmetic, no libraries, so that layouts are the same everywhere.
    """

    corners: tuple[PointXY, ...]

    def is_within(self, gap_m: float, other: "Outline") -> bool:
        """Whether the two come nearer than ``gap_m``.

        By separating axes: for corner against corner it may say so up to 1.4 gaps away.
        """
        return not any(self._gap_along(axis, other) >= gap_m for axis in (*self._axes(), *other._axes()))

    def _axes(self) -> tuple[PointXY, PointXY]:
        (x0, y0), (x1, y1) = self.corners[:2]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        x, y = (x1 - x0) / length, (y1 - y0) / length
        return (x, y), (-y, x)

    def _gap_along(self, axis: PointXY, other: "Outline") -> float:
        mine = [x * axis[0] + y * axis[1] for x, y in self.corners]
        theirs = [x * axis[0] + y * axis[1] for x, y in other.corners]
        return max(min(mine) - max(theirs), min(theirs) - max(mine))


def outline_of(spec: ObjectSpec, pose_w: Pose, joints: Mapping[str, float]) -> Outline:
    """Around the object as it stands, upright, its joints as given; a drawer or door counts where it is."""
    low, high = bounds_of(part.moved(link.pose(joints)) for link in spec.links for part in link.parts)
    around = ((low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1]))
    placed = (pose_w.apply(Pose((x, y, 0.0))).pos for x, y in around)
    return Outline(tuple((x, y) for x, y, _ in placed))


def _instruction(task: Task, stream: RandomStream) -> str:
    template = stream.choice(task.instructions)
    return template.format(**{name: stream.choice(spec.labels) for name, spec in task.objects.items()})


def _joints(spec: ObjectSpec, stream: RandomStream) -> dict[str, float]:
    ranges = {name: spec.placement.joints.get(name, (joint.range[0],) * 2) for name, joint in spec.joints.items()}
    return {name: round(stream.between(*limits), DECIMALS) + 0.0 for name, limits in ranges.items()}


def _poses(objects: Mapping[str, ObjectSpec], joints: Joints, stream: RandomStream) -> dict[str, Pose] | None:
    """All poses; None when there was no room for one of them."""
    poses: dict[str, Pose] = {}
    outlines: dict[str, Outline] = {}
    for name, spec in objects.items():
        carrier = (spec.placement.on or "").partition("/")[0]
        others = [outline for other, outline in outlines.items() if other != carrier]
        for _ in range(_TRIES_PER_OBJECT):
            pose = _rounded(_pose(spec, ObjectPoses(objects, poses, joints), stream))
            outline = outline_of(spec, pose, joints.get(name, {}))
            if not any(outline.is_within(GAP_M, other) for other in others):
                poses[name], outlines[name] = pose, outline
                break
        else:
            return None
    return poses


def _pose(spec: ObjectSpec, earlier: ObjectPoses, stream: RandomStream) -> Pose:
    place = spec.placement
    x, y, yaw_deg = stream.between(*place.x), stream.between(*place.y), stream.between(*place.yaw_deg)
    turn = wxyz_from_axis_angle((0.0, 0.0, 1.0), math.radians(yaw_deg))
    foot = -spec.bounds[0][2]
    if place.on is None:
        return Pose((x, y, TABLE_TOP_Z_M + foot), turn)
    return earlier.pose(place.on).apply(Pose((x, y, earlier.support_z(place.on) + foot), turn))


def _rounded(pose: Pose) -> Pose:
    """The pose to `DECIMALS` places, without negative zeros."""
    x, y, z = (round(part, DECIMALS) + 0.0 for part in pose.pos)
    w, i, j, k = (round(part, DECIMALS) + 0.0 for part in pose.quat_wxyz)
    return Pose((x, y, z), (w, i, j, k))
