"""MessagePack with NumPy arrays as openpi writes them: a map with keys of bytes, raw data in C order."""

from typing import Any

import msgspec
import numpy as np

from urlab.evaluation.policies.base import PolicyError

_ARRAY, _SCALAR = b"__ndarray__", b"__npgeneric__"
_DATA, _DTYPE, _SHAPE = b"data", b"dtype", b"shape"
_REFUSED_KINDS = "VOc"


def pack(data: Any) -> bytes:
    """To bytes; arrays and NumPy scalars may be anywhere in it."""
    return msgspec.msgpack.encode(_plain(data))


def unpack(frame: bytes) -> Any:
    """From bytes; arrays are read-only. PolicyError for what is no MessagePack, or no honest array."""
    try:
        return _rich(msgspec.msgpack.decode(frame))
    except (msgspec.DecodeError, ValueError, TypeError, KeyError, RecursionError) as broken:
        raise PolicyError(f"the policy server sent {len(frame)} bytes that cannot be read: {broken}") from broken


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, np.ndarray):
        raw = np.ascontiguousarray(data).tobytes()
        return {_ARRAY: True, _DATA: raw, _DTYPE: data.dtype.str, _SHAPE: list(data.shape)}
    if isinstance(data, np.generic):
        return {_SCALAR: True, _DATA: data.item(), _DTYPE: data.dtype.str}
    return data


def _rich(data: Any) -> Any:
    if isinstance(data, list):
        return [_rich(value) for value in data]
    if not isinstance(data, dict):
        return data
    if _ARRAY in data:
        return np.frombuffer(data[_DATA], _dtype(data)).reshape(data[_SHAPE])
    if _SCALAR in data:
        return _dtype(data).type(data[_DATA])
    return {key: _rich(value) for key, value in data.items()}


def _dtype(data: dict[bytes, Any]) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(data[_DTYPE])
    if dtype.kind in _REFUSED_KINDS:
        raise ValueError(f"arrays of {dtype} are not taken")
    return dtype
