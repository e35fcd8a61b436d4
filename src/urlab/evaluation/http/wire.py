"""The languages of bodies: pickle for stock clients, JSON and msgpack as safe and lean alternatives."""

from enum import Enum

from urlab.evaluation.problems import BadBody


class Wire(Enum):
    """A language of bodies; the value is its media type."""

    PICKLE = "application/octet-stream"
    JSON = "application/json"
    MSGPACK = "application/msgpack"

    @property
    def is_text(self) -> bool:
        """True if array data travels as base64 text: all but msgpack."""
        return self is not Wire.MSGPACK


_MEDIA_TYPES = {
    **{wire.value: wire for wire in Wire},
    "application/x-msgpack": Wire.MSGPACK,
    "application/vnd.msgpack": Wire.MSGPACK,
    "application/x-pickle": Wire.PICKLE,
}


def wire_of(content_type: str | None, default: Wire) -> Wire:
    """The language that a Content-Type names; without one, ``default``."""
    if not content_type:
        return default
    wire = _MEDIA_TYPES.get(content_type.partition(";")[0].strip().lower())
    if wire is None:
        known = ", ".join(one.value for one in Wire)
        raise BadBody(f"Content-Type {content_type[:80]!r} is not known; send {known}")
    return wire
