"""The streams: topics, and the payload of setpoints, in both directions.

Messages are two frames, topic and payload. A payload that is not what it should be raises `StreamError`.
`urlab_wire.rows` has the payloads of state rows, `urlab_wire.stream_messages` those that are maps.
"""

import struct
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

STATE_TOPIC = "state/full"
_META = "meta/"

_INT = struct.Struct("<i")
_PAIR = np.dtype([("id", "<i4"), ("value", "<f4")])


class StreamError(ValueError):
    """A payload that has not the layout of its topic."""


class NotFiniteError(StreamError):
    """A control message with a value that is not finite."""


class RowKind(StrEnum):
    """The second part of a row's topic."""

    JOINT = "joint"
    SENSOR = "sensor"
    BASE_STATE = "base_state"
    TWIST = "twist"
    ACTIONS = "actions"


class ControlOutcome(StrEnum):
    """What became of a message to the control socket; the words are those of its counters."""

    APPLIED = "applied"
    NOT_LIVE = "not_live"
    """Nothing plays, or the mode is not live."""
    OTHER_SOURCE = "other_source"
    """The robot follows another control source: setpoints are kept for later, gains are not."""
    MALFORMED = "malformed"
    NOT_FINITE = "not_finite"
    UNKNOWN_TOPIC = "unknown_topic"
    UNKNOWN_ROBOT = "unknown_robot"
    UNKNOWN_ID = "unknown_id"
    BAD_JSON = "bad_json"
    REFUSED = "refused"
    """The robot's controller does not take these gains, or there is none; or the robot takes no twist."""
    BUSY = "busy"
    """The simulation did not give a turn in time."""


# -- topics -------------------------------------------------------------------------------------------------------


class RowTopic(NamedTuple):
    """A row's topic. ``name`` is a joint's or a sensor's, empty for twist and actions."""

    prefix: str
    kind: RowKind
    name: str = ""


def row_topic(prefix: str, kind: RowKind, name: str = "") -> str:
    """``{prefix}/{kind}/{name}``, or ``{prefix}/{kind}`` when there is no name."""
    return f"{prefix}/{kind}/{name}" if name else f"{prefix}/{kind}"


def parse_row_topic(topic: str) -> RowTopic | None:
    """The parts of a row's topic; None when it is something else."""
    prefix, _, rest = topic.rstrip(" ").partition("/")
    kind, _, name = rest.partition("/")
    named = kind in (RowKind.JOINT, RowKind.SENSOR, RowKind.BASE_STATE)
    if not prefix or kind not in RowKind.__members__.values() or named is (name == ""):
        return None
    return RowTopic(prefix, RowKind(kind), name)


def scene_topic(entity: str, field: str) -> str:
    """v2 only: one of ``xpos``, ``xquat`` (w, x, y, z), ``qpos``, ``qvel`` of an entity, as raw float64."""
    return f"scene/{entity}/{field}"


def control_topic(prefix: str) -> str:
    """Where setpoints are sent. The trailing space is the protocol's; servers of ours do not insist on it."""
    return f"{prefix}/control "


def twist_command_topic(prefix: str) -> str:
    """Where velocities are sent, as `pack_twist` has them. An extension: the protocol has the op set_twist only."""
    return f"{prefix}/set_twist "


def frame_topic(camera_topic: str) -> str:
    """The first frame of a camera's pictures: its topic and a space. The second frame is raw pixels."""
    return f"{camera_topic} "


def meta_topic(camera_topic: str) -> str:
    """The first frame of the message that precedes a picture; the second is msgpack."""
    return f"{_META}{camera_topic}"


# -- control ------------------------------------------------------------------------------------------------------


def pack_control(values: Mapping[int, float]) -> bytes:
    """Setpoints by MuJoCo's actuator id: int32 count, then (int32 id, float32 value) each, little-endian."""
    pairs = np.zeros(len(values), dtype=_PAIR)
    with np.errstate(over="ignore"):
        pairs["id"], pairs["value"] = list(values), list(values.values())
    return _INT.pack(len(values)) + pairs.tobytes()


def unpack_control(payload: bytes) -> dict[int, float]:
    """The reverse of `pack_control`; of an id that comes twice, the last value.

    Raises `StreamError` unless count and size agree, and `NotFiniteError` when a value is NaN or infinite.
    """
    if len(payload) < _INT.size:
        raise StreamError(f"a control message begins with a count of 4 bytes, but has {len(payload)} bytes")
    (count,) = _INT.unpack_from(payload)
    if count < 0 or len(payload) != _INT.size + _PAIR.itemsize * count:
        raise StreamError(f"a control message of {len(payload)} bytes does not hold {count} pairs of 8 bytes")
    pairs = np.frombuffer(payload, dtype=_PAIR, offset=_INT.size)
    values = dict(zip(pairs["id"].tolist(), pairs["value"].tolist(), strict=True))
    if not np.isfinite(pairs["value"]).all():
        wrong = int(np.argmin(np.isfinite(pairs["value"])))
        raise NotFiniteError(f"actuator {pairs['id'][wrong]} is sent {pairs['value'][wrong]}, which is not finite")
    return values
