"""Shared memory: the regions that carry requests, replies, the state and pictures between processes of one machine.

A region is a header of 64 bytes and then its slots, little-endian throughout. Each slot is a u32 size and the payload.

====== ==== ============================================================
offset type field
====== ==== ============================================================
0      u32  magic number (the bytes ``URLB``)
4      u32  protocol version
8      u32  stride: bytes per slot, its size included
12     u32  number of slots
16     u64  sequence: payloads written so far
24     u32  index of the slot that was written last
28     --   zeros
32     u64  of requests: the number of the one that was written last
40     u32  of requests: the check of that number and that request
44     --   zeros up to 64
====== ==== ============================================================

One process writes a region and any number read it, without locks. The writer fills the slot after the last one, then
stores the index, then the sequence. `Region.read` says what a reader may believe. Here is nothing but bytes: who makes
the files is each side's own affair, and `urlab_wire.shm_wait` has the waiting.

A reply in ``rep.shm`` says nothing of its request, as the protocol has it. So our clients number their requests, and
our servers answer these in a region of their own, ``rep_sealed.shm``, which no process but the server can write: there
a payload begins with the u64 number of its request. The check (CRC-32 of the request, begun with the two words of its
number, one xor the other) tells a request that was numbered from one that was not, or that was damaged.
"""

import hashlib
import platform
import re
import struct
import sys
import threading
from mmap import mmap
from zlib import crc32

import numpy as np

MAGIC = 0x424C5255
VERSION = 1
HEADER_BYTES = 64
RPC_BUFFERS = 2
STREAM_BUFFERS = 4
RPC_STRIDE = 1 << 20
STATE_STRIDE = 16 << 10

REQUEST_FILE = "req.shm"
REPLY_FILE = "rep.shm"
SEALED_REPLY_FILE = "rep_sealed.shm"
STATE_FILE = "state.shm"
OWNER_FILE = "owner.lock"
"""In a server's folder: it holds a lock on it for as long as it lives."""

GLOBAL_PREFIX = "global"
"""What stands in a file's name for the owner of a camera that no articulation owns."""

Buffer = bytes | bytearray | memoryview | mmap

NUMBER_BYTES = 8
"""By so much a numbered reply is longer in its slot."""

COUNT_BITS = 32
"""The low bits of a number: they count the requests of one client. The others, chosen at random, are the client's."""

_SIZE = struct.Struct("<I")
_NUMBER = struct.Struct("<Q")
_NUMBERED = struct.Struct("<IQ")
_REQUEST_CHECK = struct.Struct("<QI")
_SEQUENCE_MASK = (1 << 64) - 1
_WORD_MAX = (1 << 32) - 1
# Places in the header, counted in u32 but for the sequence, which is counted in u64.
_MAGIC, _VERSION, _STRIDE, _COUNT, _LATEST = 0, 1, 2, 3, 6
_SEQUENCE = 2
_REQUEST_CHECK_OFFSET = 32


class ShmError(ValueError):
    """What should be a region is none, or is used as it cannot be."""


class PayloadTooLarge(ShmError):
    """A payload that does not fit a slot; nothing was written."""


# -- files --------------------------------------------------------------------------------------------------------

_UNSAFE = re.compile(r'[%/\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]')
_LONGEST_STEM_BYTES = 200


def camera_file(prefix: str, name: str) -> str:
    """The file of a camera's pictures: ``cam_<prefix>_<name>.shm``.

    ``prefix`` is the articulation's, or empty for a camera of the scene; ``name`` is its key in the handshake. Two
    cameras of one scene never share a file, and no name leads out of the folder: what a file system might take for
    something else becomes ``%XX``, and the end of a very long name becomes a hash.
    """
    return f"cam_{_stem(prefix, name)}.shm"


def camera_meta_file(prefix: str, name: str) -> str:
    """The file of what is told beside a camera's pictures: ``cammeta_<prefix>_<name>.shm``, as `camera_file` has it."""
    return f"cammeta_{_stem(prefix, name)}.shm"


def _stem(prefix: str, name: str) -> str:
    owner = _escape(prefix) or GLOBAL_PREFIX
    if f"{prefix}_".startswith(f"{GLOBAL_PREFIX}_"):
        owner = f"%{ord(owner[0]):02X}{owner[1:]}"  # a robot of that name is not the scene
    stem = f"{owner}_{_escape(name)}"
    encoded = stem.encode()
    if len(encoded) <= _LONGEST_STEM_BYTES:
        return stem
    # "%~" is in no other name: a percent sign there is always followed by digits.
    return f"{encoded[:128].decode(errors='ignore')}%~{hashlib.sha256(encoded).hexdigest()[:32]}"


def _escape(text: str) -> str:
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode(errors="surrogatepass")), text)


# -- order of stores and loads ------------------------------------------------------------------------------------

_WEAKLY_ORDERED = platform.machine().lower() not in ("x86_64", "amd64", "i386", "i686", "x86")
_BARRIER = threading.Lock()


def _fence() -> None:
    """Keep what stands before it before what comes after it, on processors that would do otherwise.

    x86 shows stores in the order of the program and loads in order too, so there it is not called. Elsewhere it is
    the pair in the middle that counts: nothing earlier passes the release, nothing later passes the acquisition, and
    on one lock the two stay in order. It is reasoning about the ARM architecture, not a measurement.
    """
    with _BARRIER:
        pass
    with _BARRIER:
        pass


# -- regions ------------------------------------------------------------------------------------------------------


def region_bytes(stride: int, n_buffers: int) -> int:
    """The size of a region, header included."""
    return HEADER_BYTES + stride * n_buffers


def format_region(buffer: Buffer, stride: int, n_buffers: int) -> None:
    """Make an empty region of a writable buffer. The magic number comes last: who sees it sees a whole header."""
    _check_shape(stride, n_buffers, memoryview(buffer).nbytes)
    with memoryview(buffer).cast("B") as whole, whole[:HEADER_BYTES] as header, header.cast("I") as words:
        words[_MAGIC] = 0
        _fence()
        header[4:] = bytes(HEADER_BYTES - 4)
        for slot in range(n_buffers):
            _SIZE.pack_into(whole, HEADER_BYTES + slot * stride, 0)
        words[_VERSION], words[_STRIDE], words[_COUNT] = VERSION, stride, n_buffers
        _fence()
        words[_MAGIC] = MAGIC


class Region:
    """A formatted region in a buffer, to write or to read. One thread uses it at a time.

    It holds on to the buffer until `release`; a mapping cannot be closed before. ``stride`` and ``n_buffers`` are
    those of the header at the time of opening: what a peer does to the header later cannot lead outside the buffer.
    ``capacity`` is the largest payload in bytes, ``address`` where the buffer lies in memory (0 once released).
    """

    __slots__ = ("_sequences", "_slack", "_slots", "_whole", "_words", "address", "capacity", "n_buffers", "stride")

    def __init__(self, buffer: Buffer) -> None:
        whole = memoryview(buffer).cast("B")
        try:
            self.address = _address(whole)
            self.stride, self.n_buffers = region_shape(whole, whole.nbytes)
        except ShmError:
            whole.release()  # the error's traceback would keep the mapping from being closed
            raise
        self.capacity = self.stride - _SIZE.size
        self._slack = max(0, self.n_buffers - 2)
        self._whole = whole
        self._words = whole[:HEADER_BYTES].cast("I")
        self._sequences = whole[:HEADER_BYTES].cast("Q")
        starts = range(HEADER_BYTES, region_bytes(self.stride, self.n_buffers), self.stride)
        self._slots = tuple(whole[start : start + self.stride] for start in starts)

    @property
    def sequence(self) -> int:
        """How many payloads have been written, modulo 2**64; another one means that there is news."""
        return self._sequences[_SEQUENCE]

    @property
    def number(self) -> int:
        """Of sealed replies: the number of the request that the last one answers."""
        return int(_NUMBER.unpack_from(self._slots[self._words[_LATEST] % self.n_buffers], _SIZE.size)[0])

    def withdraw(self, sequence: int) -> None:
        """Take back the last payload, if it is that one: its reader has gone on without it."""
        if self._sequences[_SEQUENCE] == sequence:
            self._words[_LATEST] = (self._words[_LATEST] - 1) % self.n_buffers
            self._sequences[_SEQUENCE] = (sequence - 1) & _SEQUENCE_MASK

    def restore(self) -> None:
        """Write once more what never changes in the header, where a peer may have written over it."""
        words = self._words
        words[_MAGIC], words[_VERSION], words[_STRIDE], words[_COUNT] = MAGIC, VERSION, self.stride, self.n_buffers

    def write_request(self, payload: bytes, number: int) -> int:
        """Publish a request under a number, and return its sequence."""
        check = crc32(payload, (number ^ number >> 32) & _WORD_MAX)
        _REQUEST_CHECK.pack_into(self._whole, _REQUEST_CHECK_OFFSET, number, check)
        return self.write(payload)

    def read_request(self, last_seen: int) -> tuple[int, bytes, int | None] | None:
        """As `read`, and the request's number; None for the number when it has none, or is not what was written."""
        found = self.read(last_seen)
        if found is None:
            return None
        sequence, payload = found
        number, check = _REQUEST_CHECK.unpack_from(self._whole, _REQUEST_CHECK_OFFSET)
        is_whole = check == crc32(payload, (number ^ number >> 32) & _WORD_MAX)
        return sequence, payload, number if is_whole else None

    def write(self, payload: Buffer, number: int | None = None) -> int:
        """Publish a payload, and return its sequence. Only one process and one thread may write a region.

        With a ``number`` it is the reply to the request of that number.
        """
        if type(payload) is not bytes:
            payload = memoryview(payload).cast("B")
        begin = _SIZE.size if number is None else _NUMBERED.size
        size, end = len(payload), len(payload) + begin
        if size == 0 or end > self.stride:
            raise _misfit(size, self.stride - begin)
        words, sequences = self._words, self._sequences
        target = (words[_LATEST] + 1) % self.n_buffers
        slot = self._slots[target]
        try:
            if number is None:
                _SIZE.pack_into(slot, 0, size)
            else:
                _NUMBERED.pack_into(slot, 0, size + NUMBER_BYTES, number)
        except (TypeError, BufferError) as denied:
            raise ShmError("the region is open for reading only: map its file for writing") from denied
        slot[begin:end] = payload
        if _WEAKLY_ORDERED:
            _fence()
        words[_LATEST] = target
        if _WEAKLY_ORDERED:
            _fence()
        sequence = (sequences[_SEQUENCE] + 1) & _SEQUENCE_MASK
        sequences[_SEQUENCE] = sequence
        return sequence

    def read(self, last_seen: int, number: int | None = None) -> tuple[int, bytes] | None:
        """The newest payload and its sequence, or None when there is none that is new and whole.

        A sequence unlike ``last_seen`` is news, be it higher or lower: a writer may have started again. The copy
        counts only if meanwhile the writer cannot have come round to this slot: if it published at most
        ``n_buffers`` - 2 payloads more. With two slots that is none, and with one, where every write is to the slot
        that is being read, it is up to the two sides to take turns.

        Between a writer's last two stores a reader may get the newer payload under the older number, and once more
        under its own. In turns of request and reply that cannot happen.

        With a ``number``, only the reply to the request of that number counts.
        """
        sequences = self._sequences
        sequence = sequences[_SEQUENCE]
        if sequence == last_seen:
            return None
        if _WEAKLY_ORDERED:
            _fence()
        index = self._words[_LATEST]
        if index >= self.n_buffers:
            return None
        slot = self._slots[index]
        (size,) = _SIZE.unpack_from(slot)
        if not 0 < size <= self.capacity:
            return None
        if number is None:
            payload = slot[4 : size + 4].tobytes()
        elif size > NUMBER_BYTES and _NUMBER.unpack_from(slot, 4)[0] == number:
            payload = slot[12 : size + 4].tobytes()
        else:
            return None
        if _WEAKLY_ORDERED:
            _fence()
        if (sequences[_SEQUENCE] - sequence) & _SEQUENCE_MASK > self._slack:
            return None
        return sequence, payload

    def outdate(self) -> None:
        """Let the newest payload count no more: readers find none until the next write. For the thread that writes."""
        _SIZE.pack_into(self._slots[self._words[_LATEST] % self.n_buffers], 0, 0)

    def clear(self) -> None:
        """Let no payload count any more, and no number."""
        _REQUEST_CHECK.pack_into(self._whole, _REQUEST_CHECK_OFFSET, 0, 0)
        for slot in self._slots:
            _SIZE.pack_into(slot, 0, 0)

    def release(self) -> None:
        """Let go of the buffer, so that a mapping can be closed. Nothing else works afterwards."""
        self.address = 0
        for view in (*self._slots, self._words, self._sequences, self._whole):
            view.release()


def _misfit(size: int, capacity: int) -> ShmError:
    if size:
        return PayloadTooLarge(f"a payload of {size} bytes does not fit a slot, which holds {capacity}")
    return ShmError("an empty payload cannot be sent: a size of 0 means that a slot holds nothing")


def _address(whole: memoryview) -> int:
    if sys.byteorder != "little":
        raise ShmError("regions are little-endian, and this machine is not")
    if whole.nbytes < HEADER_BYTES:
        raise ShmError(f"a buffer of {whole.nbytes} bytes is no region: the header alone has {HEADER_BYTES}")
    address = int(np.frombuffer(whole, np.uint8).ctypes.data)
    if address % 8:
        raise ShmError(f"the buffer begins at address {address:#x}, which is no multiple of 8")
    return address


def region_shape(header: Buffer, available: int) -> tuple[int, int]:
    """Stride and number of slots, as a header tells them; ShmError when ``available`` bytes are no such region."""
    magic, version, stride, n_buffers = struct.unpack_from("<4I", header)
    if magic != MAGIC:
        raise ShmError(f"the buffer begins with {magic:#010x}, not {MAGIC:#010x}: no region, or not yet finished")
    if version != VERSION:
        raise ShmError(f"the region has protocol version {version}, this side speaks version {VERSION}")
    _check_shape(stride, n_buffers, available)
    return stride, n_buffers


def _check_shape(stride: int, n_buffers: int, available: int) -> None:
    if not 1 <= n_buffers <= _WORD_MAX:
        raise ShmError(f"a region of {n_buffers} slots cannot be: it needs at least one")
    if not _SIZE.size + 1 <= stride <= _WORD_MAX:
        raise ShmError(f"a stride of {stride} bytes cannot be: it is between {_SIZE.size + 1} and {_WORD_MAX}")
    wanted = region_bytes(stride, n_buffers)
    if available < wanted:
        raise ShmError(f"{n_buffers} slots of {stride} bytes need {wanted} bytes, the buffer has {available}")
