"""What all results have in common: a short ``repr``, and how a reply, or one block of it, becomes one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

Vec3 = tuple[float, float, float]
Vec4 = tuple[float, float, float, float]
Vec6 = tuple[float, float, float, float, float, float]

IDENTITY_XYZW = (0.0, 0.0, 0.0, 1.0)
IDENTITY_WXYZ = (1.0, 0.0, 0.0, 0.0)

_LEFT_OUT: Mapping[str, Sequence[float]] = {
    "rotation_quat": IDENTITY_XYZW,
    "quat": IDENTITY_WXYZ,
    "color": (1.0, 1.0, 1.0),
}
"""What vectors are that a reply leaves out; all others are zero."""

Result = TypeVar("Result")

_MOST_ITEMS = 7


class ShortRepr:
    """A result whose ``repr`` fits on a line: without what is empty or the default, and of long lists the length."""

    def __repr__(self) -> str:
        shown = [(one, getattr(self, one.name)) for one in fields(self) if one.repr]  # type: ignore[arg-type]
        told = [(one.name, value) for one, value in shown if value not in (one.default, None, "", [], {})]
        words = [f"{name}={_short(value)}" for name, value in told]
        return f"{type(self).__name__}({', '.join(words)})"


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | dict) and (len(value) > _MOST_ITEMS or not all(_is_small(one) for one in value)):
        return f"<{len(value)}>"
    if isinstance(value, list | tuple):
        inside = ", ".join(_short(one) for one in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return str(value) if isinstance(value, Enum) else repr(value)


def _is_small(value: object) -> bool:
    return isinstance(value, int | float | str)


def result_of(kind: Callable[..., Result], block: object, **others: Any) -> Result:
    """The result that a reply tells, or one block of it: fields of the same name, and ``others``.

    Vectors become tuples; ValueError when one has another length than its field.
    """
    values = dict(others)
    for name, size in _sizes(kind):
        if name not in others and hasattr(block, name):
            value = getattr(block, name)
            values[name] = _vector(name, value, size) if size else value
    return kind(**values)


@cache
def _sizes(kind: Any) -> list[tuple[str, int]]:
    """The fields of a result, each with its length if it is a vector, else 0."""
    return [(one.name, len(get_args(one.type)) if get_origin(one.type) is tuple else 0) for one in fields(kind)]


def _vector(name: str, values: Sequence[float], size: int) -> tuple[float, ...]:
    if len(values) not in (0, size):
        raise ValueError(f"the reply has {len(values)} numbers in {name}, not {size}")
    return tuple(values or _LEFT_OUT.get(name) or (0.0,) * size)
