"""Which function serves which op. A handler registers by declaring itself; a second one for an op is refused."""

from collections.abc import Callable
from typing import Any

from urlab.ops.context import Context
from urlab_wire import CATALOGUE, Reply

Handler = Callable[[Context, Any], Reply | bytes]
"""A typed reply, or one that is encoded already, in the encoding of the session."""

HANDLERS: dict[str, Handler] = {}


def handler(op: str) -> Callable[[Handler], Handler]:
    """Declare the handler of an op: ``(context, typed request) -> reply``."""
    if op not in CATALOGUE:
        raise ValueError(f"there is no op {op!r} in the catalogue")

    def register(function: Handler) -> Handler:
        if op in HANDLERS:
            raise ValueError(f"op {op!r} has two handlers: {HANDLERS[op].__name__} and {function.__name__}")
        HANDLERS[op] = function
        return function

    return register
