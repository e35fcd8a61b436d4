"""How values travel in bodies: their formats, arrays as dicts, and observations that a worker has encoded.

The formats are pickle for stock clients, JSON and msgpack as safe and lean alternatives. An array is
``{"type": "numpy_array", "dtype", "shape", "data"}``: ``data`` is C-order bytes, as base64 text where stock clients or
JSON read it, as raw bytes in msgpack. Tuples become lists, numpy scalars become numbers; everything else passes as it
is. Workers, the HTTP server and our own client use this module.
"""

import base64
import binascii
import contextlib
import math
import pickle
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.errors import BadBody

_TYPE = "numpy_array"
_DTYPE = re.compile(r"[<>=|]?(\?|[biuf]\d{1,2}|bool|u?int(8|16|32|64)|float(16|32|64))")
_MAX_DIMENSIONS = 8
_FLOATS = {float}
_LONGEST_DTYPE = 16
_PICKLE_PROTOCOL = 5


class BodyFormat(Enum):
    """How a body is encoded; the value is its media type."""

    PICKLE = "application/octet-stream"
    JSON = "application/json"
    MSGPACK = "application/msgpack"

    @property
    def is_text(self) -> bool:
        """True if array data travels as base64 text: all but msgpack."""
        return self is not BodyFormat.MSGPACK


def write_body(value: object, body_format: BodyFormat) -> bytes:
    """``value``, which is builtins only, in that format; a pickle has protocol 5."""
    if body_format is BodyFormat.PICKLE:
        return pickle.dumps(value, _PICKLE_PROTOCOL)
    return msgspec.json.encode(value) if body_format is BodyFormat.JSON else msgspec.msgpack.encode(value)


def encode(value: Any, *, text: bool) -> Any:
    """``value`` in builtins only; array data as base64 text if ``text``, else as bytes.

    An array that occurs twice is encoded once, and a pickle of the outcome holds it once.
    """
    return _Encoder(text).encode(value)


class _Encoder:
    def __init__(self, text: bool) -> None:
        self._text = text
        self._data: dict[int, str | bytes] = {}

    def encode(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.encode(one) for key, one in value.items()}
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, list | tuple):
            return list(value) if _are_floats(value) else [self.encode(one) for one in value]
        return value.item() if isinstance(value, np.generic) else value

    def _array(self, array: NDArray[Any]) -> dict[str, Any]:
        data = self._data.get(id(array))
        if data is None:
            raw = array.tobytes()
            data = self._data[id(array)] = base64.b64encode(raw).decode("ascii") if self._text else raw
        return {"type": _TYPE, "dtype": _dtype_name(array.dtype), "shape": array.shape, "data": data}


def _are_floats(values: Sequence[Any]) -> bool:
    """As the numbers of most actions are, which need no look at each."""
    return set(map(type, values)) == _FLOATS


def _as_text(value: Any) -> Any:
    """An encoded value with raw array data turned into base64 text."""
    if isinstance(value, dict):
        return {key: _as_text(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def decode(value: Any) -> Any:
    """The inverse of `encode`, for replies of our own server; arrays are read-only views."""
    if isinstance(value, dict):
        return _own_array(value) if is_array(value) else {key: decode(one) for key, one in value.items()}
    return [decode(one) for one in value] if isinstance(value, list) else value


def _own_array(value: Mapping[Any, Any]) -> NDArray[Any]:
    """As `decode_array`; bytes from our own server need fewer checks."""
    dtype, shape, data = _plain_dtype(value["dtype"]), value["shape"], value["data"]
    if dtype is None or type(data) is not bytes or not data:
        return decode_array(value)
    flat = np.frombuffer(data, dtype)
    return flat if len(shape) == 1 else flat.reshape(shape)


def is_array(value: Mapping[Any, Any]) -> bool:
    """True if the dict stands for an array."""
    return value.get("type") == _TYPE


def decode_array(value: Mapping[Any, Any]) -> NDArray[Any]:
    """The array that an encoded dict stands for; BadBody when its parts do not fit together."""
    return array_over(array_bytes(value.get("data")), value)


def array_over(raw: bytes, value: Mapping[Any, Any]) -> NDArray[Any]:
    """The same over its data, as `array_bytes` gives it, without a copy."""
    return checked_array(raw, checked_dtype(value.get("dtype")), value.get("shape"), "C")


@lru_cache(64)
def _dtype_name(dtype: np.dtype[Any]) -> str:
    """NumPy takes two microseconds for it."""
    return str(dtype)


@lru_cache(64)
def _plain_dtype(name: str) -> np.dtype[Any] | None:
    with contextlib.suppress(TypeError):
        return np.dtype(name) if _DTYPE.fullmatch(name) else None
    return None


def checked_dtype(name: object) -> np.dtype[Any]:
    """A dtype of plain numbers (bool, whole, float); objects, text and records are BadBody."""
    dtype = _plain_dtype(name) if isinstance(name, str) and len(name) <= _LONGEST_DTYPE else None
    if dtype is not None:
        return dtype
    sent = f", not {name[:20]!r}" if isinstance(name, str) else ""
    raise BadBody(f"an array must have a dtype of numbers, such as 'float64', 'float32', 'int64' or 'bool'{sent}")


def checked_array(raw: object, dtype: np.dtype[Any], shape: object, order: object) -> NDArray[Any]:
    """The array over ``raw`` without a copy, once its claimed shape agrees with the bytes that are there."""
    if not isinstance(raw, bytes | bytearray) or order not in ("C", "F", None):
        raise BadBody("an array's data must be bytes in C or F order")
    if not isinstance(shape, list | tuple) or len(shape) > _MAX_DIMENSIONS or not all(map(_is_length, shape)):
        raise BadBody(f"an array's shape must be at most {_MAX_DIMENSIONS} lengths that are not negative")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed != len(raw):
        raise BadBody(f"an array claims {_count(claimed)} bytes and has {len(raw)}")
    flat = np.frombuffer(raw, dtype) if raw else np.zeros(0, dtype)
    return flat if len(shape) == 1 else flat.reshape(tuple(shape), order="F" if order == "F" else "C")


def _is_length(length: object) -> bool:
    return isinstance(length, int) and not isinstance(length, bool) and 0 <= length < 1 << 40


def _count(number: int) -> str:
    return str(number) if number < 1 << 63 else "more than 2**63"


def array_bytes(data: object) -> bytes:
    """The bytes of an array from its ``data``; BadBody if it is neither base64 text nor bytes."""
    if isinstance(data, bytes):
        return data
    if not isinstance(data, str):
        raise BadBody("an array needs data: base64 text or bytes")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise BadBody("an array's data is not base64 text") from problem


class EncodedObservation:
    """An observation as its worker encoded it, to be put into replies.

    The worker finishes it in the format of the reply wherever that can be put in as it is: what the server does for
    one worker, the others wait for.
    """

    def __init__(self, data: bytes | memoryview, body_format: BodyFormat, *, has_pictures: bool) -> None:
        self._data, self._format = data, body_format
        self._is_pickled = _is_pickled(body_format, has_pictures)

    @staticmethod
    def encode(observation: Any, body_format: BodyFormat, *, has_pictures: bool) -> bytes:
        """The data for the constructor, from an observation that may hold NumPy arrays."""
        encoded = encode(observation, text=body_format.is_text)
        return write_body(encoded, BodyFormat.PICKLE if _is_pickled(body_format, has_pictures) else body_format)

    def embedded_in(self, body_format: BodyFormat) -> Any:
        """The observation as a part of a body in ``body_format``; for another format it is encoded anew."""
        if self._format is body_format:
            return self._builtins if self._is_pickled else msgspec.Raw(self._data)
        return _as_text(self._builtins) if body_format.is_text else self._builtins

    @cached_property
    def _builtins(self) -> Any:
        return _READERS[BodyFormat.PICKLE if self._is_pickled else self._format](self._data)


def _is_pickled(body_format: BodyFormat, has_pictures: bool) -> bool:
    """A pickled reply has no parts that could be put in. Pictures occur twice in an observation, in a pickle once: so
    they go to the server faster.
    """
    return has_pictures or body_format is BodyFormat.PICKLE


_READERS: dict[BodyFormat, Callable[[bytes | memoryview], Any]] = {
    BodyFormat.PICKLE: pickle.loads,
    BodyFormat.JSON: msgspec.json.decode,
    BodyFormat.MSGPACK: msgspec.msgpack.decode,
}
