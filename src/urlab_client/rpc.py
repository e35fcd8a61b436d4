"""Requests and replies: the envelope, the time limits, the errors, and the types of the contract out of maps.

Our server's replies have every field and are converted in one pass. Other servers, and other versions of ours, may
leave fields out, say null, or send whole numbers as floats: what they left out becomes empty, and what this client does
not know is passed over.
"""

import itertools
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect

from urlab_client.errors import (
    TRANSPORT_ERROR,
    UNEXPECTED_REPLY_OP,
    WRONG_VALUE,
    URLabControllerError,
    URLabRPCError,
    URLabTimeoutError,
    URLabValueError,
)
from urlab_client.transports.base import DEFAULT_TIMEOUT_MS, REQUEST_ID, Transport, refuse_after_fork
from urlab_wire.catalogue import CATALOGUE, DEFAULT_LIMIT_S, PICTURE_LIMIT_S
from urlab_wire.codec import Tree, plain_map
from urlab_wire.envelope import ERROR_OP, Reply, Request, ok_op
from urlab_wire.errors import ErrorCode

GRACE_MS = 2000
"""How much longer the client waits than the server may take, so that an answer of the server at its own limit wins."""

_FIRST_ID = 10**15
"""Ids of requests begin above it, at random: without a session they need 16 digits."""

_BRIEF = frozenset({"hello"})
"""Ops with a long limit of their own that a caller with little time does not wait for."""

REJOIN_HINT = "another client took over or the server was restarted: call discover() again"

AnyReply = TypeVar("AnyReply", bound=Reply)
ReplyOp = str | tuple[str, ...]
"""The ``op`` that a successful reply has, or several of which one will do."""


class RpcChannel:
    """Asks a server, as one session. ``session_id`` is empty until a handshake sets it."""

    def __init__(self, transport: Transport, rcv_timeout_ms: int) -> None:
        self.transport = transport
        refuse_after_fork(transport)
        self.rcv_timeout_ms = rcv_timeout_ms
        self.session_id = ""
        self._ids = itertools.count(_FIRST_ID + secrets.randbits(62))
        self._timeouts_ms: dict[str, int] = {}
        self._is_patient = False

    def be_patient(self) -> None:
        """Wait 2 s more than the caller's limit, and for a handshake its own: for clients that outlive servers."""
        self._is_patient = True
        self._timeouts_ms.clear()

    def call(
        self,
        op: str,
        payload: Mapping[str, Any] | None = None,
        *,
        expected_op: ReplyOp | None = None,
        rcv_timeout_ms: int | None = None,
    ) -> Tree:
        """One op as maps, its reply. Raises `URLabRPCError` on an error reply or on another op than expected.

        Every request has an id of its own: one that a transport has to send again is not served twice.
        """
        request = {
            "op": op,
            "session_id": self.session_id or None,
            REQUEST_ID: next(self._ids),
            **(payload or {}),
        }
        try:
            reply = self.transport.rpc(request, rcv_timeout_ms=rcv_timeout_ms or self.timeout_ms(op))
        except URLabTimeoutError as late:
            late.op = op
            raise
        return _checked(op, reply, expected_op or ok_op(op))

    def timeout_ms(self, op: str) -> int:
        """How long to wait for an op's answer, see `URLabClient`."""
        known = self._timeouts_ms.get(op)
        return self._find_timeout_ms(op) if known is None else known

    def picture_timeout_ms(self) -> int | None:
        """How long to wait for an answer with pictures; None, as for any other, where the caller has less time."""
        if self.rcv_timeout_ms < DEFAULT_TIMEOUT_MS:
            return None
        return max(self.rcv_timeout_ms, int(1000 * PICTURE_LIMIT_S) + GRACE_MS)

    def _find_timeout_ms(self, op: str) -> int:
        spec = CATALOGUE.get(op)
        limit_s = spec.limit_s if spec is not None else DEFAULT_LIMIT_S
        is_slow = limit_s > DEFAULT_LIMIT_S and op not in _BRIEF
        limit_ms = int(1000 * limit_s) + GRACE_MS
        if self.rcv_timeout_ms >= DEFAULT_TIMEOUT_MS or is_slow:
            self._timeouts_ms[op] = max(self.rcv_timeout_ms, limit_ms)
        elif self._is_patient:
            self._timeouts_ms[op] = limit_ms if limit_s > DEFAULT_LIMIT_S else self.rcv_timeout_ms + GRACE_MS
        else:
            self._timeouts_ms[op] = self.rcv_timeout_ms
        return self._timeouts_ms[op]


def op_of(request: Request[Reply]) -> str:
    """The op that a request asks for."""
    return str(request.__struct_config__.tag)


def payload_of(request: Request[Reply]) -> Tree:
    """The fields of a request that are set, as plain maps."""
    fields = plain_map(request)
    del fields["op"]
    return fields


def reply_type(request: Request[AnyReply]) -> type[AnyReply]:
    """The type of the reply that a request gets."""
    return cast("type[AnyReply]", CATALOGUE[op_of(request)].reply)


def read_reply(kind: type[AnyReply], reply: Tree, absent: Mapping[str, Any] | None = None) -> AnyReply:
    """A reply map as its type. ``absent`` holds what a field means, by wire name, where the reply lacks it.

    Raises `URLabRPCError` when a value cannot be what its field holds.
    """
    try:
        return msgspec.convert(reply, kind)
    except msgspec.ValidationError:
        present = {name: value for name, value in reply.items() if value is not None}
        filled = _filled(_type_of(kind), {**(absent or {}), **present})
    try:
        return msgspec.convert(filled, kind, strict=False)
    except msgspec.ValidationError as wrong:
        raise URLabRPCError(TRANSPORT_ERROR, f"the reply cannot be read: {wrong}") from wrong


def _checked(op: str, reply: Tree, expected: ReplyOp) -> Tree:
    answered = reply.get("op")
    if answered == expected or (isinstance(expected, tuple) and answered in expected):
        return reply
    if answered == ERROR_OP:
        raise _error(op, reply)
    raise URLabRPCError(UNEXPECTED_REPLY_OP, f"expected {expected!r}, got {answered!r}", op=op)


def _error(op: str, reply: Tree) -> URLabRPCError:
    code = str(reply.get("code") or "unknown")
    message = str(reply.get("message") or "")
    if code == ErrorCode.SESSION_EXPIRED and "discover()" not in message:
        message = f"{message} ({REJOIN_HINT})" if message else REJOIN_HINT
    if code == ErrorCode.CONTROLLER_SCHEMA_VIOLATION:
        return URLabControllerError(message, op=op)
    return (URLabValueError if code in WRONG_VALUE else URLabRPCError)(code, message, op=op)


_type_of = cache(inspect.type_info)


def _filled(kind: inspect.Type, value: Any) -> Any:
    """A value of a reply, with everything in it that its type requires."""
    if value is None:
        return _empty(kind)
    match kind:
        case inspect.StructType(fields=fields) if isinstance(value, Mapping):
            wanted = [one for one in fields if one.required or value.get(one.encode_name) is not None]
            return {one.encode_name: _filled(one.type, value.get(one.encode_name)) for one in wanted}
        case inspect.ListType(item_type=item) if isinstance(value, list):
            return [_filled(item, one) for one in value]
        case inspect.DictType(value_type=item) if isinstance(value, Mapping):
            return {name: _filled(item, one) for name, one in value.items()}
        case inspect.UnionType(types=arms):
            (*others, last) = [arm for arm in arms if not isinstance(arm, inspect.NoneType)]
            return value if others else _filled(last, value)
    return value


def _empty(kind: inspect.Type) -> Any:
    """What stands for a value that a reply lacks: nothing, zero, an empty text."""
    match kind:
        case inspect.StructType():
            return _filled(kind, {})
        case inspect.TupleType(item_types=items):
            return [_empty(item) for item in items]
        case inspect.UnionType() | inspect.AnyType():
            return None
    return _EMPTY[type(kind)]


_EMPTY: dict[type[inspect.Type], Any] = {
    inspect.StrType: "",
    inspect.IntType: 0,
    inspect.FloatType: 0.0,
    inspect.BoolType: False,
    inspect.BytesType: b"",
    inspect.ListType: [],
    inspect.DictType: {},
}
