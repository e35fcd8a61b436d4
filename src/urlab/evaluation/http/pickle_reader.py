"""Reads the pickles that stock clients send, and runs nothing.

This is no `pickle.Unpickler` with a filter: it is a small stack machine over the opcodes that the standard library
tokenises. It has no way to import a module or to call anything but the checked makers of `numpy_pieces`, so there is
nothing to escape from. Whatever it does not know is BadBody: persistent ids, the extension registry, classes, sets,
out-of-band buffers. Sizes are taken from the bytes that are there, never from what a pickle claims.
"""

import io
import pickletools
import struct
from collections.abc import Callable, Iterator
from typing import Any

from urlab.evaluation.http.numpy_pieces import NAMES, Named, PendingArray, PendingDtype
from urlab.evaluation.problems import BadBody

MAX_OPCODES = 250_000
MAX_ENCODED_BYTES = 16 << 20
_MAX_PROTOCOL = 5
_MARK = object()


def read_pickle(body: bytes) -> object:
    """The value in ``body``, possibly with `PendingArray` parts (`limits.plain` finishes them); BadBody if refused."""
    return _Machine().run(body)


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, object] = {}
        self._made_bytes = 0

    def run(self, body: bytes) -> object:
        file = io.BytesIO(body)
        for number, (name, argument) in enumerate(_opcodes(file)):
            if number >= MAX_OPCODES:
                raise BadBody(f"Invalid pickle: more than {MAX_OPCODES} opcodes; send numbers as arrays")
            if name == "STOP":
                return self._result(len(body) - file.tell())
            self._do(name, argument)
        raise BadBody("Invalid pickle: it has no end")

    def _do(self, name: str, argument: Any) -> None:
        if name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _LITERALS:
            self._stack.append(argument)
        elif name in _HANDLERS:
            _HANDLERS[name](self, argument)
        else:
            raise BadBody(f"Invalid pickle: opcode {name} is not allowed; send dicts, lists, numbers and numpy arrays")

    def _result(self, left_over: int) -> object:
        if left_over or len(self._stack) != 1:
            raise BadBody("Invalid pickle: it does not end with exactly one value")
        return self._pop()

    def _pop(self) -> Any:
        value = self._stack.pop() if self._stack else _MARK
        if value is _MARK:
            raise BadBody("Invalid pickle: a value is missing")
        return value

    def _pop_to_mark(self) -> list[Any]:
        for index in range(len(self._stack) - 1, -1, -1):
            if self._stack[index] is _MARK:
                values = self._stack[index + 1 :]
                del self._stack[index:]
                return values
        raise BadBody("Invalid pickle: a mark is missing")

    def _top(self, kind: type[Any]) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise BadBody(f"Invalid pickle: a {kind.__name__} is missing")
        return self._stack[-1]

    def mark(self, _argument: Any) -> None:
        self._stack.append(_MARK)

    def protocol(self, number: int) -> None:
        if number > _MAX_PROTOCOL:
            raise BadBody(f"Invalid pickle: protocol {number}; the newest known is {_MAX_PROTOCOL}")

    def frame(self, _size: int) -> None:
        """Frames only say how to read ahead."""

    def empty_list(self, _argument: Any) -> None:
        self._stack.append([])

    def empty_dict(self, _argument: Any) -> None:
        self._stack.append({})

    def append(self, _argument: Any) -> None:
        value = self._pop()
        self._top(list).append(value)

    def appends(self, _argument: Any) -> None:
        values = self._pop_to_mark()
        self._top(list).extend(values)

    def list_of_marked(self, _argument: Any) -> None:
        self._stack.append(self._pop_to_mark())

    def tuple_of_marked(self, _argument: Any) -> None:
        self._stack.append(tuple(self._pop_to_mark()))

    def dict_of_marked(self, _argument: Any) -> None:
        self._stack.append(_into({}, self._pop_to_mark()))

    def set_item(self, _argument: Any) -> None:
        value, key = self._pop(), self._pop()
        _into(self._top(dict), [key, value])

    def set_items(self, _argument: Any) -> None:
        pairs = self._pop_to_mark()
        _into(self._top(dict), pairs)

    def remember(self, index: int | None) -> None:
        value = self._pop()
        self._stack.append(value)
        self._memo[len(self._memo) if index is None else index] = value

    def recall(self, index: int) -> None:
        if index not in self._memo:
            raise BadBody("Invalid pickle: it refers to a value that was never stored")
        self._stack.append(self._memo[index])

    def global_name(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._stack.append(_named(module, name))

    def stack_global(self, _argument: Any) -> None:
        name, module = self._pop(), self._pop()
        self._stack.append(_named(module, name))

    def reduce(self, _argument: Any) -> None:
        arguments, maker = self._pop(), self._pop()
        if not isinstance(maker, Named):
            raise BadBody("Invalid pickle: only numpy's own names can be called")
        value = maker(arguments)
        self._take(len(value) if isinstance(value, bytes) else 0)
        self._stack.append(value)

    def _take(self, made_bytes: int) -> None:
        """Encoded text is the one thing that is copied when it is made: a body may not ask for it over and over."""
        self._made_bytes += made_bytes
        if self._made_bytes > MAX_ENCODED_BYTES:
            raise BadBody(f"Invalid pickle: it encodes more than {MAX_ENCODED_BYTES} bytes of text; use protocol 5")

    def build(self, _argument: Any) -> None:
        state = self._pop()
        target = self._pop()
        if not isinstance(target, PendingArray | PendingDtype):
            raise BadBody(f"Invalid pickle: the state of a {type(target).__name__} cannot be set")
        target.set_state(state)
        self._stack.append(target)


def _opcodes(file: io.BytesIO) -> Iterator[tuple[str, Any]]:
    try:
        for opcode, argument, _position in pickletools.genops(file):
            yield opcode.name, argument
    except (ValueError, struct.error, OverflowError, MemoryError, Warning) as problem:
        raise BadBody(f"Invalid pickle: {str(problem)[:200]}") from problem


def _into(target: dict[str, Any], pairs: list[Any]) -> dict[str, Any]:
    """Keys are text only: hashing anything else could be made slow or endless by its sender."""
    if len(pairs) % 2:
        raise BadBody("Invalid pickle: a key without a value")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not isinstance(key, str):
            kind = type(key).__name__
            raise BadBody(f"Invalid pickle: the keys of a dict must be text ('0' and not 0), one is of type {kind}")
        target[key] = value
    return target


def _named(module: object, name: object) -> Named:
    found = NAMES.get((module, name)) if isinstance(module, str) and isinstance(name, str) else None
    if found is None:
        asked = f"{module}.{name}"[:100] if isinstance(module, str) and isinstance(name, str) else "something unnamed"
        raise BadBody(f"Invalid pickle: it refers to {asked}; only builtins and numpy arrays of numbers are read")
    return found


def _tuple_of(count: int) -> Callable[[_Machine, Any], None]:
    def make(machine: _Machine, _argument: Any) -> None:
        values = [machine._pop() for _ in range(count)]
        machine._stack.append(tuple(reversed(values)))

    return make


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}

_LITERALS = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)

_HANDLERS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _Machine.protocol,
    "FRAME": _Machine.frame,
    "MARK": _Machine.mark,
    "EMPTY_LIST": _Machine.empty_list,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "LIST": _Machine.list_of_marked,
    "TUPLE": _Machine.tuple_of_marked,
    **{f"TUPLE{count}": _tuple_of(count) for count in (1, 2, 3)},
    "EMPTY_DICT": _Machine.empty_dict,
    "DICT": _Machine.dict_of_marked,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Machine.remember),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.recall),
    "GLOBAL": _Machine.global_name,
    "STACK_GLOBAL": _Machine.stack_global,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}
