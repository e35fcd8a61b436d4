"""Quick convert: how a static mesh takes part in physics."""

from dataclasses import dataclass

from urlab.geometry import Vec3

MIN_THRESHOLD, MAX_THRESHOLD = 0.01, 1.0


@dataclass(frozen=True, slots=True)
class QuickConvert:
    """``static`` stands still, ``driven`` follows its mocap pose, neither falls freely.

    With ``complex_mesh`` the collision shape is a convex decomposition, finer with a smaller ``coacd_threshold``;
    without it, the convex hull. ``friction`` is MuJoCo's: sliding, torsional, rolling.
    """

    static: bool = False
    complex_mesh: bool = False
    coacd_threshold: float = 0.05
    driven: bool = False
    friction: Vec3 = (1.0, 1.0, 1.0)
