"""Frames -> typed requests, and the checks of their fields that several handlers share.

The good case is one pass in C; what is wrong is found in a second, slower pass.
"""

import re
from enum import StrEnum
from typing import Any, TypeVar, Union, get_args

import msgspec

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
    if len(frame) > MAX_REQUEST_BYTES:
        return None
    try:
        request: Request[Reply] = (_from_json if looks_like_json(frame) else _from_msgpack).decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return request


def read_envelope(frame: bytes) -> tuple[str, str | None]:
    """Op and session of a frame that could not be read at once; BadRequest or MissingOp when it has none."""
    if len(frame) > MAX_REQUEST_BYTES:
        raise BadRequest(f"the request has {len(frame)} bytes; the limit is {MAX_REQUEST_BYTES}")
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


def peek(frame: bytes) -> tuple[str, float | None]:
    """Op and n_steps of a frame that could not be read at once, as far as they can be told."""
    try:
        message = decode(frame)
    except DecodeError:
        return "", None
    op, n_steps = message.get("op"), message.get("n_steps")
    return (op if isinstance(op, str) else ""), (n_steps if isinstance(n_steps, int | float) else None)


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
