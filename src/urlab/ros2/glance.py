"""A glance at a state that costs little."""

import msgspec

from urlab_wire.ops.stepping import ClockBlock


class Glance(msgspec.Struct):
    """What tells the time, and one scene from another; the rest of a state is not decoded."""

    time: float
    sim_time: ClockBlock
    per_articulation: dict[str, msgspec.Raw]


_decoder = msgspec.msgpack.Decoder(Glance)


def glance(payload: bytes) -> Glance:
    """Read the beginning of a ``state/full``; ``msgspec.DecodeError`` when it is none. Any thread."""
    return _decoder.decode(payload)
