"""The bodies of requests as plain values: read in three formats, neither deep nor many, however they are encoded."""

import msgspec
import numpy as np

from urlab.evaluation.encoding import BodyFormat, decode_array, is_array
from urlab.evaluation.errors import BadBody
from urlab.evaluation.http.pickles import PendingArray, read_pickle

MAX_DEPTH = 32
MAX_VALUES = 250_000
_MAX_INT_BITS = 64

_MEDIA_TYPES = {
    **{body_format.value: body_format for body_format in BodyFormat},
    "application/x-msgpack": BodyFormat.MSGPACK,
    "application/vnd.msgpack": BodyFormat.MSGPACK,
    "application/x-pickle": BodyFormat.PICKLE,
}


def format_of(content_type: str | None, default: BodyFormat) -> BodyFormat:
    """The format that a Content-Type names; without one, ``default``."""
    if not content_type:
        return default
    body_format = _MEDIA_TYPES.get(content_type.partition(";")[0].strip().lower())
    if body_format is None:
        known = ", ".join(one.value for one in BodyFormat)
        raise BadBody(f"Content-Type {content_type[:80]!r} is not known; send {known}")
    return body_format


def read_body(body: bytes, body_format: BodyFormat) -> object:
    """The value in ``body``, None if it is empty; BadBody when it cannot be read.

    It is made of dict, list, tuple, str, bytes, numbers, None and numpy arrays.
    """
    if not body:
        return None
    return _Copy().of(read_pickle(body) if body_format is BodyFormat.PICKLE else _decoded(body, body_format), 0)


def _decoded(body: bytes, body_format: BodyFormat) -> object:
    decode, name = (
        (msgspec.json.decode, "JSON") if body_format is BodyFormat.JSON else (msgspec.msgpack.decode, "msgpack")
    )
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, ValueError) as problem:
        raise BadBody(f"Invalid {name}: {str(problem)[:200]}") from problem


class _Copy:
    """Copies a value part by part; what is shared counts each time, so a short body cannot stand for a huge one."""

    def __init__(self) -> None:
        self._values = 0

    def of(self, value: object, depth: int) -> object:
        self._count(depth)
        if isinstance(value, dict):
            return self._dict(value, depth + 1)
        if isinstance(value, list):
            return self._list(value, depth + 1)
        if isinstance(value, tuple):
            return tuple([self.of(one, depth + 1) for one in value])
        return _leaf(value)

    def _dict(self, value: dict[object, object], depth: int) -> object:
        if is_array(value):
            return decode_array(value)
        copied: dict[str, object] = {}
        for key, one in value.items():
            if not isinstance(key, str):
                raise BadBody(f"the keys of a body must be text, one is of type {type(key).__name__}")
            copied[key] = self.of(one, depth)
        return copied

    def _list(self, value: list[object], depth: int) -> object:
        """A list of floats, as most actions are, needs no look at each."""
        if not all(type(one) is float for one in value):
            return [self.of(one, depth) for one in value]
        if value:
            self._count(depth, len(value))
        return value

    def _count(self, depth: int, values: int = 1) -> None:
        self._values += values
        if depth > MAX_DEPTH:
            raise BadBody(f"the body is nested more than {MAX_DEPTH} levels deep")
        if self._values > MAX_VALUES:
            raise BadBody(f"the body holds more than {MAX_VALUES} values; send numbers as arrays")


def _leaf(value: object) -> object:
    if isinstance(value, PendingArray):
        return value.finished()
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        raise BadBody(f"the body holds a whole number of {value.bit_length()} bits; the limit is {_MAX_INT_BITS}")
    if value is None or isinstance(value, bool | int | float | str | bytes | bytearray | np.ndarray):
        return value
    raise BadBody(f"the body holds a {type(value).__name__} where a plain value or an array was expected")
