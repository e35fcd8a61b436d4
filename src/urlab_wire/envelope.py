"""The frame around every op: requests carry ``op`` and ``session_id``, replies ``op``."""

from typing import Any, Generic, TypeVar

import msgspec

from urlab_wire.errors import ErrorCode

ERROR_OP = "error"


class Reply(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="op"):
    """Base of all replies. Optional fields that are not set do not travel."""


Answer = TypeVar("Answer", bound=Reply, covariant=True)


class Request(msgspec.Struct, Generic[Answer], kw_only=True, omit_defaults=True, tag_field="op"):
    """Base of all requests; ``Request["XReply"]`` names the reply that a successful one gets. Null counts as absent.

    ``request_id`` (extension) is the client's own, once for each request of a session: a request that comes again with
    the same id is not served again, and gets the reply of the first.
    """

    session_id: str | None = None
    request_id: str | int | None = None


class TargetedRequest(Request[Answer]):
    """Base of requests about one actor. ``target_by`` is ``actor_id`` (or its name, the default) or ``actor_name``."""

    target: str
    target_by: str | None = None


class ErrorReply(Reply, tag=ERROR_OP):
    """What a failed request gets."""

    code: str
    message: str
    absolute_path: str | None = None


def ok_op(op: str) -> str:
    """The ``op`` of a successful reply. The original's clients insist on that of ``set_viewport_mode``."""
    return "set_mode_ok" if op == "set_viewport_mode" else f"{op}_ok"


def error(code: ErrorCode | str, message: str, **extra: Any) -> ErrorReply:
    """Build an error reply."""
    return ErrorReply(code=str(code), message=message, **extra)
