"""Where an actor shall be, as a request says it."""

from collections.abc import Sequence
from dataclasses import dataclass

from urlab.errors import BadValue
from urlab.geometry import Pose, Quat, Vec3, normalised, wxyz_from_euler_deg, wxyz_from_xyzw
from urlab.numbers import finite_numbers

Numbers = Sequence[float]


@dataclass(frozen=True, slots=True)
class Placement:
    """What a request states of a pose and a scale; None is what it leaves out."""

    location: Vec3 | None = None
    quat_wxyz: Quat | None = None
    scale: Vec3 | None = None

    @classmethod
    def read(
        cls,
        location: Numbers | None = None,
        rotation_quat_xyzw: Numbers | None = None,
        rotation_euler_deg: Numbers | None = None,
        scale: Numbers | None = None,
    ) -> "Placement":
        """Check what a request states; a quaternion wins over angles."""
        return cls(
            None if location is None else vector("location", location),
            read_rotation(rotation_quat_xyzw, rotation_euler_deg),
            None if scale is None else _scale(scale),
        )

    def pose(self, otherwise: Pose) -> Pose:
        """The pose, with what was left out taken from another."""
        return Pose(
            otherwise.pos if self.location is None else self.location,
            otherwise.quat_wxyz if self.quat_wxyz is None else self.quat_wxyz,
        )


def read_rotation(quat_xyzw: Numbers | None, euler_deg: Numbers | None) -> Quat | None:
    """A rotation from a quaternion or, if there is none, from roll, pitch and yaw."""
    if quat_xyzw is not None:
        numbers = finite_numbers("rotation_quat", quat_xyzw, 4).tolist()
        try:
            return normalised(wxyz_from_xyzw(numbers))
        except ValueError as zero:
            raise BadValue(f"rotation_quat: {zero}") from zero
    return None if euler_deg is None else normalised(wxyz_from_euler_deg(vector("rotation_euler", euler_deg)))


def vector(field: str, numbers: Numbers) -> Vec3:
    """Three finite numbers."""
    x, y, z = finite_numbers(field, numbers, 3).tolist()
    return x, y, z


def _scale(numbers: Numbers) -> Vec3:
    scale = vector("scale", numbers)
    if min(scale) <= 0:
        raise BadValue(f"scale must be above 0, but is {list(scale)}")
    return scale
