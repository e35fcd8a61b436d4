"""How space is stretched, seen from anywhere in a model."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from urlab.geometry import Vec3, normalised
from urlab.mujoco_versions import present

Array = NDArray[np.float64]
_SAME = 1e-9
"""Factors that differ by less, relatively, are the same factor."""
_ROUNDED_RAD = 2e-3
"""Authors write a quarter turn as 1.57, so turns count as quarters when they are this close to one."""


@dataclass(frozen=True)
class Stretch:
    """A stretch of space: ``matrix`` maps points, in the axes of the frame that it is seen from.

    ``mean`` is the factor of lengths that have no direction: the cube root of the volume's.
    """

    matrix: Array
    mean: float
    is_uniform: bool

    @classmethod
    def along_axes(cls, scale: Vec3) -> "Stretch":
        """The stretch by three positive factors."""
        uniform = _agree(scale, _SAME)
        return cls(np.diag(scale), scale[0] if uniform else float(np.cbrt(np.prod(scale))), uniform)

    def turned(self, rotation: Array) -> "Stretch":
        """The same, seen from a frame turned by ``rotation`` against this one."""
        return self if self.is_uniform else Stretch(rotation.T @ self.matrix @ rotation, self.mean, False)

    def point(self, position: Array) -> Array:
        """Where a point goes. An unset position, NaN in MuJoCo, stays as it is."""
        return np.array(position) if np.isnan(position[0]) else self.matrix @ position

    @property
    def factors(self) -> Array:
        """By how much lengths along the frame's x, y and z axes grow."""
        return np.diag(self.matrix).copy()

    @property
    def is_aligned(self) -> bool:
        """Whether the frame's axes stay at right angles: it is turned by quarters, or about an axis of the stretch."""
        factors = self.factors
        off_diagonal = np.abs(self.matrix - np.diag(factors))
        allowed = np.maximum(_SAME * self.mean, _ROUNDED_RAD * np.abs(factors[:, None] - factors))
        return bool(np.all(off_diagonal <= allowed))

    def agrees_along(self, *axes: int) -> bool:
        """Whether the factors along those axes are the same, or would be without a rounded turn."""
        return _agree(self.factors[list(axes)], 1e-4)


@dataclass(frozen=True)
class Space:
    """A whole model under one stretch, which ``whole`` gives in the world's axes. Orientations never change."""

    whole: Stretch

    def around(self, element: Any) -> Stretch:
        """The stretch in the frame that ``element.pos`` is in."""
        if self.whole.is_uniform:
            return self.whole
        holder = element.frame or element.parent
        return self.whole if holder is None else self.inside(holder)

    def inside(self, element: Any) -> Stretch:
        """The stretch in the element's own frame."""
        return self.whole if self.whole.is_uniform else self.around(element).turned(rotation_of(element))


def rotation_of(element: Any) -> Array:
    """The element's orientation in its parent, as a matrix."""
    return rotation(element.quat, element.alt, element.compiler)


def rotation(quat_wxyz: Array, alternative: Any, compiler: Any) -> Array:
    """An orientation as a matrix, whether its author has written a quaternion or an alternative to one."""
    if int(alternative.type) != int(mujoco.mjtOrientation.mjORIENTATION_QUAT):
        quat_wxyz = mujoco.MjSpec.resolve_orientation(
            degree=compiler.degree, sequence=compiler.eulerseq, orientation=alternative
        )
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, np.array(normalised(tuple(quat_wxyz))))
    return flat.reshape(3, 3)


def grow(element: Any, factor: float, *fields: str) -> None:
    """Multiply those fields of an element of a spec, numbers or arrays, that this version of MuJoCo has."""
    for field in present(element, *fields):
        setattr(element, field, getattr(element, field) * factor)


def spelled(factors: Iterable[float]) -> str:
    """Factors for a message: ``[2, 1, 0.5]``."""
    return f"[{', '.join(f'{factor:g}' for factor in factors)}]"


def _agree(factors: Iterable[float], tolerance: float) -> bool:
    values = list(factors)
    return max(values) - min(values) <= tolerance * max(values)
