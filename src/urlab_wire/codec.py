"""Bytes <-> plain trees of maps, lists, numbers, strings and binary.

msgpack is the default. Under JSON, binary cannot travel as it is: a map entry ``X`` that holds bytes is sent as
``X_base64`` instead (``mjb`` also gets ``mjb_size``). numpy arrays and scalars are sent as lists and numbers.
"""

import base64
from typing import Any

import msgspec
import numpy as np

from urlab_wire.enums import Encoding

Tree = dict[str, Any]
"""A message as plain maps, lists, numbers, texts and binary. Which fields it has depends on its op."""

_JSON_FIRST_BYTES = frozenset(b"{ \t\r\n")
_PLAIN_DEPTH = 8
_PLAIN_TYPES = frozenset((float, int, str, list, bool, bytes, type(None)))


class DecodeError(ValueError):
    """The bytes are neither JSON nor msgpack, or their top level is not a map."""


def encode(message: Any, encoding: Encoding = Encoding.MSGPACK) -> bytes:
    """Encode a map or a struct as one frame."""
    if encoding is Encoding.JSON:
        return _json.encode(_without_binary(plain_map(message)))
    return _msgpack.encode(message)


def plain_map(message: Any) -> Tree:
    """A map or a struct as the plain map that travels; binary stays as it is."""
    tree: Tree = msgspec.to_builtins(message, builtin_types=_BINARY, enc_hook=_plain)
    return tree


def decode(frame: bytes) -> Tree:
    """Decode one frame whose encoding is told by its first byte; raises `DecodeError`.

    Most frames are read in one pass in C, which checks every entry: msgpack without binary, maps within maps not too
    deep. What that pass refuses is read again, to find out whether and why it is wrong.
    """
    try:
        tree: Tree = _plain_tree.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _decode_slowly(frame)
    return tree


def _decode_slowly(frame: bytes) -> Tree:
    if not frame:
        raise DecodeError("empty frame")
    try:
        tree = _decode_json(frame) if looks_like_json(frame) else _decode_msgpack(frame)
    except RecursionError as deep:
        raise DecodeError("nested too deeply") from deep
    if not isinstance(tree, dict):
        raise DecodeError(f"the top level is {type(tree).__name__}, not a map")
    return tree


def looks_like_json(frame: bytes) -> bool:
    """Whether a frame is JSON text: no msgpack map begins with one of these bytes."""
    return frame[:1] != b"" and frame[0] in _JSON_FIRST_BYTES


def _decode_json(frame: bytes) -> Any:
    try:
        return msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        raise DecodeError(f"broken JSON: {broken}") from broken


def _decode_msgpack(frame: bytes) -> Any:
    try:
        tree = msgspec.msgpack.decode(frame)
    except (msgspec.DecodeError, ValueError) as broken:
        raise DecodeError(f"broken msgpack: {broken}") from broken
    if isinstance(tree, dict):
        _check_entries(tree)
    return tree


def _check_entries(tree: dict[Any, Any]) -> None:
    """Refuse what only msgpack can say. Lists are not searched: they are long, and hold numbers."""
    for key, value in tree.items():
        if type(key) is not str:
            raise DecodeError(f"broken msgpack: a map key is {type(key).__name__}, not a string")
        if type(value) is dict:
            _check_entries(value)
        elif type(value) not in _PLAIN_TYPES:
            raise DecodeError(f"broken msgpack: {key[:80]!r} is an extension type ({type(value).__name__})")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent over the wire")


def _without_binary(tree: Any) -> Any:
    if isinstance(tree, dict):
        out: dict[str, Any] = {}
        for key, value in tree.items():
            if isinstance(value, bytes | bytearray | memoryview):
                out[f"{key}_base64"] = base64.b64encode(value).decode("ascii")
                if key == "mjb":
                    out["mjb_size"] = len(value)
            else:
                out[key] = _without_binary(value)
        return out
    if isinstance(tree, list | tuple):
        return [_without_binary(item) for item in tree]
    return tree


def _plain_type(depth: int) -> Any:
    """The type of a tree of maps with string keys, so many deep; binary cannot be told apart from strings in it."""
    leaf = None | bool | int | float | str | list[Any]
    return leaf if depth == 0 else leaf | dict[str, _plain_type(depth - 1)]  # type: ignore[misc]


_plain_tree = msgspec.msgpack.Decoder(dict[str, _plain_type(_PLAIN_DEPTH)])  # type: ignore[misc]
_msgpack = msgspec.msgpack.Encoder(enc_hook=_plain)
_json = msgspec.json.Encoder()
_BINARY = (bytes, bytearray, memoryview)
