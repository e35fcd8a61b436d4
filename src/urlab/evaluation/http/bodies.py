"""Bodies of requests and replies. A reply speaks the language of its request; a pickled one is protocol 5 with builtins
only.
"""

import pickle

import msgspec

from urlab.evaluation.http.limits import plain
from urlab.evaluation.http.pickle_reader import read_pickle
from urlab.evaluation.http.wire import Wire
from urlab.evaluation.problems import BadBody

_PROTOCOL = 5


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
