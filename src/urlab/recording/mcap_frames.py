"""Frames of a recording as messages in MCAP, and back.

``/urlab/state`` has every number of a frame; ``/clock``, ``/joint_states`` (hinges and slides), ``/controls`` and
``/sensors`` say the same in types that tools show. Frames are encoded by the thousand, as one array of bytes.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from urlab.paths import FileKind
from urlab.recording.recorder import FrameBlock
from urlab.recording.recording import QVEL_DIM_OF_QPOS_DIM, FloatArray, RecordedJoint, RecordedSignals, Recording
from urlab.recording.ros_messages import MessageTemplate

INSTALL = "pip install 'urlab-headless[record]'"
_MAGIC, _LIBRARY, _ABOUT = b"\x89MCAP0\r\n", b"urlab-headless", "urlab"


def _is_ours(head: bytes) -> bool:
    return head.startswith(_MAGIC) and _LIBRARY in head[:64]


MCAP = FileKind("an MCAP file of ours", ".mcap", _is_ours)

_MESSAGE = struct.Struct("<BQHIQQ")
"""Of a message record: opcode, length, channel, sequence, log time, publish time."""

_HEAD_BYTES = 11
"""Opcode, length and channel: the same for every message of a channel that is as long."""

_OPCODE = 0x05
_STATE_CHANNEL = 1
_MAX_CHUNK_BYTES = 256 << 20
_MAX_TOTAL_BYTES = 4 << 30
_MAX_RECORD_BYTES = 1 << 30


class FrameMessages:
    """The messages of frames with these joints and signals. Immutable; any thread."""

    def __init__(self, joints: tuple[RecordedJoint, ...], signals: RecordedSignals) -> None:
        scalars = [one for one in joints if one.qpos_dim == 1]
        self._scalar_qpos, self._scalar_qvel = _scalar_columns(joints)
        self.topics: list[tuple[str, str]] = []
        self._row = bytearray()
        self._places: list[tuple[str, int]] = []
        self._offsets: list[int] = []
        state = MessageTemplate().fixed_doubles("time", 1)
        widths = {"qpos": sum(one.qpos_dim for one in joints), "qvel": sum(one.qvel_dim for one in joints)}
        widths |= {"ctrl": len(signals.controls), "sensordata": signals.sensor_dim}
        for name, width in widths.items():
            state.doubles(name, width)
        self._add("/urlab/state", "urlab_msgs/State", state)
        self._add("/clock", "rosgraph_msgs/Clock", MessageTemplate().time())
        if scalars:
            named = MessageTemplate().header().texts([one.name for one in scalars])
            named.doubles("position", len(scalars)).doubles("velocity", len(scalars)).doubles("effort", 0)
            self._add("/joint_states", "sensor_msgs/JointState", named)
        if signals.controls:
            self._add("/controls", "urlab_msgs/NamedValues", _named("ctrl", signals.controls))
        if signals.sensors:
            self._add("/sensors", "urlab_msgs/NamedValues", _named("sensordata", _sensor_columns(signals)))

    def _add(self, topic: str, type_: str, message: MessageTemplate) -> None:
        self.topics.append((topic, type_))
        channel, begin = len(self.topics), len(self._row)
        self._offsets.append(begin)
        self._row += _MESSAGE.pack(_OPCODE, _MESSAGE.size - 9 + len(message.data), channel, 0, 0, 0)
        self._places += [("sequence", begin + 11), ("log_time", begin + 15), ("log_time", begin + 23)]
        self._places += [(of, begin + _MESSAGE.size + place) for of, place in message.places]
        self._row += message.data

    def encode(self, frames: FrameBlock, first: int) -> tuple[bytes, NDArray[np.uint64], list[int]]:
        """Message records, the frames' times in ns, and the offsets of the messages within a frame's bytes.

        ``first`` is the number of the first frame. Log times are elapsed times, which never go back; stamps are
        simulated times.
        """
        count = len(frames.times)
        rows = np.tile(np.frombuffer(bytes(self._row), np.uint8), (count, 1))
        log_ns = nanoseconds(frames.elapsed)
        values: dict[str, NDArray[Any]] = {
            "sequence": ((first + np.arange(count)) & 0xFFFFFFFF).astype("<u4")[:, None],
            "log_time": log_ns.astype("<u8")[:, None],
            "stamp": stamps(frames.times),
            "time": frames.times[:, None],
            "position": frames.qpos[:, self._scalar_qpos],
            "velocity": frames.qvel[:, self._scalar_qvel],
            **{name: getattr(frames, name) for name in ("qpos", "qvel", "ctrl", "sensordata")},
        }
        for of, place in self._places:
            filled = as_bytes(values[of])
            rows[:, place : place + filled.shape[1]] = filled
        return rows.tobytes(), log_ns, self._offsets

    def rows(self, data: bytes) -> NDArray[np.uint8] | None:
        """A chunk of nothing but these messages, (frames, bytes); None when there are others in it."""
        if not data or len(data) % len(self._row):
            return None
        rows = np.frombuffer(data, np.uint8).reshape(-1, len(self._row))
        for begin in self._offsets:
            head = slice(begin, begin + _HEAD_BYTES)
            if not (rows[:, head] == np.frombuffer(bytes(self._row[head]), np.uint8)).all():
                return None
        return rows

    @property
    def frame_bytes(self) -> int:
        """Of all messages of one frame."""
        return len(self._row)


def _named(of: str, names: tuple[str, ...]) -> MessageTemplate:
    return MessageTemplate().header().texts(names).doubles(of, len(names))


def _sensor_columns(signals: RecordedSignals) -> tuple[str, ...]:
    """A name for every number of the sensors: ``gyro[0]`` and so on where there are several."""
    return tuple(name if dim == 1 else f"{name}[{index}]" for name, dim in signals.sensors for index in range(dim))


def _scalar_columns(joints: tuple[RecordedJoint, ...]) -> tuple[list[int], list[int]]:
    qpos, qvel, q, v = [], [], 0, 0
    for one in joints:
        if one.qpos_dim == 1:
            qpos.append(q)
            qvel.append(v)
        q, v = q + one.qpos_dim, v + one.qvel_dim
    return qpos, qvel


def nanoseconds(seconds: FloatArray) -> NDArray[np.uint64]:
    """Times as whole nanoseconds; before 0, and what is no number, is 0."""
    return np.rint(np.clip(np.nan_to_num(seconds), 0.0, 9e9) * 1e9).astype(np.uint64)


def stamps(seconds: FloatArray) -> NDArray[np.uint32]:
    """Times as builtin_interfaces/Time: (n, 2), seconds and nanoseconds."""
    whole = nanoseconds(seconds)
    return np.stack((whole // 10**9, whole % 10**9), axis=1).astype("<u4")


def as_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Rows of numbers as rows of bytes, little endian; what is no u4 or u8 becomes float64."""
    kept = values if values.dtype.kind == "u" else values.astype("<f8")
    return np.ascontiguousarray(kept).view(np.uint8).reshape(len(values), -1)


def about_frames(name: str, joints: tuple[RecordedJoint, ...], signals: RecordedSignals) -> dict[str, Any]:
    """What a file says of its frames, so that it can be read back."""
    return {
        "name": name,
        "joints": [[one.name, one.qpos_dim] for one in joints],
        "controls": list(signals.controls),
        "sensors": [list(one) for one in signals.sensors],
    }


# -- reading ------------------------------------------------------------------------------------------------------


def read_about(file: BinaryIO) -> dict[str, Any]:
    """What a file of ours says of itself; ValueError when it is none."""
    for record in _record_stream(file):
        if getattr(record, "name", None) == _ABOUT and hasattr(record, "metadata"):
            about = json.loads(record.metadata["about"])
            if not isinstance(about, dict):
                break
            return about
        if type(record).__name__ == "Chunk":
            break
    raise ValueError("it is MCAP of another writer: a recording has our metadata record 'urlab'")


def read_mcap(name: str, file: BinaryIO) -> Recording:
    """The recording in an MCAP file of ours, also one whose writer was killed; ValueError tells what is wrong."""
    try:
        about = read_about(file)
        joints = tuple(RecordedJoint(str(one), int(dim), QVEL_DIM_OF_QPOS_DIM[dim]) for one, dim in about["joints"])
        sensors = tuple((str(one), int(dim)) for one, dim in about["sensors"])
        signals = RecordedSignals(tuple(str(one) for one in about["controls"]), sensors)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f"its metadata record 'urlab' is not as we write it: {wrong}") from wrong
    file.seek(0)
    widths = [sum(one.qpos_dim for one in joints), sum(one.qvel_dim for one in joints)]
    widths += [len(signals.controls), signals.sensor_dim]
    states = b"".join(_state_messages(file, _state_places(widths), FrameMessages(joints, signals)))
    numbers = np.frombuffer(states, "<f8").reshape(-1, 1 + sum(widths))
    if not len(numbers):
        raise ValueError("it has no frames")
    times, qpos, qvel, ctrl, sensordata = np.split(numbers, np.cumsum([1, *widths[:-1]]), axis=1)
    return Recording(name, joints, times[:, 0], qpos, qvel, signals, ctrl, sensordata)


def _state_places(widths: list[int]) -> tuple[int, list[slice]]:
    """The length of a state message, and where its numbers are."""
    message = MessageTemplate().fixed_doubles("time", 1)
    for width in widths:
        message.doubles("state", width)
    sizes = [1, *(width for width in widths if width)]
    starts = [place for _, place in message.places]
    return len(message.data), [slice(at, at + 8 * size) for at, size in zip(starts, sizes, strict=True)]


def _state_messages(file: BinaryIO, places: tuple[int, list[slice]], messages: "FrameMessages") -> Iterator[bytes]:
    """The numbers of every frame, as bytes."""
    length, parts = places
    total = 0
    for data in _chunks(file):
        total += len(data)
        if total > _MAX_TOTAL_BYTES:
            raise ValueError(f"it unpacks to more than {_MAX_TOTAL_BYTES} bytes")
        rows = messages.rows(data)
        if rows is not None:
            yield np.concatenate(
                [rows[:, _MESSAGE.size + one.start : _MESSAGE.size + one.stop] for one in parts], axis=1
            ).tobytes()
            continue
        at = 0
        while at + _MESSAGE.size <= len(data):
            opcode, size, channel, *_ = _MESSAGE.unpack_from(data, at)
            begin, at = at + _MESSAGE.size, at + 9 + size
            if opcode == _OPCODE and channel == _STATE_CHANNEL and at - begin == length and at <= len(data):
                message = data[begin:at]
                yield b"".join(message[one] for one in parts)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """What whole chunks hold; one that is cut off, or does not fit its checksum, ends the file."""
    import zstandard

    for record in _record_stream(file):
        if type(record).__name__ != "Chunk":
            continue
        if record.uncompressed_size > _MAX_CHUNK_BYTES or record.compression != "zstd":
            raise ValueError("it has a chunk that is not as we write them")
        try:
            data = zstandard.ZstdDecompressor().decompress(record.data, max_output_size=record.uncompressed_size)
        except zstandard.ZstdError:
            return
        if zlib.crc32(data) != record.uncompressed_crc:
            return
        yield data


def _record_stream(file: BinaryIO) -> Iterator[Any]:
    """The records of a file as far as they are whole."""
    try:
        from mcap.exceptions import McapError
        from mcap.stream_reader import StreamReader
    except ModuleNotFoundError as missing:
        raise ValueError(f"MCAP needs {missing.name}, which is not installed: {INSTALL}") from missing
    reader = StreamReader(file, emit_chunks=True, record_size_limit=_MAX_RECORD_BYTES)
    try:
        yield from reader.records
    except (McapError, struct.error, UnicodeDecodeError, EOFError):
        return


def check_mcap_installed() -> str:
    """The package that MCAP needs and that is missing; nothing when all is there."""
    try:
        import mcap.records
        import zstandard  # noqa: F401
    except ModuleNotFoundError as missing:
        return str(missing.name)
    del mcap
    return ""


def message_record(channel: int, sequence: int, log_ns: int, data: bytes) -> bytes:
    """The record of one message."""
    return _MESSAGE.pack(_OPCODE, _MESSAGE.size - 9 + len(data), channel, sequence, log_ns, log_ns) + data
