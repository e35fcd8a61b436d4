"""Typed values out of the maps and lists that travel; what is absent becomes empty."""

from collections.abc import Mapping, Sequence
from typing import Any

Vec3 = tuple[float, float, float]
Vec4 = tuple[float, float, float, float]
Vec6 = tuple[float, float, float, float, float, float]

IDENTITY_XYZW: Vec4 = (0.0, 0.0, 0.0, 1.0)
IDENTITY_WXYZ: Vec4 = (1.0, 0.0, 0.0, 0.0)


def vec3(values: Sequence[float] | None, default: Vec3 = (0.0, 0.0, 0.0)) -> Vec3:
    """Three numbers, or the default when there are none."""
    if not values:
        return default
    x, y, z = values
    return (float(x), float(y), float(z))


def vec4(values: Sequence[float] | None, default: Vec4) -> Vec4:
    """Four numbers, or the default when there are none."""
    if not values:
        return default
    a, b, c, d = values
    return (float(a), float(b), float(c), float(d))


def vec6(values: Sequence[float] | None) -> Vec6:
    """Six numbers, or zeros when there are none."""
    a, b, c, d, e, f = values or (0.0,) * 6
    return (float(a), float(b), float(c), float(d), float(e), float(f))


def words(block: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Fields that are text."""
    return {name: str(block.get(name) or "") for name in names}


def flags(block: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Fields that are true or false."""
    return {name: bool(block.get(name)) for name in names}
