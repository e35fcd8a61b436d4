"""Requests and replies as maps: the envelope, the time limits and the errors; and the maps of typed requests."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from urlab_client.errors import UNEXPECTED_REPLY_OP, URLabRPCError, URLabTimeoutError
from urlab_client.transports.base import Transport
from urlab_wire.catalogue import CATALOGUE, DEFAULT_LIMIT_S
from urlab_wire.codec import Tree, plain_map
from urlab_wire.envelope import ERROR_OP, Reply, Request, ok_op
from urlab_wire.errors import ErrorCode

GRACE_MS = 2000
"""How much longer the client waits than it was told to, so that an answer of the server at its own limit wins."""

REJOIN_HINT = "another client took over or the server was restarted: call discover() again"

AnyReply = TypeVar("AnyReply", bound=Reply)
ReplyOp = str | tuple[str, ...]
"""The ``op`` that a successful reply has, or several of which one will do."""


class RpcChannel:
    """Asks a server, as one session. ``session_id`` is empty until a handshake sets it."""

    def __init__(self, transport: Transport, rcv_timeout_ms: int) -> None:
        self.transport = transport
        self.rcv_timeout_ms = rcv_timeout_ms
        self.session_id = ""
        self._timeouts_ms: dict[str, int] = {}

    def call(
        self,
        op: str,
        payload: Mapping[str, Any] | None = None,
        *,
        expected_op: ReplyOp | None = None,
        rcv_timeout_ms: int | None = None,
    ) -> Tree:
        """One op as maps, its reply. Raises `URLabRPCError` on an error reply or on another op than expected."""
        request = {"op": op, "session_id": self.session_id or None, **(payload or {})}
        try:
            reply = self.transport.rpc(request, rcv_timeout_ms=rcv_timeout_ms or self.timeout_ms(op))
        except URLabTimeoutError as late:
            raise late.during(op) from None
        return _checked(op, reply, expected_op or ok_op(op))

    def timeout_ms(self, op: str) -> int:
        """How long to wait for an op's answer: as long as we were told, for slow ops the server's limit, plus grace."""
        known = self._timeouts_ms.get(op)
        return self._find_timeout_ms(op) if known is None else known

    def _find_timeout_ms(self, op: str) -> int:
        spec = CATALOGUE.get(op)
        limit_s = spec.limit_s if spec is not None else DEFAULT_LIMIT_S
        limit_ms = int(1000 * limit_s) if limit_s > DEFAULT_LIMIT_S else 0
        self._timeouts_ms[op] = max(self.rcv_timeout_ms, limit_ms) + GRACE_MS
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
    return URLabRPCError(code, message, op=op)
