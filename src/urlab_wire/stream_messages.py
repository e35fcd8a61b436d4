"""Payloads of the streams that are maps: the whole state, the info message, what is known of a picture."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from urlab_wire.codec import encode
from urlab_wire.ops.stepping import ArticulationState, ClockBlock, EntityState
from urlab_wire.streams import StreamError

Decoded = TypeVar("Decoded")


class StateFull(msgspec.Struct, kw_only=True, tag_field="op", tag="state_full"):
    """The payload of ``state/full``, as msgpack: every robot at the standard level, and every entity.

    ``step`` only grows while a server lives. A server may put in blocks that are packed already.
    """

    time: float
    step: int
    sim_time: ClockBlock
    wall_time: ClockBlock
    per_articulation: dict[str, ArticulationState]
    entities: dict[str, EntityState]


class CameraEndpoint(msgspec.Struct):
    """Where a camera streams."""

    name: str
    endpoint: str


class ActuatorList(msgspec.Struct, kw_only=True, tag_field="type", tag="actuator_list"):
    """The message of the info socket, one JSON frame per robot: compiled names, MuJoCo's ids, control ranges.

    ``camera_list`` is the same for all robots: every camera of the world.
    """

    robot: str
    names: list[str]
    ids: list[int]
    mins: list[float]
    maxs: list[float]
    camera_list: list[CameraEndpoint] = msgspec.field(default_factory=list)


def unpack_state(payload: bytes) -> StateFull:
    """A ``state/full``, as `urlab_wire.state_frame` builds it; StreamError when it is something else."""
    return _decoded("state", _STATE, payload)


def pack_info(info: ActuatorList) -> bytes:
    """The info message as a JSON frame."""
    return msgspec.json.encode(info)


def pack_metadata(metadata: Mapping[str, Any]) -> bytes:
    """What is known of a picture (frame_id, sim_time, K, pose, ...), as msgpack."""
    return encode(metadata)


def unpack_metadata(payload: bytes) -> dict[str, Any]:
    """The reverse of `pack_metadata`; StreamError when it is something else."""
    return _decoded("metadata", _METADATA, payload)


_STATE = msgspec.msgpack.Decoder(StateFull)
_METADATA = msgspec.msgpack.Decoder(dict[str, Any])


def _decoded(what: str, decoder: msgspec.msgpack.Decoder[Decoded], payload: bytes) -> Decoded:
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise StreamError(f"a broken {what} message: {broken}") from broken
