"""Frames -> typed requests. The good case is one pass in C; what is wrong is found out afterwards, at leisure."""

from typing import Any

import msgspec

from urlab.config import MAX_REQUEST_BYTES
from urlab.errors import BadRequest, BadValue, MissingField, MissingOp, UrlabError
from urlab_wire import CATALOGUE, DecodeError, OpSpec, Request, decode
from urlab_wire.codec import TypedDecoder
from urlab_wire.envelope import Envelope

_envelope = TypedDecoder(Envelope)
_requests = {name: TypedDecoder(spec.request) for name, spec in CATALOGUE.items()}
_required = {name: tuple(spec.required_fields()) for name, spec in CATALOGUE.items()}


def read_envelope(frame: bytes) -> Envelope:
    """Op and session of a request; BadRequest or MissingOp when it has none."""
    if len(frame) > MAX_REQUEST_BYTES:
        raise BadRequest(f"the request has {len(frame)} bytes; the limit is {MAX_REQUEST_BYTES}")
    try:
        envelope = _envelope.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError):
        envelope = _envelope_at_leisure(frame)
    if not envelope.op:
        raise MissingOp('the request has no "op"')
    return envelope


def read_request(spec: OpSpec, frame: bytes) -> Request | UrlabError:
    """The typed request, or what is wrong with it: MissingField or BadValue."""
    try:
        return _requests[spec.name].decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError) as wrong:
        return _what_is_wrong(spec, frame, wrong)


def _envelope_at_leisure(frame: bytes) -> Envelope:
    message = _tree(frame)
    op, session_id = message.get("op"), message.get("session_id")
    return Envelope(
        op=op if isinstance(op, str) else None,
        session_id=session_id if isinstance(session_id, str) else None,
    )


def _what_is_wrong(spec: OpSpec, frame: bytes, wrong: Exception) -> UrlabError:
    try:
        message = _tree(frame)
    except BadRequest as broken:
        return broken
    for name in _required[spec.name]:
        if message.get(name) is None:
            return MissingField(f"{spec.name} needs the field {name!r}")
    return BadValue(f"{spec.name}: {wrong}")


def _tree(frame: bytes) -> dict[str, Any]:
    try:
        return decode(frame)
    except DecodeError as broken:
        raise BadRequest(f"the frame is neither msgpack nor JSON: {broken}") from broken
