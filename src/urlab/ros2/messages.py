"""ROS messages without ROS: their types, their CDR bytes and their type hashes, all from ``rosbags``.

The definitions are those of the distribution that ``ROS_DISTRO`` names, or of Jazzy. It matters little to ordinary
messages, but the graph's own message has identifiers of 24 bytes in Humble and of 16 since Iron.

A message is a dataclass of ``rosbags``: numbers are Python's, arrays and sequences of numbers are numpy arrays of the
field's type, everything else is a list.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np

try:
    from rosbags.interfaces import Nodetype
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    from rosbags.typesys.base import normalize_fieldname
    from rosbags.typesys.store import Typestore
except ImportError as missing:
    raise ImportError("ROS messages need rosbags: pip install 'urlab-headless[ros2]'") from missing

DEFAULT_DISTRO: Final = "jazzy"

_INHABITANT = "uint8 structure_needs_at_least_one_member"
"""ROS gives this field to a message that has none."""

_DEFAULTS: Final[dict[tuple[str, str], Any]] = {("geometry_msgs/msg/Quaternion", "w"): 1.0}
"""Defaults of the definitions that are not zero, for what the bridge sends."""

_Make = Callable[[], Any]
_Coerce = Callable[[Any], Any]


class UnknownType(LookupError):
    """No such message type; the message says which there are."""


def _open_store() -> Typestore:
    distro = os.environ.get("ROS_DISTRO") or DEFAULT_DISTRO
    store = Stores.__members__.get(f"ROS2_{distro.upper()}", Stores.ROS2_JAZZY)
    return get_typestore(store)


typestore: Final = _open_store()
"""Every type that is known, for code that needs more than the functions below."""


def make(type_name: str, **fields: Any) -> Any:
    """A message of that type; what is not given is zero, empty, or as the definition has it.

    Sequences and arrays of numbers may be given as anything that numpy can turn into an array.
    """
    plan = _plan(type_name)
    if not fields.keys() <= plan.keys():
        unknown = ", ".join(sorted(fields.keys() - plan.keys()))
        raise TypeError(f"{type_name} has no field {unknown}; it has: {', '.join(plan)}")
    values = {name: coerce(fields[name]) if name in fields else default() for name, (default, coerce) in plan.items()}
    return typestore.types[type_name](**values)


def serialise(msg: Any, type_name: str) -> memoryview:
    """The message as little-endian CDR, with its 4-byte header; read-only, in memory of its own.

    It is a view because a second copy of a picture costs more than all the rest: `bytes` makes one where it must be.
    """
    _known(type_name)
    return typestore.serialize_cdr(msg, type_name, little_endian=True)


def deserialise(cdr: bytes | memoryview, type_name: str) -> Any:
    """The message in those bytes. Raises rosbags' ``SerdeError`` when they are not one of that type.

    Arrays are views of the given bytes where that is possible: they are read-only.
    """
    _known(type_name)
    return typestore.deserialize_cdr(cdr, type_name)


def type_hash(type_name: str) -> str:
    """``RIHS01_`` and 64 hexadecimal digits, as ROS computes them from the definition."""
    _known(type_name)
    return typestore.hash_rihs01(type_name)


def knows(type_name: str) -> bool:
    """Whether messages of that type can be made."""
    return type_name in typestore.types


def register(type_name: str, definition: str) -> None:
    """Learn a type from the text of its ``.msg`` or ``.srv`` file; what it refers to is learnt before it.

    A service ``pkg/srv/Name`` becomes the types ``pkg/srv/Name_Request`` and ``pkg/srv/Name_Response``.
    """
    package, kind, name = type_name.split("/")
    if kind == "msg":
        _register(package, kind, name, definition)
        return
    request, _, response = definition.partition("---")
    _register(package, kind, f"{name}_Request", request)
    _register(package, kind, f"{name}_Response", response)


def _register(package: str, kind: str, name: str, definition: str) -> None:
    parsed = get_types_from_msg(definition, f"{package}/msg/{name}")
    constants, fields = parsed[f"{package}/msg/{name}"]
    if not fields:
        _, fields = get_types_from_msg(_INHABITANT, f"{package}/msg/{name}")[f"{package}/msg/{name}"]
    typestore.register({f"{package}/{kind}/{name}": (constants, fields)})


def _known(type_name: str) -> None:
    if type_name not in typestore.types:
        package = type_name.partition("/")[0]
        near = sorted(name for name in typestore.types if name.startswith(f"{package}/"))
        known = f"of {package} there are: {', '.join(near)}" if near else f"there is no type of {package!r}"
        raise UnknownType(f"{type_name!r} is not a known message type; {known}")


@cache
def _plan(type_name: str) -> dict[str, tuple[_Make, _Coerce]]:
    """For every field of a type: what makes its default, and what turns a given value into one that rosbags takes."""
    _known(type_name)
    _, fields = typestore.fielddefs[type_name]
    return {normalize_fieldname(name): _default(type_name, name, _field(*desc)) for name, desc in fields}


def _default(type_name: str, name: str, plan: tuple[_Make, _Coerce]) -> tuple[_Make, _Coerce]:
    if (type_name, name) not in _DEFAULTS:
        return plan
    value = _DEFAULTS[type_name, name]
    return (lambda: value), plan[1]


def _field(kind: Nodetype, detail: Any) -> tuple[_Make, _Coerce]:
    if kind == Nodetype.NAME:
        return (lambda: make(detail)), _as_it_is
    if kind == Nodetype.BASE:
        zero = _zero(detail[0])
        return (lambda: zero), _as_it_is
    (element, element_detail), size = detail
    count = size if kind == Nodetype.ARRAY else 0
    if element == Nodetype.BASE and element_detail[0] != "string":
        dtype = np.dtype(_NUMPY.get(element_detail[0], element_detail[0]))
        return (lambda: np.zeros(count, dtype)), (lambda value: _array(value, dtype))
    make_element, _ = _field(element, element_detail)
    return (lambda: [make_element() for _ in range(count)]), list


_NUMPY: Final = {"octet": "uint8", "char": "uint8", "byte": "uint8"}


def _array(value: Any, dtype: "np.dtype[Any]") -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return np.frombuffer(value, dtype)
    return np.ascontiguousarray(value, dtype).reshape(-1)


def _zero(base: str) -> Any:
    if base == "string":
        return ""
    return False if base == "bool" else 0.0 if base.startswith("float") else 0


def _as_it_is(value: Any) -> Any:
    return value
