"""The bodies of requests as plain values: read in three formats, neither deep nor many, however they are encoded.

Reading one takes at most `EXTRA_BYTES` and ten times the body's size. A value takes some tens of bytes in memory and
may take a single one in a body, so values of large bodies are counted before the first of them is made.
"""

import msgspec
import numpy as np

from urlab.evaluation.encoding import BodyFormat, array_bytes, array_over, is_array
from urlab.evaluation.errors import BadBody
from urlab.evaluation.http.pickles import PendingArray, read_pickle

MAX_DEPTH = 32
MAX_VALUES = 250_000
EXTRA_BYTES = 64 << 20
_MAX_INT_BITS = 64
_FEW_BYTES = 256 << 10
"""However many values a body of this size holds, they take less than `EXTRA_BYTES`."""

_MEDIA_TYPES = {
    **{body_format.value: body_format for body_format in BodyFormat},
    "application/x-msgpack": BodyFormat.MSGPACK,
    "application/vnd.msgpack": BodyFormat.MSGPACK,
    "application/x-pickle": BodyFormat.PICKLE,
}


def format_of(content_type: str | None) -> BodyFormat:
    """The format that a Content-Type names. There must be one, with an empty body too.

    None of those that are known is one that a web page can send to another origin without being asked to by it.
    """
    body_format = _MEDIA_TYPES.get((content_type or "").partition(";")[0].strip().lower())
    if body_format is None:
        known = ", ".join(one.value for one in BodyFormat)
        sent = f"Content-Type {content_type[:80]!r} is not known" if content_type else "Content-Type is missing"
        raise BadBody(f"{sent}; send {known}")
    return body_format


class LongWork(Exception):
    """A body stands for more values than its reader has the time for now."""


def read_body(body: bytes, body_format: BodyFormat, *, at_once: int = MAX_VALUES) -> object:
    """The value in ``body``, None if it is empty; BadBody when it cannot be read.

    It is made of dict, list, tuple, str, bytes, numbers, None and numpy arrays. LongWork beyond ``at_once`` values.
    """
    if not body:
        return None
    if len(body) > _FEW_BYTES:
        _count_ahead(body, body_format)
    return _Copy(at_once).of(read_pickle(body) if body_format is BodyFormat.PICKLE else _decoded(body, body_format), 0)


def _decoded(body: bytes, body_format: BodyFormat) -> object:
    decode, name = (
        (msgspec.json.decode, "JSON") if body_format is BodyFormat.JSON else (msgspec.msgpack.decode, "msgpack")
    )
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, ValueError) as problem:
        raise BadBody(f"Invalid {name}: {str(problem)[:200]}") from problem


def _count_ahead(body: bytes, body_format: BodyFormat) -> None:
    """BadBody if there are too many values; those of pickles are counted by `read_pickle`."""
    if body_format is BodyFormat.JSON:
        # A value follows each of these. Those inside of text count as well: they are few where arrays are base64.
        if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
            raise _too_many()
    elif body_format is BodyFormat.MSGPACK:
        _count_msgpack(body)


_FIXED_BYTES = {
    **dict.fromkeys((0xC0, 0xC2, 0xC3), 0),
    **dict.fromkeys((0xCC, 0xD0), 1),
    **dict.fromkeys((0xCD, 0xD1, 0xD4), 2),
    **dict.fromkeys((0xCA, 0xCE, 0xD2), 4),
    **dict.fromkeys((0xCB, 0xCF, 0xD3), 8),
    0xD5: 3,
    0xD6: 5,
    0xD7: 9,
    0xD8: 17,
}
"""Bytes after the first one, of values that have no length of their own."""
_LENGTH_BYTES = {
    **dict.fromkeys((0xC4, 0xC7, 0xD9), 1),
    **dict.fromkeys((0xC5, 0xC8, 0xDA), 2),
    **dict.fromkeys((0xC6, 0xC9, 0xDB), 4),
}
"""Bytes of the length, of text, bytes and extensions; those have a byte for their type as well."""
_EXTENSIONS = (0xC7, 0xC8, 0xC9)


def _count_msgpack(body: bytes) -> None:
    """Walk over the values without making any; what is damaged is left to the decoder."""
    at, values, end = 0, 0, len(body)
    while at < end:
        first = body[at]
        at += 1
        values += 1
        if values > MAX_VALUES:
            raise _too_many()
        if first in _LENGTH_BYTES:
            size = _LENGTH_BYTES[first]
            at += size + int.from_bytes(body[at : at + size], "big") + (first in _EXTENSIONS)
        elif 0xA0 <= first <= 0xBF:
            at += first & 0x1F
        elif first in (0xDC, 0xDE):
            at += 2
        elif first in (0xDD, 0xDF):
            at += 4
        else:
            at += _FIXED_BYTES.get(first, 0)


class _Copy:
    """Copies a value part by part; what is shared counts each time, so a short body cannot stand for a huge one.

    The data of arrays is decoded once, however many of them share it.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._values = 0
        self._decoded: dict[int, tuple[object, bytes]] = {}
        """Data of arrays by its identity, which is its own while it is kept here, and its bytes."""

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
            return array_over(self._bytes(value.get("data")), value)
        copied: dict[str, object] = {}
        for key, one in value.items():
            if not isinstance(key, str):
                raise BadBody(f"the keys of a body must be text, one is of type {type(key).__name__}")
            copied[key] = self.of(one, depth)
        return copied

    def _bytes(self, data: object) -> bytes:
        if id(data) not in self._decoded:
            self._decoded[id(data)] = data, array_bytes(data)
        return self._decoded[id(data)][1]

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
        if self._values > self._at_once:
            raise _too_many() if self._values > MAX_VALUES else LongWork


def _too_many() -> BadBody:
    return BadBody(f"the body holds more than {MAX_VALUES} values; send numbers as arrays")


def _leaf(value: object) -> object:
    if isinstance(value, PendingArray):
        return value.finished()
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        raise BadBody(f"the body holds a whole number of {value.bit_length()} bits; the limit is {_MAX_INT_BITS}")
    if value is None or isinstance(value, bool | int | float | str | bytes | bytearray | np.ndarray):
        return value
    raise BadBody(f"the body holds a {type(value).__name__} where a plain value or an array was expected")
