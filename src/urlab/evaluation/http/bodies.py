"""Bodies of requests and replies: pickle for stock clients, JSON and msgpack as safe and lean alternatives.

The reply speaks the language of the request's Content-Type. A pickled reply is protocol 5 with builtins only.
"""

import pickle
from enum import Enum

import msgspec

from urlab.evaluation.http.limits import plain
from urlab.evaluation.http.pickle_reader import read_pickle
from urlab.evaluation.problems import BadBody

_PROTOCOL = 5


class Wire(Enum):
    """A language of bodies; the value is its media type."""

    PICKLE = "application/octet-stream"
    JSON = "application/json"
    MSGPACK = "application/msgpack"

    @property
    def is_text(self) -> bool:
        """True if array data travels as base64 text: all but msgpack."""
        return self is not Wire.MSGPACK


_MEDIA_TYPES = {
    **{wire.value: wire for wire in Wire},
    "application/x-msgpack": Wire.MSGPACK,
    "application/vnd.msgpack": Wire.MSGPACK,
    "application/x-pickle": Wire.PICKLE,
}


def wire_of(content_type: str | None, default: Wire) -> Wire:
    """The language that a Content-Type names; without one, ``default``."""
    if not content_type:
        return default
    wire = _MEDIA_TYPES.get(content_type.partition(";")[0].strip().lower())
    if wire is None:
        known = ", ".join(one.value for one in Wire)
        raise BadBody(f"Content-Type {content_type[:80]!r} is not known; send {known}")
    return wire


def read_body(body: bytes, wire: Wire) -> object:
    """The plain value in ``body``, None if it is empty; BadBody when it cannot be read."""
    if not body:
        return None
    return plain(_READERS[wire](body))


def write_body(value: object, wire: Wire) -> bytes:
    """``value``, which is builtins only, in the language ``wire``."""
    if wire is Wire.PICKLE:
        return pickle.dumps(value, _PROTOCOL)
    return msgspec.json.encode(value) if wire is Wire.JSON else msgspec.msgpack.encode(value)


def _read_json(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadBody(f"Invalid JSON: {str(problem)[:200]}") from problem


def _read_msgpack(body: bytes) -> object:
    try:
        return msgspec.msgpack.decode(body, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, ValueError) as problem:
        raise BadBody(f"Invalid msgpack: {str(problem)[:200]}") from problem


_READERS = {Wire.PICKLE: read_pickle, Wire.JSON: _read_json, Wire.MSGPACK: _read_msgpack}
