"""Writing MCAP: chunks of messages, appended to a file that can be read at any moment.

After every chunk the file ends as a file without an index does; the next chunk takes the place of that end. A process
that is killed leaves a whole file, but for the chunks that it had not written. `finish` adds the index.
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from io import FileIO
from typing import Any, NamedTuple

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Statistics,
)
from mcap.records import Schema as SchemaRecord
from numpy.typing import NDArray

from urlab.recording.ros_messages import definition, type_name

MAGIC = b"\x89MCAP0\r\n"
LIBRARY = "urlab-headless"
ABOUT = "urlab"
"""The metadata record that says what a recording is: one JSON object under ``about``."""

_MESSAGE_INDEX = 0x07
_PROFILE = "ros2"
_COMPRESSION = "zstd"


class Topic(NamedTuple):
    """What messages are published as: a name and a type such as ``sensor_msgs/JointState``."""

    name: str
    type: str


class ChunkContent(NamedTuple):
    """Message records of a chunk, the times of the first and the last in ns, and the messages of each channel.

    ``places`` has (time, offset in the content) for each message of a channel, as a (n, 2) array.
    """

    data: bytes
    start_ns: int
    end_ns: int
    places: Mapping[int, NDArray[np.uint64]]


class McapFile:
    """One file, from its beginning on; channels are numbered from 1 in the order of ``topics``. For one thread."""

    def __init__(self, file: FileIO, topics: Sequence[Topic], about: Mapping[str, Any]) -> None:
        self._file = file
        self._counts = dict.fromkeys(range(1, len(topics) + 1), 0)
        self._span: tuple[int, int] | None = None
        self._indexes: list[ChunkIndex] = []
        self._schemas, self._channels = _described(topics)
        self._compressor = zstandard.ZstdCompressor(level=1)
        metadata = Metadata(name=ABOUT, metadata={"about": json.dumps(about)})
        before = MAGIC + _records(Header(_PROFILE, LIBRARY))
        placed = _records(metadata)
        self._metadata_index = MetadataIndex(offset=len(before), length=len(placed), name=ABOUT)
        self._end = 0
        self._write(before + placed + _records(*self._schemas, *self._channels))

    def append(self, content: ChunkContent) -> None:
        """Write one chunk; OSError when the disk refuses, and the file ends as before."""
        chunk = Chunk(
            compression=_COMPRESSION,
            data=self._compressor.compress(content.data),
            message_start_time=content.start_ns,
            message_end_time=content.end_ns,
            uncompressed_crc=zlib.crc32(content.data),
            uncompressed_size=len(content.data),
        )
        written = _records(chunk)
        offsets, parts, position = {}, [written], self._end + len(written)
        for channel, places in content.places.items():
            offsets[channel] = position
            parts.append(_message_index(channel, places))
            position += len(parts[-1])
        index = ChunkIndex(
            chunk_length=len(written),
            chunk_start_offset=self._end,
            compression=_COMPRESSION,
            compressed_size=len(chunk.data),
            message_end_time=content.end_ns,
            message_index_length=position - self._end - len(written),
            message_index_offsets=offsets,
            message_start_time=content.start_ns,
            uncompressed_size=len(content.data),
        )
        self._write(b"".join(parts))
        self._indexes.append(index)
        first, last = self._span or (content.start_ns, content.end_ns)
        self._span = min(first, content.start_ns), max(last, content.end_ns)
        for channel, places in content.places.items():
            self._counts[channel] += len(places)

    def finish(self) -> None:
        """Add the index, which lets readers jump to a time."""
        start, end = self._span or (0, 0)
        statistics = Statistics(
            attachment_count=0,
            channel_count=len(self._channels),
            channel_message_counts=self._counts,
            chunk_count=len(self._indexes),
            message_count=sum(self._counts.values()),
            message_end_time=end,
            message_start_time=start,
            metadata_count=1,
            schema_count=len(self._schemas),
        )
        ending = _records(DataEnd(0))
        summary = _records(*self._schemas, *self._channels, statistics, *self._indexes, self._metadata_index)
        footer = _records(Footer(summary_start=self._end + len(ending), summary_offset_start=0, summary_crc=0))
        self._overwrite(ending + summary + footer + MAGIC)

    def _write(self, records: bytes) -> None:
        self._overwrite(records + _ENDING)
        self._end += len(records)

    def _overwrite(self, content: bytes) -> None:
        """In place of the file's end."""
        rest = memoryview(content)
        self._file.seek(self._end)
        try:
            while rest:  # a disk that is nearly full takes a part, and refuses the next
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.seek(self._end)
            self._file.write(_ENDING)
            self._file.truncate()
            raise


def _records(*records: McapRecord) -> bytes:
    builder = RecordBuilder()
    for one in records:
        one.write(builder)
    return bytes(builder.end())  # type: ignore[no-untyped-call]


_ENDING = _records(DataEnd(0), Footer(0, 0, 0)) + MAGIC


def _described(topics: Sequence[Topic]) -> tuple[list[SchemaRecord], list[Channel]]:
    types = list(dict.fromkeys(one.type for one in topics))
    schemas = [
        SchemaRecord(id=number, name=type_name(one), encoding="ros2msg", data=definition(one).encode())
        for number, one in enumerate(types, 1)
    ]
    channels = [
        Channel(number, topic=one.name, message_encoding="cdr", metadata={}, schema_id=types.index(one.type) + 1)
        for number, one in enumerate(topics, 1)
    ]
    return schemas, channels


def _message_index(channel: int, places: NDArray[np.uint64]) -> bytes:
    body = places.astype("<u8").tobytes()
    return struct.pack("<BQHI", _MESSAGE_INDEX, 6 + len(body), channel, len(body)) + body
