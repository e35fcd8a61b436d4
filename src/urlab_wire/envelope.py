"""The frame around every op: requests carry ``op`` and ``session_id``, replies ``op``."""

from typing import Annotated, Any, Generic, TypeVar

import msgspec

from urlab_wire.errors import ErrorCode

ERROR_OP = "error"

MAX_NAME_LENGTH = 256
MAX_TEXT_LENGTH = 4096
MAX_TAGS = 100
_MAX_MESSAGE_LENGTH = 10_000

Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]
"""A name that a client chooses and the server keeps: of an actor, a tag, a recording, a state."""

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT_LENGTH)]
"""A text that the server shows or takes for a path."""

Tags = Annotated[list[Name], msgspec.Meta(max_length=MAX_TAGS)]
"""All tags of an actor."""


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
    """Build an error reply; a message that repeats a request of any length is cut."""
    if len(message) > _MAX_MESSAGE_LENGTH:
        message = f"{message[:_MAX_MESSAGE_LENGTH]}... ({len(message)} characters in all)"
    return ErrorReply(code=str(code), message=message, **extra)
