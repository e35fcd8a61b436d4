"""The last look at a body: plain values only, neither deep nor many, however it was encoded."""

import numpy as np

from urlab.evaluation.http.encoding import decode_array, is_array
from urlab.evaluation.http.numpy_pieces import PendingArray
from urlab.evaluation.problems import BadBody

MAX_DEPTH = 32
MAX_VALUES = 250_000
_MAX_INT_BITS = 64


class _Walk:
    """Copies a value part by part; what is shared counts each time, so a short body cannot stand for a huge one."""

    def __init__(self) -> None:
        self._values = 0

    def copy(self, value: object, depth: int) -> object:
        self._count(depth)
        if isinstance(value, dict):
            return self._copy_dict(value, depth + 1)
        if isinstance(value, list):
            return self._copy_list(value, depth + 1)
        if isinstance(value, tuple):
            return tuple([self.copy(one, depth + 1) for one in value])
        return _leaf(value)

    def _copy_dict(self, value: dict[object, object], depth: int) -> object:
        if is_array(value):
            return decode_array(value)
        copied: dict[str, object] = {}
        for key, one in value.items():
            if not isinstance(key, str):
                raise BadBody(f"the keys of a body must be text, one is of type {type(key).__name__}")
            copied[key] = self.copy(one, depth)
        return copied

    def _copy_list(self, value: list[object], depth: int) -> object:
        """A list of floats, as most actions are, needs no look at each."""
        if not all(type(one) is float for one in value):
            return [self.copy(one, depth) for one in value]
        if value:
            self._count(depth, len(value))
        return value

    def _count(self, depth: int, values: int = 1) -> None:
        self._values += values
        if depth > MAX_DEPTH:
            raise BadBody(f"the body is nested more than {MAX_DEPTH} levels deep")
        if self._values > MAX_VALUES:
            raise BadBody(f"the body holds more than {MAX_VALUES} values; send numbers as arrays")


def plain(value: object) -> object:
    """A copy of ``value`` made of dict, list, tuple, str, bytes, numbers, None and numpy arrays; else BadBody."""
    return _Walk().copy(value, 0)


def _leaf(value: object) -> object:
    if isinstance(value, PendingArray):
        return value.finished()
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        raise BadBody(f"the body holds a whole number of {value.bit_length()} bits; the limit is {_MAX_INT_BITS}")
    if value is None or isinstance(value, bool | int | float | str | bytes | bytearray | np.ndarray):
        return value
    raise BadBody(f"the body holds a {type(value).__name__} where a plain value or an array was expected")
