"""What can be drawn into the world. Lengths are metres in world coordinates, thickness is pixels."""

from dataclasses import dataclass

from urlab.geometry import IDENTITY_WXYZ, Quat, Vec3

Color = tuple[float, float, float]
"""Red, green, blue in 0..1."""

MARKER_RADIUS_M = 0.05
MAX_REACH_M = 1e6
"""Farther from the origin, and larger, nothing is drawn: single precision would show noise."""

DEFAULT_THICKNESS_PX = 1.0
DEFAULT_AXES_SCALE_M = 0.2
HEAD_SHARE = 0.2
"""How much of an arrow is its head, unless the drawing says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Anything that is drawn. ``ttl_s`` is in wall seconds: 0 is the next picture of each view, below 0 is for good.

    Drawings of one ``tag`` can be cleared together.
    """

    ttl_s: float = 0.0
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Marker(Drawing):
    """A small sphere, with a text beside it."""

    location: Vec3
    color: Color
    label: str = ""


@dataclass(frozen=True, slots=True)
class Line(Drawing):
    """A straight line."""

    from_: Vec3
    to: Vec3
    color: Color
    thickness: float = DEFAULT_THICKNESS_PX


@dataclass(frozen=True, slots=True)
class WireBox(Drawing):
    """The edges of a box."""

    center: Vec3
    half_extents: Vec3
    color: Color
    quat_wxyz: Quat = IDENTITY_WXYZ


@dataclass(frozen=True, slots=True)
class Arrow(Drawing):
    """A line that ends in a head. ``arrow_size`` is the head's length; None is a share of the arrow's length."""

    from_: Vec3
    to: Vec3
    color: Color
    thickness: float = DEFAULT_THICKNESS_PX
    arrow_size: float | None = None


@dataclass(frozen=True, slots=True)
class Axes(Drawing):
    """A coordinate frame: x red, y green, z blue, each ``scale`` long."""

    location: Vec3
    quat_wxyz: Quat = IDENTITY_WXYZ
    scale: float = DEFAULT_AXES_SCALE_M
