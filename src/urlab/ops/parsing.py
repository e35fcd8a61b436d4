"""Frames -> typed requests, and the checks of their fields that several handlers share.

The good case is one pass in C; what is wrong is found in a second, slower pass.
"""

import contextlib
import re
from enum import StrEnum
from typing import Any, TypeVar, Union, get_args

import msgspec
import numpy as np

from urlab.config import MAX_REQUEST_BYTES
from urlab.errors import BadRequest, BadValue, MissingField, MissingOp, UrlabError, known
from urlab_wire import CATALOGUE, DecodeError, OpSpec, Reply, Request, decode
from urlab_wire.codec import looks_like_json

SPEC_OF: dict[type[Request[Reply]], OpSpec] = {}
"""The op of each type of request."""

_required: dict[str, tuple[str, ...]] = {}


def read_catalogue() -> None:
    """Take over the ops of the catalogue as it is now."""
    global _from_msgpack, _from_json
    any_request: Any = Union[tuple(spec.request for spec in CATALOGUE.values())]  # noqa: UP007 - made from a table
    _from_msgpack, _from_json = msgspec.msgpack.Decoder(any_request), msgspec.json.Decoder(any_request)
    _required.update({name: tuple(spec.required_fields()) for name, spec in CATALOGUE.items()})
    SPEC_OF.update({spec.request: spec for spec in CATALOGUE.values()})


_from_msgpack: msgspec.msgpack.Decoder[Any]
_from_json: msgspec.json.Decoder[Any]
read_catalogue()


def decode_request(frame: bytes) -> Request[Reply] | None:
    """The typed request, in one pass; None when anything is wrong with the frame."""
    if len(frame) > MAX_REQUEST_BYTES or (len(frame) > _SMALL_BYTES and not is_readable(frame)):
        return None
    try:
        request: Request[Reply] = (_from_json if looks_like_json(frame) else _from_msgpack).decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return request


def long_texts(frame: bytes) -> set[str]:
    """The texts and keys of a request that are longer than a message should repeat."""
    found: set[str] = set()
    left: list[Any] = []
    with contextlib.suppress(BadRequest):
        left.append(_tree(frame))
    while left:
        value = left.pop()
        if isinstance(value, str) and len(value) > _SHORT_CHARACTERS:
            found.add(value)
        elif isinstance(value, dict):
            left += (*value, *value.values())
        elif isinstance(value, list):
            left += value
    return found


_SHORT_CHARACTERS = 200


class _Identity(msgspec.Struct):
    session_id: str | None = None
    request_id: str | int | None = None


_identity_from_msgpack, _identity_from_json = msgspec.msgpack.Decoder(_Identity), msgspec.json.Decoder(_Identity)
_LONE_ID_CHARACTERS = 16

RequestKey = tuple[str, str | int]
"""(session, id of the request)."""


def request_key(frame: bytes) -> RequestKey | None:
    """What tells a request from all others, if it carries an id."""
    if b"request_id" not in frame or (len(frame) > _SMALL_BYTES and not is_readable(frame)):
        return None
    try:
        found = (_identity_from_json if looks_like_json(frame) else _identity_from_msgpack).decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return None if found.request_id is None else key_of(found.session_id, found.request_id)


def key_of(session_id: str | None, request_id: str | int) -> RequestKey | None:
    """Session and id of a request. Without a session an id has to be so long that other clients do not use it too."""
    if session_id:
        return session_id, request_id
    return ("", request_id) if len(str(request_id)) >= _LONE_ID_CHARACTERS else None


def read_envelope(frame: bytes) -> tuple[str, str | None]:
    """Op and session of a frame that could not be read at once; BadRequest or MissingOp when it has none."""
    message = _tree(frame)
    op, session_id = message.get("op"), message.get("session_id")
    if not isinstance(op, str) or not op:
        raise MissingOp('the request has no "op"')
    return op, session_id if isinstance(session_id, str) else None


def read_request(spec: OpSpec, frame: bytes) -> Request[Reply] | UrlabError:
    """The request of a frame that could not be read at once, or what is wrong with it: MissingField or BadValue.

    Whole floats are taken for integers: to some clients every number is a float.
    """
    message = _tree(frame)
    for name in _required[spec.name]:
        if message.get(name) is None:
            return MissingField(f"{spec.name} needs the field {name!r}")
    try:
        return msgspec.convert(_with_integers(message), spec.request)
    except (msgspec.ValidationError, OverflowError) as wrong:
        return BadValue(f"{spec.name}: {wrong}{_allowed_keys(spec, str(wrong))}")
    except RecursionError:
        return BadValue(f"{spec.name}: the request is nested too deeply")


def peek(frame: bytes) -> tuple[str, float | None]:
    """Op and n_steps of a frame that could not be read at once, as far as they can be told."""
    try:
        message = _tree(frame)
    except BadRequest:
        return "", None
    op, n_steps = message.get("op"), message.get("n_steps")
    return (op if isinstance(op, str) else ""), (n_steps if isinstance(n_steps, int | float) else None)


# -- what a request would take in memory ----------------------------------------------------------------------------

_SMALL_BYTES = 1 << 18
"""A smaller request is read without being looked at: it can become some twenty megabytes at most."""

_MOST_VALUES = 500_000
_MOST_CONTAINERS = 100_000
_JSON_BYTES_PER_VALUE = 8
_MOST_JSON_VALUES = 2_000_000
"""A value takes up to 40 bytes and a list or a map 72, of one byte of a request. With these limits a request never
takes more than 64 MB and ten times its size."""

_FLOAT64 = 0xCB
_FLOAT64_BYTES = 9
_MANY = 16


def is_readable(frame: bytes) -> bool:
    """Whether reading a large frame takes a bearable time, and bearable memory; False when it is broken."""
    if looks_like_json(frame):
        most = min(_MOST_VALUES + len(frame) // _JSON_BYTES_PER_VALUE, _MOST_JSON_VALUES)
        containers = frame.count(b"[") + frame.count(b"{")
        return containers <= _MOST_CONTAINERS and containers + frame.count(b",") <= most
    try:
        return _count_msgpack(frame)
    except IndexError:  # it ends within a value
        return False


def _count_msgpack(frame: bytes) -> bool:
    """Whether the values of a msgpack frame are few enough; lists of float64 are passed over whole."""
    position, left, values, containers = 0, 1, 0, 0
    while left:
        code = frame[position]
        fixed, size_bytes, per_item, extra = _LAYOUT[code]
        position += 1
        count = fixed
        if size_bytes:
            count = int.from_bytes(frame[position : position + size_bytes], "big")
            position += size_bytes
        left -= 1
        values += 1
        if not per_item:
            position += count + extra
            continue
        containers += 1
        if per_item == 1 and count > _MANY and _are_floats(frame, position, count):
            position += _FLOAT64_BYTES * count
            continue
        left += per_item * count
        if values + left > _MOST_VALUES or containers > _MOST_CONTAINERS or left > len(frame) - position:
            return False
    return True


def _are_floats(frame: bytes, position: int, count: int) -> bool:
    size = _FLOAT64_BYTES * count
    if len(frame) < position + size:
        return False
    return bool((np.frombuffer(frame, np.uint8, size, position)[::_FLOAT64_BYTES] == _FLOAT64).all())


def _layout(code: int) -> tuple[int, int, int, int]:
    """Of a value by its first byte: a fixed count, bytes of a size after it, values per count (0: bytes), more bytes.

    The count is that of the values in a list or twice that of the entries of a map, or of the bytes of anything else.
    """
    if code < 0x80 or code >= 0xE0:
        return 0, 0, 0, 0
    for first, end, per_item in ((0x80, 0x90, 2), (0x90, 0xA0, 1), (0xA0, 0xC0, 0)):
        if first <= code < end:
            return code - first, 0, per_item, 0
    return _LAYOUTS.get(code, (0, 0, 0, 0))


_LAYOUTS = {
    0xC4: (0, 1, 0, 0), 0xC5: (0, 2, 0, 0), 0xC6: (0, 4, 0, 0),  # binary
    0xC7: (0, 1, 0, 1), 0xC8: (0, 2, 0, 1), 0xC9: (0, 4, 0, 1),  # extensions
    0xCA: (4, 0, 0, 0), 0xCB: (8, 0, 0, 0),  # floats
    0xCC: (1, 0, 0, 0), 0xCD: (2, 0, 0, 0), 0xCE: (4, 0, 0, 0), 0xCF: (8, 0, 0, 0),  # unsigned integers
    0xD0: (1, 0, 0, 0), 0xD1: (2, 0, 0, 0), 0xD2: (4, 0, 0, 0), 0xD3: (8, 0, 0, 0),  # signed integers
    0xD4: (2, 0, 0, 0), 0xD5: (3, 0, 0, 0), 0xD6: (5, 0, 0, 0), 0xD7: (9, 0, 0, 0), 0xD8: (17, 0, 0, 0),
    0xD9: (0, 1, 0, 0), 0xDA: (0, 2, 0, 0), 0xDB: (0, 4, 0, 0),  # texts
    0xDC: (0, 2, 1, 0), 0xDD: (0, 4, 1, 0), 0xDE: (0, 2, 2, 0), 0xDF: (0, 4, 2, 0),  # lists, maps
}  # fmt: skip
_LAYOUT = [_layout(code) for code in range(256)]

# -- checks that handlers share -------------------------------------------------------------------------------------


def _allowed_keys(spec: OpSpec, wrong: str) -> str:
    """What a map of a request may hold, when it holds something else."""
    where = _UNKNOWN_KEY.search(wrong)
    fields = [one for one in msgspec.structs.fields(spec.request) if where and one.encode_name == where[1]]
    maps = [kind for one in fields for kind in get_args(one.type) if issubclass(kind, msgspec.Struct)]
    return "".join(f"; there are: {known(one.__struct_encode_fields__)}" for one in maps)


_UNKNOWN_KEY = re.compile(r"unknown field .* at `\$\.(\w+)`")


def _with_integers(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _with_integers(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_with_integers(value) for value in tree]
    return int(tree) if isinstance(tree, float) and tree.is_integer() else tree


def _tree(frame: bytes) -> dict[str, Any]:
    if len(frame) > MAX_REQUEST_BYTES:
        raise BadRequest(f"the request has {len(frame)} bytes; the limit is {MAX_REQUEST_BYTES}")
    if len(frame) > _SMALL_BYTES and not is_readable(frame):
        raise BadRequest(
            f"the request has {len(frame)} bytes, which would be too many values in memory: at most {_MOST_VALUES} and "
            f"{_MOST_CONTAINERS} lists and maps. Binary, texts and lists of float64 do not count"
        )
    try:
        return decode(frame)
    except DecodeError as broken:
        raise BadRequest(f"the frame is neither msgpack nor JSON: {broken}") from broken


Word = TypeVar("Word", bound=StrEnum)
_TARGET_WORDS = ("actor_id", "actor_name")


def required(field: str, value: str | None) -> str:
    """A field that the protocol checks inside the handler."""
    if not value:
        raise MissingField(f"field {field!r} is missing")
    return value


def one_of(field: str, words: type[Word], value: str) -> Word:
    """The enum member of a wire word, in any case."""
    try:
        return words(value.lower())
    except ValueError:
        raise BadValue(f"{field} must be one of {known(str(word) for word in words)}, not {value!r}") from None


def by_name(target_by: str | None) -> bool:
    """Whether a request's target is a name only, and not an actor_id either."""
    word = target_by or _TARGET_WORDS[0]
    if word not in _TARGET_WORDS:
        raise BadValue(f"target_by must be one of {known(_TARGET_WORDS)}, not {word!r}")
    return word == _TARGET_WORDS[1]
