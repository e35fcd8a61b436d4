"""Observations as workers tell them: finished in the reply's language where that is faster, so it is only put in."""

import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from urlab.evaluation.http.bodies import write_body
from urlab.evaluation.http.encoding import as_text, encode
from urlab.evaluation.http.wire import Wire


def tell(value: Any, wire: Wire, *, has_pictures: bool) -> bytes:
    """The data of a `Told` from a value that may hold NumPy arrays."""
    encoded = encode(value, text=wire.is_text)
    return write_body(encoded, Wire.PICKLE if _is_pickled(wire, has_pictures) else wire)


class Told:
    """A value for replies in ``wire``."""

    def __init__(self, data: bytes | memoryview, wire: Wire, *, has_pictures: bool) -> None:
        self._data, self._wire = data, wire
        self._is_pickled = _is_pickled(wire, has_pictures)

    def part(self, wire: Wire) -> Any:
        """The value as a part of a body in ``wire``; for another language than it was told in it is made anew."""
        if self._wire is wire:
            return self._builtins if self._is_pickled else msgspec.Raw(self._data)
        return as_text(self._builtins) if wire.is_text else self._builtins

    @cached_property
    def _builtins(self) -> Any:
        return _READERS[Wire.PICKLE if self._is_pickled else self._wire](self._data)


def _is_pickled(wire: Wire, has_pictures: bool) -> bool:
    """A pickled reply has no parts that could be put in. Pictures occur twice in an observation, in a pickle once: so
    they go to the server faster.
    """
    return has_pictures or wire is Wire.PICKLE


_READERS: dict[Wire, Callable[[bytes | memoryview], Any]] = {
    Wire.PICKLE: pickle.loads,
    Wire.JSON: msgspec.json.decode,
    Wire.MSGPACK: msgspec.msgpack.decode,
}
