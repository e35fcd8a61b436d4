"""What objects are made of: primitives on links, links on joints. Metres and radians; MuJoCo's half sizes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from urlab.geometry import IDENTITY_WXYZ, Pose, Quat, Vec3, wxyz_from_axis_angle


class PartKind(StrEnum):
    """The primitives, by MuJoCo's words."""

    BOX = "box"
    CYLINDER = "cylinder"
    SPHERE = "sphere"
    CAPSULE = "capsule"


@dataclass(frozen=True)
class Part:
    """A primitive in the frame of its link. ``size`` as in MuJoCo: half lengths, or radius and half height (along z).

    ``shade`` times the object's colour is the part's.
    """

    kind: PartKind
    size: tuple[float, ...]
    pos: Vec3 = (0.0, 0.0, 0.0)
    quat_wxyz: Quat = IDENTITY_WXYZ
    shade: float = 1.0

    @property
    def volume(self) -> float:
        """Cubic metres."""
        if self.kind is PartKind.BOX:
            return 8 * math.prod(self.size)
        radius = self.size[0]
        ball = 4 / 3 * math.pi * radius**3
        if self.kind is PartKind.SPHERE:
            return ball
        rod = 2 * math.pi * radius**2 * self.size[1]
        return rod if self.kind is PartKind.CYLINDER else rod + ball

    def moved(self, pose: Pose) -> "Part":
        """The part when its frame is moved."""
        at = pose.apply(Pose(self.pos, self.quat_wxyz))
        return replace(self, pos=at.pos, quat_wxyz=at.quat_wxyz)


@dataclass(frozen=True)
class ObjectJoint:
    """One degree of freedom between a link and the object's base; ``range`` in metres (slide) or radians (hinge)."""

    name: str
    kind: str
    axis: Vec3
    range: tuple[float, float]
    pos: Vec3 = (0.0, 0.0, 0.0)
    damping: float = 1.0
    frictionloss: float = 0.3

    @property
    def unit(self) -> str:
        """What task files state it in."""
        return "m" if self.kind == "slide" else "deg"

    def from_file(self, value: float) -> float:
        """From metres or degrees, as task files state it."""
        return value if self.kind == "slide" else math.radians(value)

    def to_file(self, value: float) -> float:
        """To metres or degrees."""
        return value if self.kind == "slide" else math.degrees(value)

    def moved(self, value: float) -> Pose:
        """The pose of its link in the frame of the base."""
        if self.kind == "slide":
            x, y, z = (part * value for part in self.axis)
            return Pose((x, y, z))
        about = Pose(self.pos)
        return about.apply(Pose(quat_wxyz=wxyz_from_axis_angle(self.axis, value))).apply(about.inverse())


@dataclass(frozen=True)
class ObjectLink:
    """Parts that move as one. The first link of an object is its base and has no joint; the frames agree at joint 0.

    ``support_z`` is the height, in its frame, of the surface on which other things rest: a top, or a container's floor.
    """

    name: str
    parts: tuple[Part, ...]
    support_z: float
    joint: ObjectJoint | None = None

    def pose(self, joints: Mapping[str, float]) -> Pose:
        """Where the link is in the frame of its object."""
        return Pose() if self.joint is None else self.joint.moved(joints[self.joint.name])


def box(size: Vec3, pos: Vec3 = (0.0, 0.0, 0.0), *, shade: float = 1.0) -> Part:
    """A box by its full lengths."""
    return Part(PartKind.BOX, tuple(length / 2 for length in size), pos, shade=shade)


def bar(axis: str, length: float, thickness: float, pos: Vec3, *, shade: float = 0.5) -> Part:
    """A square bar along x, y or z."""
    x, y, z = (length if axis == one else thickness for one in "xyz")
    return box((x, y, z), pos, shade=shade)
