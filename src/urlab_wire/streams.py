"""The streams: topics, and the binary payloads of state rows and of control, in both directions.

Everything is little-endian. Messages are two frames, topic and payload. Rows come in two layouts: v1 is the one that
the protocol documents, v2 the one that later servers send. Where a function takes either, the payload itself tells
which it is. A payload that is not what it should be raises `StreamError`. `urlab_wire.stream_messages` has the
payloads that are maps.
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np

STATE_TOPIC = "state/full"
_META = "meta/"

_JOINT = struct.Struct("<ifff")
_INT = struct.Struct("<i")
_TWIST = struct.Struct("<3f")
_BASE_V1 = struct.Struct("<7d")
_BASE_V2 = struct.Struct("<13f")
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


def gains_topic(prefix: str) -> str:
    """Where gains are sent."""
    return f"{prefix}/set_gains "


def twist_command_topic(prefix: str) -> str:
    """Where velocities are sent, as `pack_twist` has them. An extension: the protocol has the op set_twist only."""
    return f"{prefix}/set_twist "


def frame_topic(camera_topic: str) -> str:
    """The first frame of a camera's pictures: its topic and a space. The second frame is raw pixels."""
    return f"{camera_topic} "


def meta_topic(camera_topic: str) -> str:
    """The first frame of the message that precedes a picture; the second is msgpack."""
    return f"{_META}{camera_topic}"


# -- rows ---------------------------------------------------------------------------------------------------------


class JointRow(NamedTuple):
    """First position, velocity and acceleration of a joint; ``id`` is MuJoCo's."""

    id: int
    pos: float
    vel: float
    acc: float


class SensorRow(NamedTuple):
    """A sensor's values; ``id`` is MuJoCo's."""

    id: int
    values: tuple[float, ...]


class BaseState(NamedTuple):
    """A free body: metres, w x y z; the angular velocity is in the body's frame. v1 has no velocities."""

    pos: tuple[float, ...]
    quat_wxyz: tuple[float, ...]
    linvel: tuple[float, ...] | None = None
    angvel: tuple[float, ...] | None = None


def pack_joint(row: JointRow) -> bytes:
    """16 bytes: int32 id, float32 position, velocity, acceleration."""
    return _INT.pack(row.id) + _float32s(row[1:])


def unpack_joint(payload: bytes) -> JointRow:
    """The reverse of `pack_joint`."""
    return JointRow(*_unpacked("joint row", _JOINT, payload))


def pack_sensor_v1(row: SensorRow) -> bytes:
    """int32 id, float32 values."""
    return _INT.pack(row.id) + _float32s(row.values)


def pack_sensor_v2(row: SensorRow) -> bytes:
    """int32 id, int32 how many, float32 values."""
    return _INT.pack(row.id) + _INT.pack(len(row.values)) + _float32s(row.values)


def unpack_sensor(payload: bytes) -> SensorRow:
    """Of either layout. It is v2 when its second word is the number of those that follow.

    As the first value of a v1 row such a word would be the float32 of a few 1e-45, which no sensor measures.
    """
    words, rest = divmod(len(payload), 4)
    if rest or words < 2:
        raise StreamError(f"a sensor row is an id and values of 4 bytes each, but has {len(payload)} bytes")
    (ident,) = _INT.unpack_from(payload)
    (second,) = _INT.unpack_from(payload, 4)
    first = 8 if words > 2 and second == words - 2 else 4
    return SensorRow(ident, struct.unpack(f"<{words - first // 4}f", payload[first:]))


def pack_base_state_v1(row: BaseState) -> bytes:
    """56 bytes: float64 position x y z, quaternion w x y z."""
    return _BASE_V1.pack(*row.pos, *row.quat_wxyz)


def pack_base_state_v2(row: BaseState) -> bytes:
    """52 bytes: float32 position x y z, quaternion x y z w, linear and angular velocity."""
    w, x, y, z = row.quat_wxyz
    return _float32s((*row.pos, x, y, z, w, *(row.linvel or (0.0,) * 3), *(row.angvel or (0.0,) * 3)))


def unpack_base_state(payload: bytes) -> BaseState:
    """Of either layout; their sizes differ."""
    if len(payload) == _BASE_V1.size:
        numbers = _BASE_V1.unpack(payload)
        return BaseState(numbers[:3], numbers[3:])
    numbers = _unpacked("base_state row", _BASE_V2, payload)
    x, y, z, w = numbers[3:7]
    return BaseState(numbers[:3], (w, x, y, z), numbers[7:10], numbers[10:])


def pack_twist(vx: float, vy: float, yaw_rate: float) -> bytes:
    """12 bytes: float32 m/s, m/s, rad/s."""
    return _float32s((vx, vy, yaw_rate))


def unpack_twist(payload: bytes) -> tuple[float, float, float]:
    """vx, vy in m/s, yaw rate in rad/s."""
    vx, vy, yaw_rate = _unpacked("twist row", _TWIST, payload)
    return vx, vy, yaw_rate


def pack_actions(actions: int) -> bytes:
    """An int32 bit field."""
    return _INT.pack(actions)


def unpack_actions(payload: bytes) -> int:
    """The bit field."""
    (actions,) = _unpacked("actions row", _INT, payload)
    return int(actions)


# -- control ------------------------------------------------------------------------------------------------------


def pack_control(values: Mapping[int, float]) -> bytes:
    """Setpoints by MuJoCo's actuator id: int32 count, then (int32 id, float32 value) each."""
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


def pack_gains(gains: Mapping[str, Mapping[str, float]]) -> bytes:
    """``{joint: {"kp": .., "kv": .., "torque_limit": ..}}`` as JSON; what is left out stays as it is."""
    for joint, values in gains.items():
        if not all(math.isfinite(value) for value in values.values()):
            raise NotFiniteError(f"the gains of {joint!r} are not finite: {dict(values)}")
    return msgspec.json.encode(gains)


def _float32s(numbers: Iterable[float] | Sequence[float]) -> bytes:
    """As float32; what is beyond their range becomes infinite, as it does in C."""
    with np.errstate(over="ignore"):
        return np.array([*numbers], dtype=np.float64).astype("<f4").tobytes()


def _unpacked(what: str, layout: struct.Struct, payload: bytes) -> tuple[Any, ...]:
    if len(payload) != layout.size:
        raise StreamError(f"a {what} has {layout.size} bytes, but this one has {len(payload)}")
    return layout.unpack(payload)
