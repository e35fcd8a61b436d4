"""Reads the pickles that stock clients send, and runs nothing of theirs.

`pickle.Unpickler` does the work, twice guarded. It finds no name but those that pickled numpy arrays and numbers refer
to, and each of them stands for a maker of ours that checks its arguments: reading imports and calls nothing else. And
before it begins, a scan of the opcodes refuses what could harm the unpickler itself: opcodes for classes, persistent
ids, the extension registry and out-of-band buffers; memo indices that would be memory; lengths beyond the bytes that
are there; and keys of dicts that are not text, as hashing a deep or shared tuple can overflow the stack or never end.
"""

import io
import pickle
import pickletools
import struct
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from urlab.evaluation.encoding import checked_array, checked_dtype
from urlab.evaluation.errors import BadBody

MAX_OPCODES = 250_000
MAX_ENCODED_BYTES = 16 << 20

_Kind = pickletools.StackObject
_LITERALS: dict[str, _Kind] = {
    opcode.name: opcode.stack_after[0]
    for opcode in pickletools.opcodes
    if opcode.name
    in {
        *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
        *("FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        *("EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE", "MARK", "GLOBAL"),
    }
}
"""The opcodes that take nothing from the stack, and what they put there."""
_COMBINING = frozenset(
    {
        *("PROTO", "FRAME", "STOP", "APPEND", "APPENDS", "LIST", "SETITEM", "SETITEMS", "DICT"),
        *("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "STACK_GLOBAL", "REDUCE", "BUILD"),
    }
)
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_KEYS = {"SETITEM": 1, "SETITEMS": 1, "DICT": 0}
"""Where the keys are among the values that an opcode takes; a value follows each."""

_ByteOrder = Literal["<", ">", "=", "|"]
_BYTE_ORDERS: dict[str, _ByteOrder] = {"<": "<", ">": ">", "=": "=", "|": "|"}


def read_pickle(body: bytes) -> object:
    """The value in ``body``, possibly with `PendingArray` parts; BadBody if it is refused."""
    _scan(body)
    try:
        return _Unpickler(io.BytesIO(body)).load()
    except BadBody:
        raise
    except Exception as problem:  # its documentation leaves open what a damaged pickle raises
        raise BadBody(f"Invalid pickle: {str(problem)[:200]}") from problem


def _scan(body: bytes) -> None:
    """Follow the kinds of values on the unpickler's stack, without making any; BadBody for what it may not do."""
    stack: list[_Kind] = []
    memo: dict[int, _Kind] = {}
    number, last = 0, -1
    for opcode, argument, at in _opcodes(body):
        name, number, last = opcode.name, number + 1, at
        if name in _LITERALS:
            stack.append(_LITERALS[name])
        elif name in _PUTS:
            index = len(memo) if argument is None else argument
            if not stack or not 0 <= index < number:
                raise BadBody("Invalid pickle: a value is stored where none can be")
            memo[index] = stack[-1]
        elif name in _GETS:
            if argument not in memo:
                raise BadBody("Invalid pickle: it refers to a value that was never stored")
            stack.append(memo[argument])
        elif name in _COMBINING:
            taken = _take(stack, opcode.stack_before)
            if name in _KEYS:
                _check_keys(taken[_KEYS[name] :: 2])
            stack.extend(opcode.stack_after)
        else:
            raise BadBody(f"Invalid pickle: opcode {name} is not allowed; send dicts, lists, numbers and numpy arrays")
        if number > MAX_OPCODES:
            raise BadBody(f"Invalid pickle: more than {MAX_OPCODES} opcodes; send numbers as arrays")
    if stack or last != len(body) - 1:
        raise BadBody("Invalid pickle: it does not end with exactly one value")


def _opcodes(body: bytes) -> Iterator[tuple[pickletools.OpcodeInfo, Any, int]]:
    """Lengths that are claimed are checked against the bytes that are there by the tokeniser."""
    try:
        yield from pickletools.genops(body)  # type: ignore[misc]  # positions of bytes are never None
    except (ValueError, struct.error, OverflowError, MemoryError, Warning) as problem:
        raise BadBody(f"Invalid pickle: {str(problem)[:200]}") from problem


def _take(stack: list[_Kind], before: list[_Kind]) -> list[_Kind]:
    """Take what an opcode takes from the stack: as many values as ``before`` has, or all above a mark, and the mark."""
    start = len(stack) - len(before)
    if before and before[-1] is pickletools.stackslice:
        mark = next((at for at in range(len(stack) - 1, -1, -1) if stack[at] is pickletools.markobject), -1)
        start = mark - (len(before) - 2)
        if mark >= 0:
            del stack[mark]
    if start < 0:
        raise BadBody("Invalid pickle: a value is missing")
    taken = stack[start:]
    del stack[start:]
    if pickletools.markobject in taken:
        raise BadBody("Invalid pickle: a mark is where a value should be")
    return taken


def _check_keys(kinds: list[_Kind]) -> None:
    for kind in kinds:
        if kind is not pickletools.pyunicode:
            raise BadBody(
                f"Invalid pickle: the keys of a dict must be text ('0' and not 0), one is of type {kind.name}"
            )


class _Unpickler(pickle.Unpickler):
    """Finds nothing but the makers of numpy's few names."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._encoded_bytes = 0

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return _Maker("_codecs.encode", self._encode)
        maker = _MAKERS.get((module, name))
        if maker is None:
            place = f"{module}.{name}"[:100]
            raise BadBody(f"Invalid pickle: it refers to {place}; only builtins and numpy arrays of numbers are read")
        return maker

    def _encode(self, text: object, codec: object) -> bytes:
        """Encoded text is the one thing that is copied when it is made: a body may not ask for it over and over."""
        if not isinstance(text, str) or codec != "latin1":
            raise BadBody("Invalid pickle: only text can be encoded, as latin1")
        self._encoded_bytes += len(text)
        if self._encoded_bytes > MAX_ENCODED_BYTES:
            raise BadBody(f"Invalid pickle: it encodes more than {MAX_ENCODED_BYTES} bytes of text; use protocol 5")
        return text.encode("latin1")


class _Maker:
    """What a name stands for; it can be called, and nothing else can be done to it."""

    __slots__ = ("_make", "name")

    def __init__(self, name: str, make: Callable[..., object]) -> None:
        self.name, self._make = name, make

    def __call__(self, *arguments: Any) -> object:
        try:
            return self._make(*arguments)
        except (TypeError, ValueError, IndexError, AttributeError) as problem:
            raise BadBody(f"Invalid pickle: bad arguments for {self.name}") from problem

    def __setstate__(self, _state: object) -> None:
        raise BadBody(f"Invalid pickle: the state of {self.name} cannot be set")


class PendingDtype:
    """A dtype of numbers, whose byte order its state may still change."""

    __slots__ = ("dtype",)

    def __init__(self, name: object, *_flags: object) -> None:
        self.dtype = checked_dtype(name)

    def __setstate__(self, state: object) -> None:
        """Take the state of a plain dtype: (3, byte order, None, None, None, -1, -1, 0)."""
        if not isinstance(state, tuple) or len(state) < 5 or any(one is not None for one in state[2:5]):
            raise BadBody("Invalid pickle: the state of a dtype is not that of plain numbers")
        order = state[1]
        if not isinstance(order, str) or order not in _BYTE_ORDERS:
            raise BadBody("Invalid pickle: the byte order of a dtype must be one of < > = |")
        self.dtype = self.dtype.newbyteorder(_BYTE_ORDERS[order])


class PendingArray:
    """An array that is given its contents after it was made."""

    __slots__ = ("_array",)

    def __init__(self) -> None:
        self._array: NDArray[Any] | None = None

    def __setstate__(self, state: object) -> None:
        """Take (version, shape, dtype, is Fortran order, bytes)."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise BadBody("Invalid pickle: the state of an array must be (version, shape, dtype, order, bytes)")
        self._array = checked_array(state[4], _dtype_of(state[2]), state[1], "F" if state[3] is True else "C")

    def finished(self) -> NDArray[Any]:
        """The array; BadBody if its contents never came."""
        if self._array is None:
            raise BadBody("Invalid pickle: an array without contents")
        return self._array


def _frombuffer(raw: object, dtype: object, shape: object, order: object) -> object:
    return checked_array(raw, _dtype_of(dtype), shape, order)


def _reconstruct(kind: object, shape: object, _code: object) -> object:
    if not isinstance(kind, _Maker) or kind.name != "numpy.ndarray" or shape != (0,):
        raise BadBody("Invalid pickle: only plain arrays can be reconstructed")
    return PendingArray()


def _scalar(dtype: object, raw: object) -> object:
    return checked_array(raw, _dtype_of(dtype), (1,), "C")[0].item()


def _never(*_arguments: object) -> object:
    raise BadBody("Invalid pickle: numpy.ndarray cannot be called")


def _dtype_of(value: object) -> np.dtype[Any]:
    if not isinstance(value, PendingDtype):
        raise BadBody("Invalid pickle: an array without a dtype")
    return value.dtype


_CORE: dict[str, dict[str, Callable[..., object]]] = {
    "numeric": {"_frombuffer": _frombuffer},
    "multiarray": {"_reconstruct": _reconstruct, "scalar": _scalar},
}
# NumPy 1 says numpy.core where NumPy 2 says numpy._core.
_MAKERS: dict[tuple[str, str], _Maker] = {
    ("numpy", "ndarray"): _Maker("numpy.ndarray", _never),
    ("numpy", "dtype"): _Maker("numpy.dtype", PendingDtype),
    **{
        (f"numpy.{core}.{module}", name): _Maker(f"numpy.{core}.{module}.{name}", make)
        for core in ("core", "_core")
        for module, makers in _CORE.items()
        for name, make in makers.items()
    },
}
