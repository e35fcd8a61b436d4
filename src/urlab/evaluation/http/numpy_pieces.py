"""The few names that pickled numpy arrays and numbers refer to, as data: reading a pickle imports and calls nothing.

Each name stands for a function of ours that checks its arguments and makes the same value. NumPy 1 says
``numpy.core`` where NumPy 2 says ``numpy._core``.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.http.encoding import checked_array, checked_dtype
from urlab.evaluation.problems import BadBody

_ByteOrder = Literal["<", ">", "=", "|"]
_BYTE_ORDERS: dict[str, _ByteOrder] = {"<": "<", ">": ">", "=": "=", "|": "|"}


class PendingDtype:
    """A dtype of numbers, whose byte order its state may still change."""

    def __init__(self, name: object) -> None:
        self.dtype = checked_dtype(name)

    def set_state(self, state: object) -> None:
        """Take the state of a plain dtype: (3, byte order, None, None, None, -1, -1, 0)."""
        if not isinstance(state, tuple) or len(state) < 5 or any(one is not None for one in state[2:5]):
            raise BadBody("Invalid pickle: the state of a dtype is not that of plain numbers")
        order = state[1]
        if not isinstance(order, str) or order not in _BYTE_ORDERS:
            raise BadBody("Invalid pickle: the byte order of a dtype must be one of < > = |")
        self.dtype = self.dtype.newbyteorder(_BYTE_ORDERS[order])


class PendingArray:
    """An array that is told its contents after it was made."""

    def __init__(self) -> None:
        self._array: NDArray[Any] | None = None

    def set_state(self, state: object) -> None:
        """Take (version, shape, dtype, is Fortran order, bytes)."""
        if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[2], PendingDtype):
            raise BadBody("Invalid pickle: the state of an array must be (version, shape, dtype, order, bytes)")
        self._array = checked_array(state[4], state[2].dtype, state[1], "F" if state[3] is True else "C")

    def finished(self) -> NDArray[Any]:
        """The array; BadBody if its contents never came."""
        if self._array is None:
            raise BadBody("Invalid pickle: an array without contents")
        return self._array


class Named:
    """A name of the list below: what a pickle may call with a tuple of arguments."""

    def __init__(self, name: str, make: Callable[[tuple[Any, ...]], object]) -> None:
        self.name = name
        self._make = make

    def __call__(self, arguments: object) -> object:
        """The value; BadBody for arguments that numpy itself never writes."""
        try:
            if isinstance(arguments, tuple):
                return self._make(arguments)
        except (TypeError, ValueError, IndexError, AttributeError) as problem:
            raise BadBody(f"Invalid pickle: bad arguments for {self.name}") from problem
        raise BadBody(f"Invalid pickle: the arguments of {self.name} must be a tuple")


def _frombuffer(arguments: tuple[Any, ...]) -> object:
    raw, dtype, shape, order = arguments
    return checked_array(raw, _dtype_of(dtype), shape, order)


def _reconstruct(arguments: tuple[Any, ...]) -> object:
    kind, shape, _code = arguments
    if not isinstance(kind, Named) or kind.name != "numpy.ndarray" or shape != (0,):
        raise BadBody("Invalid pickle: only plain arrays can be reconstructed")
    return PendingArray()


def _scalar(arguments: tuple[Any, ...]) -> object:
    dtype, raw = arguments
    return checked_array(raw, _dtype_of(dtype), (1,), "C")[0].item()


def _dtype(arguments: tuple[Any, ...]) -> object:
    return PendingDtype(arguments[0])


def _encode(arguments: tuple[Any, ...]) -> object:
    text, codec = arguments
    if not isinstance(text, str) or codec != "latin1":
        raise BadBody("Invalid pickle: only text can be encoded, as latin1")
    return text.encode("latin1")


def _never(_arguments: tuple[Any, ...]) -> object:
    raise BadBody("Invalid pickle: numpy.ndarray cannot be called")


def _dtype_of(value: object) -> np.dtype[Any]:
    if not isinstance(value, PendingDtype):
        raise BadBody("Invalid pickle: an array without a dtype")
    return value.dtype


_CORE = {"numeric": {"_frombuffer": _frombuffer}, "multiarray": {"_reconstruct": _reconstruct, "scalar": _scalar}}

NAMES: dict[tuple[str, str], Named] = {
    ("numpy", "ndarray"): Named("numpy.ndarray", _never),
    ("numpy", "dtype"): Named("numpy.dtype", _dtype),
    ("_codecs", "encode"): Named("_codecs.encode", _encode),
    **{
        (f"numpy.{core}.{module}", name): Named(f"numpy.{core}.{module}.{name}", make)
        for core in ("core", "_core")
        for module, makers in _CORE.items()
        for name, make in makers.items()
    },
}
